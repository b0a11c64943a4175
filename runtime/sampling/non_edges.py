"""Pairs of nodes that no edge joins: what a model of links is to tell from edges.

They are drawn without trial and error. The pairs are counted by target and numbered; a number is
drawn, and a search finds its pair. So each has exactly the same probability, in a dense graph as in
a sparse one.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.crew import crews
from ..sets import kernels as sets
from ..sets.kernels import Int32s
from . import kernels
from .sampler import Key


class NonEdges:
    """The pairs that the edges from `src` to `dst` do not join.

    Args:
        src, dst: shape (edges,), integers below `sources` and `targets`. A pair may come more than
            once.
        loops: whether a node and itself are such a pair, where no edge joins them; only of one type
            of nodes can they be left out.

    Attributes:
        count: how many there are.

    Raises:
        IndexError: an end of an edge is no node.
        ValueError: arrays of different lengths; loops to leave out among two types.
    """

    def __init__(
        self,
        src: NDArray[Any],
        dst: NDArray[Any],
        sources: int,
        targets: int,
        *,
        loops: bool = True,
    ) -> None:
        src32 = sets.narrow(src, sources, what="the source of an edge")
        dst32 = sets.narrow(dst, targets, what="the target of an edge")
        if src32.size != dst32.size:
            raise ValueError(f"src has {src32.size} entries and dst has {dst32.size}")
        if not loops:
            if sources != targets:
                raise ValueError(f"{sources} sources and {targets} targets are of two types")
            every = np.arange(sources, dtype=np.int32)
            src32, dst32 = np.concatenate([src32, every]), np.concatenate([dst32, every])
        found = sets.runs([dst32, src32], [targets, sources]) if src32.size else None
        first = found.first if found is not None else np.zeros(0, np.int32)
        self._sources = np.ascontiguousarray(src32[first])
        degrees = np.bincount(dst32[first], minlength=targets).astype(np.int64)
        self._ptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        self._free = np.concatenate([[0], np.cumsum(sources - degrees)]).astype(np.int64)
        self.sources, self.targets = sources, targets
        self._structure = self._pointers()

    def _pointers(self) -> kernels.NonEdges:
        return kernels.NonEdges(
            self._ptr.ctypes.data,
            self._free.ctypes.data,
            self._sources.ctypes.data,
            self.sources,
            self.targets,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_structure"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._structure = self._pointers()

    @property
    def count(self) -> int:
        return int(self._free[-1])

    def every(self) -> Int32s:
        """All of them, by target and then by source: shape (2, count), int32, sources above
        targets. For graphs where they are not many more than edges: it takes a byte for each pair
        of nodes, with an edge or without."""
        free = np.ones((self.targets, self.sources), np.bool_)
        free[np.repeat(np.arange(self.targets), np.diff(self._ptr)), self._sources] = False
        targets, sources = np.nonzero(free)
        return np.stack([sources, targets]).astype(np.int32)

    def pairs(
        self,
        count: int,
        key: Key = Key(),  # noqa: B008
        *,
        first: int = 0,
        threads: int | None = None,
    ) -> Int32s:
        """Pairs, drawn one by one from all: shape (2, count), int32, sources above targets.

        Args:
            first: the number of the first one: random numbers go by (key, number).

        Raises:
            ValueError: a negative number; every pair has an edge.
        """
        _check_numbers(count, first)
        if count and not self.count:
            raise ValueError("every pair of nodes has an edge")
        made = np.empty((2, count), np.int32)
        call = kernels.library().gnnc_free_pairs
        arguments = (
            ctypes.addressof(self._structure),
            count,
            first,
            key.seed,
            key.epoch,
            key.step,
            made[0].ctypes.data,
            made[1].ctypes.data,
        )
        crews.run("pairs", count, lambda many: call(*arguments, many), threads)
        return made

    def sources_for(
        self,
        targets: NDArray[Any],
        each: int,
        key: Key = Key(),  # noqa: B008
        *,
        first: int = 0,
        threads: int | None = None,
    ) -> Int32s:
        """For each of the targets some sources that no edge leads from to it, drawn one by one:
        shape (len(targets), each), int32; -1 where all lead to it.

        Raises:
            IndexError: a target is no node.
            ValueError: a negative number.
        """
        _check_numbers(each, first)
        given = sets.narrow(np.asarray(targets), self.targets, what="targets")
        made = np.empty((given.size, each), np.int32)
        call = kernels.library().gnnc_free_sources
        arguments = (
            ctypes.addressof(self._structure),
            given.ctypes.data,
            given.size,
            each,
            first,
            key.seed,
            key.epoch,
            key.step,
            made.ctypes.data,
        )
        crews.run("sources", made.size, lambda many: call(*arguments, many), threads)
        return made


def _check_numbers(count: int, first: int) -> None:
    if count < 0 or first < 0:
        raise ValueError(f"numbers must not be negative, got {count} and {first}")
