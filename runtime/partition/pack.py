"""Assignments that pack pieces of a graph, the heaviest first, into the part with the least work.

R. Graham, *Bounds on Multiprocessing Timing Anomalies*, SIAM J. Appl. Math. 1969: no part has more
than the mean and the heaviest piece.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from .edges import Int32, Int64
from .graph import Graph
from .sparse import components as connected

Method = Callable[[Graph, int, float, int], Int32]


def pack(work: Int64, parts: int) -> Int32:
    """The part of each piece, int32, for the work of each."""
    part = np.zeros(len(work), np.int32)
    heap = [(0, p) for p in range(parts)]
    for piece in np.argsort(-work, kind="stable"):
        load, p = heap[0]
        part[piece] = p
        heapq.heapreplace(heap, (load + int(work[piece]), p))
    return part


def heaviest_first(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
    """Node by node: balanced as well as anything, whatever is read across, `limit` and `seed`."""
    return pack(graph.work, parts)


def components(graph: Graph, parts: int, limit: float, seed: int, split: Method) -> Int32:
    """Whole connected components: nothing is read across but in those above the mean work, which
    `split` cuts into as many pieces as they have means.
    """
    count, piece = connected(graph.neighbours)
    mean = int(graph.work.sum()) / parts
    work = np.bincount(piece, weights=graph.work, minlength=count)
    for component in np.flatnonzero(work > mean):
        (nodes,) = np.nonzero(piece == component)
        pieces = int(np.ceil(work[component] / mean))
        inside = split(graph.part(nodes), pieces, limit, seed)
        piece[nodes] = np.where(inside == 0, component, count + inside - 1)
        count += pieces - 1
    return pack(np.bincount(piece, weights=graph.work, minlength=count).astype(np.int64), parts)[
        piece
    ]


def component_count(graph: Graph) -> int:
    """How many connected components there are, whichever way edges lead."""
    return connected(graph.neighbours)[0]
