"""The edges that lead to each node of a graph (compressed sparse columns), for samplers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.threads import num_threads
from ..sets import kernels as sets
from ..sets.kernels import Int32s, Int64s
from . import kernels

Floats = NDArray[np.float64]
_DTYPES = {
    "indices": np.int32,
    "ids": np.int32,
    "weights": np.float64,
    "sums": np.float64,
    "times": np.int64,
}


@dataclass(frozen=True, eq=False)
class InEdges:
    """The edges of one relation by the node they lead to.

    Made by `in_edges` or `checked`, which see to it that every number is in range; the arrays must
    not change from then on.

    Attributes:
        sources: nodes that edges come from; `targets`: nodes that they lead to.
        indptr: shape (targets + 1,), int64: the edges to node v are those at `indptr[v]` to
            `indptr[v + 1]`.
        indices: shape (edges,), int32: where each comes from.
        ids: shape (edges,), int32: the number of each in the user's list; None: its position.
        weights: shape (edges,), float64, positive: in proportion to which edges are drawn, or None.
        sums: shape (edges,), float64: running sums of the weights of each node, or None.
        times: shape (edges,), int64: when the edge, or its source, came to be, ascending within a
            node, or None.
    """

    sources: int
    targets: int
    indptr: Int64s
    indices: Int32s
    ids: Int32s | None = None
    weights: Floats | None = None
    sums: Floats | None = None
    times: Int64s | None = None

    def __post_init__(self) -> None:
        _plain(self.indptr, np.int64, "indptr")
        if self.indptr.size != self.targets + 1:
            raise ValueError(f"indptr has {self.indptr.size} entries for {self.targets} targets")
        for name, dtype in _DTYPES.items():
            array: NDArray[Any] | None = getattr(self, name)
            if array is not None:
                _plain(array, dtype, name)
                _same_length(array, name, self.indices, "indices")
        if (self.weights is None) != (self.sums is None):
            raise ValueError("edges have weights and their sums, or neither")

    @property
    def edges(self) -> int:
        return self.indices.size

    def degrees(self, nodes: NDArray[Any]) -> Int64s:
        """How many edges lead to each of the nodes, int64."""
        return self.indptr[nodes + 1] - self.indptr[nodes]


def in_edges(
    src: NDArray[Any],
    dst: NDArray[Any],
    sources: int,
    targets: int,
    *,
    weights: NDArray[Any] | None = None,
    times: NDArray[Any] | None = None,
) -> InEdges:
    """The edges from `src` to `dst` by the node they lead to, in time linear in their number.

    Args:
        src, dst: shape (edges,), integers below `sources` and `targets`. The edges of a node keep
            their order, or that of their times.
        weights: shape (edges,), finite and not negative. Edges of weight 0 are left out: no sampler
            ever takes them.
        times: shape (edges,), integers.

    Raises:
        IndexError: an end of an edge is no node.
        TypeError: a dtype that is none of integers (of numbers, for weights).
        ValueError: arrays of different lengths, or weights that are none.
    """
    sets.check_rows(sources, "the number of source nodes")
    sets.check_rows(targets, "the number of target nodes")
    src32 = sets.narrow(src, sources, what="the source of an edge")
    dst32 = sets.narrow(dst, targets, what="the target of an edge")
    _same_length(src32, "src", dst32, "dst")
    kept: Int32s | None = None
    heavy = None if weights is None else _weights(weights, src32.size)
    if heavy is not None and not heavy.all():
        kept = sets.where(heavy != 0)
        src32, dst32, heavy = sets.take(src32, kept), sets.take(dst32, kept), heavy[kept]
    when = None if times is None else checked_times(times, (len(src),), "an edge")
    if when is not None and kept is not None:
        when = when[kept]
    order = None if when is None else np.argsort(when, kind="stable").astype(np.int32)
    indptr, rows = sets.group(dst32, targets, order)
    ids = rows if kept is None else sets.take(kept, rows)
    return _made(
        sources,
        targets,
        indptr,
        sets.take(src32, rows),
        None if np.array_equal(ids, np.arange(len(src))) else ids,
        None if heavy is None else heavy[rows],
        None if when is None else when[rows],
    )


def checked(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    sources: int,
    *,
    ids: NDArray[Any] | None = None,
    weights: NDArray[Any] | None = None,
    times: NDArray[Any] | None = None,
) -> InEdges:
    """Edges that lie by target already, in memory or in a mapped file; nothing is copied.

    Args:
        indptr: shape (targets + 1,), int64, contiguous.
        indices, ids: shape (edges,), int32, contiguous.
        weights: shape (edges,), positive; times: shape (edges,), int64, ascending within a node.

    Raises:
        IndexError: an index is no node.
        TypeError: a dtype that is not the one above.
        ValueError: arrays that are not contiguous, lengths that do not fit, pointers or times that
            descend, weights that are not positive.
    """
    sets.check_rows(sources, "the number of source nodes")
    _plain(indptr, np.int64, "indptr")
    _plain(indices, np.int32, "indices")
    sets.check_rows(indices.size, "the number of edges")
    if indptr.size == 0 or indptr[0] != 0 or indptr[-1] != indices.size:
        raise ValueError(f"indptr must lead from 0 to the number of edges, {indices.size}")
    if (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"indptr descends at {int(np.argmax(indptr[1:] < indptr[:-1]))}")
    sets.check_rows(indptr.size - 1, "the number of target nodes")
    _in_range(indices, sources, "indices")
    if ids is not None:
        _plain(ids, np.int32, "ids")
        _same_length(ids, "ids", indices, "indices")
    heavy = None if weights is None else _weights(weights, indices.size)
    if heavy is not None and not heavy.all():
        raise ValueError(f"weights[{int(np.argmin(heavy))}] is 0; leave such edges out")
    when = None if times is None else checked_times(times, (indices.size,), "an edge")
    if when is not None:
        starts = np.zeros(indices.size, np.bool_)
        starts[indptr[:-1][indptr[:-1] < indices.size]] = True
        if bad := np.flatnonzero((when[1:] < when[:-1]) & ~starts[1:]).tolist():
            raise ValueError(f"times[{bad[0] + 1}] is before the one ahead of it, at one node")
    return _made(sources, indptr.size - 1, indptr, indices, ids, heavy, when)


def relation(edges: InEdges, source: int, target: int) -> kernels.Relation:
    """The edges as C reads them, between types of these numbers; not to outlive `edges`."""
    at = kernels.address
    return kernels.Relation(
        at(edges.indptr),
        at(edges.indices),
        at(edges.ids),
        at(edges.weights),
        at(edges.sums),
        at(edges.times),
        source,
        target,
    )


def _made(
    sources: int,
    targets: int,
    indptr: Int64s,
    indices: Int32s,
    ids: Int32s | None,
    weights: Floats | None,
    times: Int64s | None,
) -> InEdges:
    sums: Floats | None = None
    if weights is not None:
        weights = np.ascontiguousarray(weights)
        sums = np.empty_like(weights)
        call = kernels.library().gnnc_running_sums
        call(indptr.ctypes.data, targets, weights.ctypes.data, sums.ctypes.data, num_threads())
        if not np.isfinite(sums).all():
            raise ValueError("the weights of a node have a sum that is not finite")
    times = None if times is None else np.ascontiguousarray(times)
    return InEdges(sources, targets, indptr, indices, ids, weights, sums, times)


def _plain(array: NDArray[Any], dtype: type, what: str) -> None:
    if array.dtype != dtype:
        raise TypeError(f"{what} must be {np.dtype(dtype)}, got {array.dtype}")
    if array.ndim != 1 or not array.flags.c_contiguous:
        raise ValueError(f"{what} must have one dimension and be contiguous")


def _same_length(a: NDArray[Any], first: str, b: NDArray[Any], second: str) -> None:
    if a.size != b.size:
        raise ValueError(f"{first} has {a.size} entries and {second} has {b.size}")


def _in_range(indices: Int32s, count: int, what: str) -> None:
    low, high = (int(indices.min()), int(indices.max())) if indices.size else (0, -1)
    if low < 0 or high >= count:
        raise IndexError(f"{what} holds {low if low < 0 else high}, but there are {count} nodes")


def _weights(weights: NDArray[Any], edges: int) -> Floats:
    if weights.dtype.kind not in "fiu":
        raise TypeError(f"weights must hold numbers, got {weights.dtype}")
    if weights.shape != (edges,):
        raise ValueError(f"weights must have shape ({edges},), got {weights.shape}")
    found = np.asarray(weights, np.float64)
    if bad := np.flatnonzero(~(np.isfinite(found) & (found >= 0))).tolist():
        raise ValueError(
            f"weights[{bad[0]}] is {found[bad[0]]}; they must be finite and not negative"
        )
    return found


def checked_times(times: NDArray[Any], shape: tuple[int, ...], of: str) -> Int64s:
    """Times, one of each of some things, as int64.

    Raises:
        TypeError: they are no integers.
        ValueError: they have another shape, or are too large.
    """
    if times.dtype.kind not in "iu":
        raise TypeError(f"times must hold integers, got {times.dtype}")
    if times.shape != shape:
        raise ValueError(f"times must have shape {shape}, one {of}, got {times.shape}")
    if times.dtype == np.uint64 and times.size and times.max() > np.iinfo(np.int64).max:
        raise ValueError(f"times[{int(times.argmax())}] is {times.max()}, too large for int64")
    return np.ascontiguousarray(times, np.int64)
