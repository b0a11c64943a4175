"""Arrays that lie in files: the system has in memory what is read of them, while it has room.

They can be written to, which leaves the file as it is.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cpu.heap import libc

BLOCK = 1 << 24
"""Bytes that are read between two times that memory is given back."""
_PAGEOUT = 21  # sys/mman.h: Linux 5.4 and newer
_regions: dict[int, tuple[weakref.ref[Any], int]] = {}
"""By address: the mappings that live, and where they end."""


def load(path: Path) -> NDArray[Any]:
    """The array of a `.npy` file, mapped into memory.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file, or holds objects.
    """
    try:
        found: Any = np.load(path, mmap_mode="c", allow_pickle=False)
    except (EOFError, ValueError) as error:
        raise ValueError(f"{path} is no .npy file of numbers: {error}") from error
    region: mmap.mmap | None = getattr(found, "_mmap", None)
    if region is None:
        raise ValueError(f"{path} is no .npy file: it holds several arrays")
    start: int = np.frombuffer(region, np.uint8).ctypes.data
    _regions[start] = weakref.ref(region, lambda _: _forget(start)), start + len(region)
    return np.asarray(found)


def _forget(start: int) -> None:
    _regions.pop(start, None)


def holds(address: int) -> bool:
    """Whether an address lies in a file that `load` has mapped."""
    return _region(address) is not None


def _region(address: int) -> tuple[int, int] | None:
    for start, (_, end) in list(_regions.items()):
        if start <= address < end:
            return start, end
    return None


def give_back(array: NDArray[Any], *, written: bool = True) -> None:
    """Lets the system take the memory of an array that lies in a file: what is read of it next
    comes from there. What was written to it stays. Does nothing to any other array, and where the
    system has no such request.

    Of an array that nobody can have written to (not `written`) the system keeps what it has read of
    the file, as long as it likes, for the next who reads it. Rows lie one behind the other, with
    gaps or without."""
    region = _region(array.ctypes.data)
    if region is None or not array.size:
        return
    low = array.ctypes.data
    last = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
    high = low + last + array.itemsize
    low -= low % mmap.PAGESIZE
    high = min(-(-high // mmap.PAGESIZE) * mmap.PAGESIZE, region[1])
    advice = _PAGEOUT if written else mmap.MADV_DONTNEED
    libc().madvise(ctypes.c_void_p(low), ctypes.c_size_t(high - low), advice)


def passing(array: NDArray[Any], *, written: bool = True) -> Iterator[tuple[int, NDArray[Any]]]:
    """An array in blocks along its first axis, with where each begins; of one that lies in a file,
    a block is given back when the next is asked for. Others are one block."""
    count = len(array)
    if not count or not holds(array.ctypes.data):
        yield 0, array
        return
    step = max(1, BLOCK * count // max(1, array.nbytes))
    for first in range(0, count, step):
        block = array[first : first + step]
        yield first, block
        give_back(block, written=written)
