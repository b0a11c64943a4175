"""The heap of the C library, which compiled programs share with torch.

A loss that is not compiled makes three or four arrays as long as the result of the model, and frees
them in every epoch, while the temporaries of the model are free; then it is the other way round.
The C library returns such blocks to the system, so each epoch would map and clear them page by page
again. Told to keep them, it serves one with what the other has freed: neither takes memory of its
own, and nothing is cleared. glibc does so for blocks of up to 32 MiB; ours lie in a pool
(runtime/cpu/pool.py) where they are longer.

Huge pages take one page fault where small ones take 512. torch asks the system for them, in blocks
of 2 MiB and more, where an environment variable says so when it allocates its first tensor
(pytorch/pytorch#93888).
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys
import threading

HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
"""torch's variable: 1 or 0."""

PLAIN_TORCH = {HUGE_PAGES: "0"}
"""The environment of a process that imports gnnc and shall have torch as it is without it."""

HUGE_PAGE = 2 * 1024 * 1024
BOUND = 32 * 1024 * 1024
"""glibc takes longer blocks from the system, whatever it is told (mallopt(3))."""

LONGEST = BOUND - 2 * HUGE_PAGE
"""Blocks of up to so many bytes stay below the bound with what alignment adds."""

KEPT = 8 * BOUND
"""So many free bytes at the end of the heap stay with the process."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")
_NEEDED = ("mallopt", "malloc_trim", "posix_memalign", "madvise")


@functools.cache
def libc() -> ctypes.CDLL:
    """The C library of this process."""
    library = ctypes.CDLL(None)
    library.free.argtypes = [ctypes.c_void_p]
    library.free.restype = None
    return library


class Heap:
    """The heap of this process; `shared` where it keeps long blocks for torch and for us."""

    def __init__(self) -> None:
        self.shared = False

    def share(self) -> None:
        """Let torch ask for huge pages where the user has not set its variable, and glibc keep long
        blocks. To be called before torch allocates a tensor; else, and where it cannot be done,
        nothing is changed.
        """
        if sys.platform != "linux":
            return
        os.environ.setdefault(HUGE_PAGES, "1")
        self.shared = os.environ[HUGE_PAGES] == "1" and torch_will_ask() and self._keep_blocks()

    def _keep_blocks(self) -> bool:
        """Let glibc take blocks from its heap, and keep what is freed there.

        By itself it takes blocks from the heap that are as long as those freed so far, but never
        finds that out of blocks that are aligned to a page, as torch's are when it asks for huge
        pages: all are mapped anew. The user's own settings in the environment stand, and other C
        libraries are left alone.
        """
        if any(name in os.environ for name in _USERS):
            return False
        if "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
            return False
        if not all(hasattr(libc(), name) for name in _NEEDED):
            return False
        # the first call ends glibc's own adjustment of both, and leaves the second at 128 KiB
        mallopt = libc().mallopt
        return bool(mallopt(_MMAP_THRESHOLD, BOUND)) and bool(mallopt(_TRIM_THRESHOLD, KEPT))

    def lends(self, size: int) -> bool:
        """Whether so many bytes are to be taken from here. Threads but the main one have heaps of
        their own in glibc, which end at 64 MiB.
        """
        main = threading.get_ident() == threading.main_thread().ident
        return self.shared and size <= LONGEST and main

    def block(self, size: int) -> int:
        """The address of so many bytes, aligned to a page, in huge pages where they are many. Their
        content is undefined; `free` of the C library takes them back.

        Raises:
            MemoryError: the system has no more.
        """
        address = ctypes.c_void_p()
        long = size >= HUGE_PAGE
        alignment = ctypes.c_size_t(HUGE_PAGE if long else mmap.PAGESIZE)
        length = ctypes.c_size_t(max(size, 1))
        if libc().posix_memalign(ctypes.byref(address), alignment, length):
            raise MemoryError(f"no memory for a buffer of {size} bytes")
        assert address.value is not None
        if long and hasattr(mmap, "MADV_HUGEPAGE"):
            libc().madvise(address, length, mmap.MADV_HUGEPAGE)
        return address.value

    def trim(self) -> None:
        """Return free memory to the system."""
        if self.shared:
            libc().malloc_trim(ctypes.c_size_t(0))


def torch_will_ask() -> bool:
    """Whether torch asks for huge pages; no if it allocated a tensor before it was told to."""
    torch = sys.modules.get("torch")
    if torch is None:
        return True
    block = torch.empty(4 * HUGE_PAGE, dtype=torch.uint8, device="cpu")
    return block.data_ptr() % mmap.PAGESIZE == 0  # else it aligns to 64 bytes


heap = Heap()
