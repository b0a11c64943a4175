"""The rows of an exchange as runs of bytes, one a rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


class Among(Protocol):
    """A rank among `size`."""

    rank: int
    size: int


def as_bytes(array: NDArray[Any]) -> Bytes:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def checked_segments(
    sent: NDArray[Any],
    send_counts: Sequence[int],
    received: NDArray[Any],
    receive_counts: Sequence[int],
    among: Among,
) -> tuple[list[Bytes], list[Bytes]]:
    """The memory of the rows for each rank, and of those from each.

    Raises:
        ValueError: arrays or counts do not fit each other, naming the argument.
        TypeError: rows of Python objects.
    """
    if sent.dtype != received.dtype:
        raise ValueError(f"received has rows of {received.dtype}, sent of {sent.dtype}")
    if sent.dtype.hasobject:
        raise TypeError("sent has rows of Python objects")
    if sent.ndim < 1 or sent.shape[1:] != received.shape[1:] or received.ndim < 1:
        raise ValueError(f"received has the shape {received.shape}, sent has {sent.shape}")
    if not received.flags.writeable:
        raise ValueError("received cannot be written")
    out = _segments("sent", sent, "send_counts", send_counts, among.size)
    into = _segments("received", received, "receive_counts", receive_counts, among.size)
    own = among.rank
    if len(out[own]) != len(into[own]):
        raise ValueError(
            f"rank {own} sends itself {send_counts[own]} rows (send_counts) and receives "
            f"{receive_counts[own]} of them (receive_counts)"
        )
    return out, into


def _segments(
    name: str, array: NDArray[Any], counts_name: str, counts: Sequence[int], size: int
) -> list[Bytes]:
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous")
    if len(counts) != size:
        raise ValueError(f"{counts_name} has {len(counts)} numbers for {size} ranks")
    if min(counts) < 0:
        raise ValueError(f"{counts_name} has a negative number: {min(counts)}")
    if sum(counts) != len(array):
        raise ValueError(f"{counts_name} adds up to {sum(counts)}, {name} has {len(array)} rows")
    width = math.prod(array.shape[1:]) * array.itemsize
    ends = [0]
    for count in counts:
        ends.append(ends[-1] + int(count) * width)
    memory = as_bytes(array)
    return [memory[a:b] for a, b in pairwise(ends)]
