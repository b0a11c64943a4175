"""The graphs that `gnnc bench plan` trains on, drawn alike where they are trained on and where they
are planned for."""

from __future__ import annotations

import numpy as np

from ..frontend.tools.datasets import power_law_edges
from ..runtime.partition.edges import Int32, Int64

HALVES = 2


def halves(nodes: int, edges: int, across: float, seed: int = 0) -> Int64:
    """See `planted`: a graph of two parts."""
    return planted(nodes, edges, across, HALVES, seed)


def owners_of_halves(nodes: int, ranks: int) -> Int32:
    """The rank of each node: a half each, or all on one."""
    return owners_of_parts(nodes, HALVES) % np.int32(ranks)


def planted(nodes: int, edges: int, across: float, parts: int, seed: int = 0) -> Int64:
    """The ends of edges (2 x edges) of a graph of parts with equally many nodes: a share of the
    edges comes from other parts, from any of their nodes. `nodes` is a multiple of `parts`, whose
    nodes take turns: so one rank that has them all reads rows anywhere in their table, as is
    planned for."""
    random = np.random.default_rng(seed)
    size = nodes // parts
    src, dst = random.integers(0, size, (2, edges))
    of_dst = random.integers(0, parts, edges)
    away = random.random(edges) < across
    of_src = (of_dst + away * random.integers(1, max(parts, 2), edges)) % parts
    return np.stack([src * parts + of_src, dst * parts + of_dst])


def owners_of_parts(nodes: int, parts: int) -> Int32:
    """The part of each node."""
    return (np.arange(nodes) % parts).astype(np.int32)


def scattered(nodes: int, edges: int, ranks: int) -> tuple[Int64, Int32]:
    """The ends of edges (2 x edges) by a power law, and an owner of each node, drawn."""
    owner = np.random.default_rng(0).integers(0, ranks, nodes).astype(np.int32)
    return power_law_edges(nodes, edges, seed=1), owner
