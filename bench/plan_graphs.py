"""The graphs that `gnnc bench plan` trains on, drawn alike where they are trained on and where they
are planned for."""

from __future__ import annotations

import numpy as np

from ..frontend.tools.datasets import power_law_edges
from ..runtime.partition.edges import Int32, Int64

HALVES = 2


def halves(nodes: int, edges: int, across: float, seed: int = 0) -> Int64:
    """The ends of edges (2 x edges) of a graph of two halves: a share of them comes from the other
    half, from any of its nodes. `nodes` is even."""
    random = np.random.default_rng(seed)
    half = nodes // HALVES
    src, dst = random.integers(0, half, (2, edges))
    of_dst = random.integers(0, HALVES, edges)
    of_src = (of_dst + (random.random(edges) < across)) % HALVES
    return np.stack([src + of_src * half, dst + of_dst * half])


def owners_of_halves(nodes: int, ranks: int) -> Int32:
    """The rank of each node: a half each, or all on one."""
    return (np.arange(nodes) // (nodes // HALVES) % ranks).astype(np.int32)


def scattered(nodes: int, edges: int, ranks: int) -> tuple[Int64, Int32]:
    """The ends of edges (2 x edges) by a power law, and an owner of each node, drawn."""
    owner = np.random.default_rng(0).integers(0, ranks, nodes).astype(np.int32)
    return power_law_edges(nodes, edges, seed=1), owner
