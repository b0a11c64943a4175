"""Assignments of graphs whose edges do not fit in memory, in passes over their blocks.

Nodes move to the part that most of their neighbours are in, as in C. Martella et al., *Spinner:
Scalable Graph Partitioning in the Cloud*, ICDE 2017, from ranges of about equal work. What is kept
is the nodes' work and owners and a count a node and part, so memory does not grow with the edges.
"""

from __future__ import annotations

import numpy as np

from .edges import Edges, Int32, Int64
from .measure import ROW_COST, check_row_cost, work_of_nodes
from .moves import admitted, loads, ranges

PASSES = 10
_SHARE = 0.5
"""Of the moves that lower the cut, those taken in a pass: neighbours would change places."""


def stream(
    edges: Edges,
    parts: int,
    limit: float,
    seed: int,
    *,
    row_cost: int = ROW_COST,
    passes: int = PASSES,
) -> Int32:
    """Owners (int32) of few cut edges, in `passes` + 2 passes over the blocks.

    The work of no part is above `limit` times the mean, where the ranges it begins with have none
    that is. Takes 8 bytes a node and part.

    Raises:
        ValueError: `parts` or `row_cost` is not positive.
    """
    if parts < 1:
        raise ValueError(f"parts: {parts}, and there should be at least 1")
    check_row_cost(row_cost)
    work = work_of_nodes(edges, row_cost)
    owner = ranges(work, parts)
    best, least = owner, -1
    random = np.random.default_rng(seed)
    every = np.arange(edges.nodes)
    bound = np.full(parts, limit * int(work.sum()) / parts, np.float64)
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
