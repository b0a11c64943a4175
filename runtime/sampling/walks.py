"""Random walks along the edges of a graph."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.crew import crews
from ..sets import kernels as sets
from ..sets.kernels import Int32s
from . import kernels
from .in_edges import InEdges, relation
from .sampler import Key


@dataclass(frozen=True, eq=False)
class Walks:
    """Attributes:
    nodes: shape (walks, length + 1), int32: where each is after so many steps.
    ids: shape (walks, length), int32: the edge of each step, -1 where there was none.
    """

    nodes: Int32s
    ids: Int32s


def walk(
    graph: InEdges,
    starts: NDArray[Any],
    length: int,
    key: Key = Key(),  # noqa: B008
    *,
    back: float = 0.0,
    weighted: bool = False,
    ends: bool = False,
    first: int = 0,
    threads: int | None = None,
) -> Walks:
    """Random walks, each from a target to one of its sources and on: against the edges. To walk
    along them, give `in_edges` their ends in turn.

    Args:
        graph: edges among nodes of one type.
        starts: shape (walks,), integers.
        length: the steps of each walk.
        back: the probability with which a walk returns to its start before a step.
        weighted: whether edges are taken in proportion to their weights, else all alike.
        ends: whether a walk ends where no edge leads on (nodes are -1 from there on); else it
            stays.
        first: the number of the first walk: random numbers go by (key, number, step), so that a
            list of walks may be cut.

    Raises:
        IndexError: a start is no node.
        ValueError: a graph of two types, a negative length or number, a probability that is none,
            edges without weights.
    """
    if graph.sources != graph.targets:
        raise ValueError(f"walks lead among nodes of one type, not from {graph.targets} to others")
    if length < 0 or first < 0:
        raise ValueError(f"length and first must not be negative, got {length} and {first}")
    if not 0 <= back <= 1:
        raise ValueError(f"back must be a probability, got {back}")
    if weighted and graph.sums is None:
        raise ValueError("weighted=True needs weights of all edges")
    starts32 = sets.narrow(np.asarray(starts), graph.targets, what="starts")
    if first + starts32.size > 2**32:
        raise ValueError("walks are numbered by 32 bits")
    nodes = np.empty((starts32.size, length + 1), np.int32)
    ids = np.empty((starts32.size, length), np.int32)
    request = kernels.Walks(
        relation(graph, 0, 0),
        0,
        0,
        starts32.ctypes.data,
        starts32.size,
        length,
        first,
        math.floor(back * 2**32),
        weighted,
        ends,
        nodes.ctypes.data,
        ids.ctypes.data,
    )
    given = ctypes.addressof(request), key.seed, key.epoch, key.step
    call = kernels.library().gnnc_walk
    crews.run("walk", ids.size, lambda count: call(*given, count), threads)
    return Walks(nodes, ids)
