"""The edges of a directed multigraph in blocks, so that a list of edges need not fit in memory."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import mapped

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Block = tuple[Int64, Int64]
BLOCK = 1 << 20
"""Edges of a file that are in memory at once."""
MOST_NODES = 2**31 - 1
"""Rows of a rank are counted in int32, as everywhere in the runtime."""


@dataclass(frozen=True)
class Edges:
    """Edges src -> dst between nodes 0 .. nodes - 1, in an order that gives each its number.

    `blocks` begins a new pass over them with each call: pairs of equally long integer arrays
    (sources, destinations). There may be loops, equal edges, and nodes without any.

    Iteration gives the blocks as int64 arrays.

    Raises:
        ValueError: `nodes` is negative or above 2^31 - 1; when iterated, a block that is no pair of
            equally long vectors, or has an end that is no node.
        TypeError: `nodes` or the ends in a block are no integers.
    """

    nodes: int
    blocks: Callable[[], Iterable[tuple[NDArray[Any], NDArray[Any]]]]

    def __post_init__(self) -> None:
        if not 0 <= operator.index(self.nodes) <= MOST_NODES:
            raise ValueError(f"nodes: {self.nodes} is not from 0 to {MOST_NODES}")

    def __iter__(self) -> Iterator[Block]:
        first = 0
        for src, dst in self.blocks():
            if src.ndim != 1 or src.shape != dst.shape:
                raise ValueError(
                    f"src and dst: arrays of shapes {src.shape} and {dst.shape}, not two vectors "
                    "of one length"
                )
            yield self._ends("src", src, first), self._ends("dst", dst, first)
            first += len(src)

    def _ends(self, name: str, ends: NDArray[Any], first: int) -> Int64:
        if ends.dtype.kind not in "iu":
            raise TypeError(f"{name}: an array of {ends.dtype}, not of integers")
        wrong = np.flatnonzero((ends < 0) | (ends >= self.nodes))
        if len(wrong):
            at = int(wrong[0])
            raise ValueError(
                f"{name}: edge {first + at} has the end {ends[at]}, of {self.nodes} nodes"
            )
        return np.ascontiguousarray(ends, np.int64)


def in_memory(src: NDArray[Any], dst: NDArray[Any], nodes: int) -> Edges:
    """The edges of two vectors of integers.

    Raises:
        ValueError, TypeError: as `Edges` does when iterated.
    """
    found = Edges(nodes, lambda: [(src, dst)])
    for _ in found:
        pass
    return found


def in_file(path: Path, nodes: int | None = None, block: int = BLOCK) -> Edges:
    """The edges of a `.npy` file of 2 x edges integers (sources, destinations), which is read in
    blocks and never held as a whole. Without `nodes` there are as many as the ends tell.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file, or `block` is not positive.
        TypeError: it does not hold integers.
    """
    if block < 1:
        raise ValueError(f"block: {block} edges, and it should be at least 1")
    array = mapped.load(path)
    if array.ndim != 2 or array.shape[0] != 2:
        raise ValueError(f"{path} has an array of shape {array.shape}, not 2 x edges")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{path} holds {array.dtype}, not integers")

    def blocks() -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        for first in range(0, array.shape[1], block):
            part = array[:, first : first + block]
            yield part[0].copy(), part[1].copy()
            for row in part:
                mapped.give_back(row, written=False)

    if nodes is None:
        ends = (max(int(src.max()), int(dst.max())) for src, dst in blocks())
        nodes = 1 + max(ends, default=-1)
    return Edges(nodes, blocks)


def fingerprint(edges: Edges) -> str:
    """SHA-256 of the number of nodes and of all edges in order, in whatever blocks."""
    sources, destinations = hashlib.sha256(), hashlib.sha256()
    for src, dst in edges:
        sources.update(src.astype("<i8").data)
        destinations.update(dst.astype("<i8").data)
    whole = hashlib.sha256(str(edges.nodes).encode())
    whole.update(sources.digest() + destinations.digest())
    return whole.hexdigest()
