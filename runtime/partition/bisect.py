"""Assignments by recursive bisection along an order in which neighbours are near: what there is
without METIS.

The order is that of E. Cuthill, J. McKee, *Reducing the Bandwidth of Sparse Symmetric Matrices*,
ACM 1969, reversed: levels of a breadth-first search, so a cut through it is as wide as a level.
"""

from __future__ import annotations

import numpy as np

from .edges import Int32
from .graph import Graph
from .moves import Bools
from .refine import refine
from .sparse import narrow_order


def bisect(graph: Graph, parts: int, limit: float, seed: int) -> Int32:
    """Owners, int32: halves, each refined and cut again until there are `parts`."""
    owner = np.zeros(graph.nodes, np.int32)
    # the tolerances of one cut and of those after it multiply
    tolerance = limit ** (1 / max(1, (parts - 1).bit_length()))
    waiting = [(np.arange(graph.nodes, dtype=np.int64), 0, parts)]
    while waiting:
        nodes, first, count = waiting.pop()
        if count == 1 or not len(nodes):
            owner[nodes] = first
            continue
        low = (count + 1) // 2
        upper = _upper_half(graph.part(nodes), low / count, tolerance, seed)
        waiting.append((nodes[~upper], first, low))
        waiting.append((nodes[upper], first + low, count - low))
    return owner


def _upper_half(graph: Graph, share: float, tolerance: float, seed: int) -> Bools:
    """Flags of the nodes behind a cut with `share` of the work before it."""
    order = narrow_order(graph.neighbours)
    work = graph.work[order]
    middle = np.cumsum(work) - work / 2
    total = int(work.sum())
    owner = np.zeros(graph.nodes, np.int32)
    owner[order] = middle >= share * total
    bounds = np.maximum(tolerance * total * np.array([share, 1 - share]), int(work.max()))
    return refine(graph, owner, bounds, rounds=20, seed=seed) == 1
