"""Assignments of graphs whose edges do not fit in memory, in passes over their blocks.

A part of the edges, drawn at random, is cut in memory, with the work that nodes have in the whole
graph. Then nodes move to the part that most of their neighbours are in, as in C. Martella et al.,
*Spinner: Scalable Graph Partitioning in the Cloud*, ICDE 2017. What is kept is the nodes' work and
owners, a count a node and part, and the edges drawn, so memory does not grow with the edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from . import metis
from .bisect import bisect
from .edges import Block, Edges, Int32, Int64
from .graph import Graph, graph_of
from .measure import ROW_COST, check_row_cost, work_of_nodes
from .moves import admitted, loads
from .refine import refine

SAMPLE = 1 << 21
"""Edges that are cut in memory."""
PASSES = 10
_SHARE = 0.5
"""Of the moves that lower the cut, those taken in a pass: neighbours would change places."""
_ROUNDS = 15
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: its multiples modulo 2^64 are spread evenly."""


def stream(
    edges: Edges,
    parts: int,
    limit: float,
    seed: int,
    *,
    row_cost: int = ROW_COST,
    passes: int = PASSES,
    sample: int = SAMPLE,
) -> Int32:
    """Owners (int32) of few cut edges, in `passes` + 3 passes over the blocks.

    The work of no part is above `limit` times the mean, where moves can achieve that. Takes about
    16 bytes a node and part and 100 an edge of the `sample`.

    Raises:
        ValueError: `parts`, `row_cost` or `sample` is not positive.
        MetisFailed: METIS gave up.
    """
    for name, number in (("parts", parts), ("sample", sample)):
        if number < 1:
            raise ValueError(f"{name}: {number}, and there should be at least 1")
    check_row_cost(row_cost)
    work = work_of_nodes(edges, row_cost)
    count = int(work.sum()) - row_cost * edges.nodes
    drawn = Edges(edges.nodes, lambda: _drawn(edges, sample / max(count, 1)))
    graph = replace(graph_of(drawn, row_cost), work=work)
    bound = np.full(parts, graph.bound(parts, limit), np.float64)
    owner = refine(graph, _cut(graph, parts, limit, seed), bound, rounds=_ROUNDS, seed=seed)
    best, least = owner, -1
    random = np.random.default_rng(seed)
    every = np.arange(edges.nodes)
    for _ in range(passes + 1):
        gain, total = _neighbours(edges, owner, parts)
        own = gain[every, owner]
        cut = total - int(own.sum())
        if least < 0 or cut < least:
            best, least = owner, cut
        gain -= own[:, None]
        load = loads(work, owner, parts)
        target = gain.argmax(axis=1).astype(np.int32) if edges.nodes else owner
        (moves,) = np.nonzero(gain[every, target] > 0)
        moves = moves[random.random(len(moves)) < _SHARE]
        moves = moves[np.argsort(-gain[moves, target[moves]], kind="stable")]
        moves = moves[admitted(owner[moves], target[moves], work[moves], bound - load)]
        if not len(moves):
            break
        owner = owner.copy()
        owner[moves] = target[moves]
    return best


def _drawn(edges: Edges, share: float) -> Iterator[Block]:
    """A share of the edges, the same however they come in blocks."""
    first = 0
    for src, dst in edges:
        number = np.arange(first, first + len(src), dtype=np.uint64)
        kept = (number * _GOLDEN).astype(np.float64) < share * 2.0**64
        yield src[kept], dst[kept]
        first += len(src)


def _cut(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
    if parts == 1 or metis.why_not(graph, parts) is not None:
        return bisect(graph, parts, limit, seed)
    return metis.weighted(graph, parts, limit, 1 + seed % (2**31 - 2))


def _neighbours(edges: Edges, owner: Int32, parts: int) -> tuple[Int32, int]:
    """How many ends of edges from or to a node (line) are in a part (column), and all together."""
    count = np.zeros(edges.nodes * parts, np.int32)
    total = 0
    for src, dst in edges:
        kept = src != dst
        src, dst = src[kept], dst[kept]
        total += 2 * len(src)
        for node, neighbour in ((src, dst), (dst, src)):
            cells: Int64 = node * parts + owner[neighbour]
            cell, times = np.unique(cells, return_counts=True)
            count[cell] += times.astype(np.int32)
    return count.reshape(edges.nodes, parts), total
