"""Memory for results, saved values and scratch that is kept when it is freed, for the next call.

Fresh memory is mapped and cleared page by page on its first touch, which costs as much as the
kernels that fill it. Blocks come from the heap that torch uses too (runtime/cpu/heap.py) where it
lends them; else from a pool of regions. Those are private anonymous mappings, with huge pages
where the system has them, since gathers touch rows all over a buffer. A pool never holds more than
was in use at one time.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .heap import HUGE_PAGE, heap, libc

SMALL = 256 * 1024
"""Below this many bytes the C library's allocator keeps memory by itself."""

COLOURS, COLOUR = 29, 4096 + 5 * 64
"""Long regions begin so many bytes after one another's place in a huge page: streams that keep the
same distance from the start of several buffers would meet in the same sets of the caches.
"""
LONGEST_SPARE = 4 * 1024 * 1024
"""Scratch of more bytes is not kept between calls."""
WASTE = 1.25
"""A region may be so many times as long as what is asked for, though that be more memory than was
ever in use.
"""


@dataclass(frozen=True, eq=False)
class Region:
    """Mapped memory from `address`, `size` bytes long."""

    mapping: mmap.mmap
    address: int
    size: int

    def close(self) -> None:
        """Unmap it."""
        self.mapping.close()


class Memory:
    """Memory from `address` on in somebody's hands; it goes back when the last reference to this
    object dies. NumPy and torch arrays hold one through ``__array_interface__``.
    """

    def __init__(self, address: int) -> None:
        self.address = address

    def shaped(self, shape: tuple[int, ...], typestr: str) -> Leased:
        """Its start as an array; `typestr` is NumPy's, as ``"<f4"``."""
        return Leased(self, shape, typestr)


class Lease(Memory):
    """A region of a pool."""

    def __init__(self, pool: Pool, region: Region) -> None:
        super().__init__(region.address)
        self._give, self._region = pool.give, region

    def __del__(self) -> None:
        # nothing to look up in modules, which may be gone at the end of the process
        self._give(self._region)


class Block(Memory):
    """A block of the heap."""

    def __init__(self, address: int) -> None:
        super().__init__(address)
        self._free = libc().free

    def __del__(self) -> None:
        self._free(self.address)


class Spares:
    """Blocks of the heap for the scratch of calls. One that is given back stays here for the next
    call: to ask the heap for it, and the system for huge pages there, takes as long as the kernels
    of a small graph do. It is never longer than `LONGEST_SPARE`.
    """

    def __init__(self) -> None:
        self._free: list[Scratch] = []  # one at most; any thread may put it there, or take it

    def take(self, size: int) -> Memory:
        """As `take` of this module."""
        if size > LONGEST_SPARE or not heap.lends(size):
            return take(size)
        try:
            found = self._free.pop()
        except IndexError:
            found = None
        if found is None or found.size < size:
            length = rounded(size)
            found = Scratch(Block(heap.block(length)), length)
        return Borrowed(self, found)

    def give(self, scratch: Scratch) -> None:
        """Keep it, in the place of a shorter one."""
        if not self._free or self._free[0].size < scratch.size:
            self._free[:] = [scratch]

    def release(self) -> None:
        """Free what is here."""
        self._free.clear()


@dataclass(frozen=True, eq=False)
class Scratch:
    """A block of `size` bytes."""

    block: Block
    size: int


class Borrowed(Memory):
    """A block that goes back to the spares."""

    def __init__(self, spares: Spares, scratch: Scratch) -> None:
        super().__init__(scratch.block.address)
        self._give, self._scratch = spares.give, scratch

    def __del__(self) -> None:
        self._give(self._scratch)


class Leased:
    """What NumPy reads to make an array on a lease."""

    def __init__(self, memory: Memory, shape: tuple[int, ...], typestr: str) -> None:
        self.memory = memory
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": shape,
            "typestr": typestr,
            "data": (memory.address, False),
        }


