"""Rows that cross in chunks: which rows are of which, and the remote edges that read them.

A chunk has, of what each rank sends to each other one, a run of as many rows; so both sides know
which these are. Remote edges lie by the chunk of the row that they read, those of a chunk in the
order in which they were.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


def chunk_of(peer: Int64, chunks: int) -> Int64:
    """The chunk of each row of messages, int64 [rows], from the rank at the other end of each, int
    [rows] ascending."""
    count = np.bincount(peer)
    first = np.cumsum(count) - count
    return (np.arange(len(peer)) - first[peer]) * chunks // np.maximum(count, 1)[peer]


def sort_edges(
    ends: Int64, numbers: Int64, local: int, owned: int, ghost_chunk: Int64, chunks: int
) -> tuple[Int64, Int64, tuple[int, ...]]:
    """Remote edges in the order of their chunks. With several these are new arrays: pages of files
    that are mapped may be given back at any time, and what was written to them with them.

    Args:
        ends: int64 [2, edges], places among the `owned` nodes, and behind these among the ghosts.
        numbers: int64 [edges].
        local: how many local edges come first.
        owned: how many nodes the rank has.
        ghost_chunk: int64 [ghosts], the chunk of each.

    Returns:
        `ends`, `numbers`, and where the local edges end, and those of each chunk.
    """
    if chunks == 1:
        return ends, numbers, (local, len(numbers))
    chunk = ghost_chunk[ends[0, local:] - owned]
    order = np.concatenate([np.arange(local), local + np.argsort(chunk, kind="stable")])
    stops = local + np.cumsum(np.bincount(chunk, minlength=chunks))
    return ends[:, order], numbers[order], (local, *stops.tolist())
