"""How the blocks of a device share the rows of groups: tables that are made once a graph.

Work is counted as kernels' schedules do: a row of a group is 1, a group `row_cost`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


def cuts(ptr: Int64, row_cost: int, grain: int, chunks: int) -> Int64:
    """Where each chunk of groups begins, and the end of the last: at most `chunks` of about `grain`
    units of work, none of no groups at all. `ptr` says where each group begins (int64, one more
    than there are groups).
    """
    count = len(ptr) - 1
    work = ptr + row_cost * np.arange(count + 1, dtype=np.int64)
    total = int(work[-1])
    parts = min(-(-total // grain), chunks, count)
    if parts <= 0:
        return np.array([0, count], dtype=np.int64) if count else np.zeros(1, np.int64)
    goals = total * np.arange(1, parts, dtype=np.int64) // parts
    inner = np.searchsorted(work[:-1], goals, side="left")
    return np.concatenate([[0], inner, [count]]).astype(np.int64)


def pieces(ptr: Int64, piece: int) -> Int64:
    """The pieces of groups of more than two times `piece` rows, in order: rows of (group, first
    row, end), int64."""
    return _cut(ptr, piece, 2 * piece)


def partitions(ptr: Int64, piece: int) -> Int64:
    """The same of all groups that have rows."""
    return _cut(ptr, piece, 0)


def _cut(ptr: Int64, piece: int, longest: int) -> Int64:
    length = np.diff(ptr)
    (long,) = np.nonzero(length > longest)
    counts = -(-length[long] // piece)
    first = np.concatenate([[0], np.cumsum(counts)])
    group = np.repeat(long, counts)
    number = np.arange(int(first[-1])) - np.repeat(first[:-1], counts)
    begin = ptr[group] + number * piece
    end = np.minimum(begin + piece, ptr[group + 1])
    return np.stack([group, begin, end], axis=1).astype(np.int64)
