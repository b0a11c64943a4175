"""Random multigraphs: parallel edges, loops, isolated nodes, hubs, no edges, one node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Multigraph:
    nodes: int
    relations: int
    src: np.ndarray
    dst: np.ndarray
    rel: np.ndarray

    @property
    def edges(self) -> int:
        return self.src.size


def random_multigraph(rng: np.random.Generator, nodes: int, edges: int, shape: str) -> Multigraph:
    relations = int(rng.integers(1, 5))
    src, dst = rng.integers(0, nodes, (2, edges))
    if shape == "hub":
        dst[rng.random(edges) < 0.9] = nodes - 1
    if shape == "sparse":  # most nodes have no edge
        src, dst = src % max(1, nodes // 4), dst % max(1, nodes // 4)
    if shape == "loops":
        dst = np.where(rng.random(edges) < 0.5, src, dst)
    return Multigraph(nodes, relations, src, dst, rng.integers(0, relations, edges))


@st.composite
def multigraphs(draw: st.DrawFn) -> Multigraph:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    nodes = draw(st.sampled_from([1, 2, 3, 7, 40, 3000]))
    edges = draw(st.sampled_from([0, 1, 2, 5, 33, 400]))
    shape = draw(st.sampled_from(["uniform", "hub", "sparse", "loops"]))
    return random_multigraph(rng, nodes, edges, shape)