class Pool:
    """Regions in use and free ones, made by `region` of a length and a colour. Any thread may take,
    and free what another one took."""

    def __init__(self, region: Callable[[int, int], Region] | None = None) -> None:
        self._new = region or new_region
        self._lock = threading.Lock()
        self._free: list[Region] = []  # the one used last at the end
        # finalizers run wherever memory is collected, within `take` too: they only append here
        self._given: deque[Region] = deque()
        self._in_use = 0
        self._most = 0
        self._mapped = 0

    @property
    def held(self) -> int:
        """Bytes of all regions, in use or free."""
        with self._lock:
            self._collect()
            return self._in_use + sum(r.size for r in self._free)

    def take(self, size: int) -> Lease:
        """At least `size` bytes, aligned to a page at least; their content is undefined.

        Raises:
            MemoryError: the system has no more.
        """
        length = rounded(size)
        with self._lock:
            self._collect()
            region = self._fitting(size, length)
            if region is None:
                self._trim(self._most - self._in_use - length)
                self._mapped += 1
                region = self._new(length, self._mapped % COLOURS * COLOUR)
            self._in_use += region.size
            self._most = max(self._most, self._in_use)
        return Lease(self, region)

    def give(self, region: Region) -> None:
        """Take a region back."""
        self._given.append(region)

    def release(self) -> None:
        """Return all free memory to the system, and forget how much was in use."""
        with self._lock:
            self._collect()
            self._trim(0)
            self._most = self._in_use

    def _collect(self) -> None:
        while self._given:
            region = self._given.popleft()
            self._in_use -= region.size
            self._free.append(region)

    def _fitting(self, size: int, length: int) -> Region | None:
        """The shortest free region that will do; among equals the one used last, which the caches
        may still hold. A much longer one does where no more comes into use than was before: the
        phases of a program ask for different lengths in turns, and would else map and unmap them.
        """
        longest = max(WASTE * length, self._most - self._in_use)
        best: Region | None = None
        for region in reversed(self._free):
            if size <= region.size <= longest and (best is None or region.size < best.size):
                best = region
        if best is not None:
            self._free.remove(best)
        return best

    def _trim(self, most: int) -> None:
        """Unmap free regions, those unused for longest first, until at most `most` bytes are
        free.
        """
        free = sum(r.size for r in self._free)
        while self._free and free > max(most, 0):
            region = self._free.pop(0)
            free -= region.size
            region.close()


def rounded(size: int) -> int:
    """A length that buffers of about `size` bytes share: an eighth of a power of two, and whole
    pages.
    """
    step = max(mmap.PAGESIZE, 1 << max(size.bit_length() - 4, 0))
    return math.ceil(max(size, 1) / step) * step


def new_region(size: int, colour: int) -> Region:
    """Map memory; a long region begins `colour` bytes after the start of a huge page."""
    huge = size >= HUGE_PAGE
    spare = HUGE_PAGE + colour if huge else 0
    try:
        # forked children would share the memory by default
        mapping = mmap.mmap(-1, size + spare, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no memory for a buffer of {size} bytes: {error}") from error
    # this view ends with the statement, or the mapping could not be closed
    start = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    if not huge:
        return Region(mapping, start, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        mapping.madvise(mmap.MADV_HUGEPAGE)
    return Region(mapping, -(-start // HUGE_PAGE) * HUGE_PAGE + colour, size)


pool = Pool()
"""The pool of all programs of this process."""

spares = Spares()
"""Their scratch."""


def take(size: int) -> Memory:
    """At least `size` bytes for a program, aligned to a page at least; their content is undefined.

    Raises:
        MemoryError: the system has no more.
    """
    return Block(heap.block(size)) if heap.lends(size) else pool.take(size)


def release_memory() -> None:
    """Give memory that compiled programs keep for their next call back to the system. What is in
    use stays.
    """
    pool.release()
    spares.release()
    heap.trim()
