"""How much freed memory the C library keeps for the process's next allocation.

What runs outside compiled code, as a loss or an optimizer, takes its temporaries from the C library
and frees them in every epoch. glibc gives the free end of its heap back to the system as soon as it
is longer than twice the longest mapped block that was freed so far (mallopt(3)). A loss frees three
or four arrays as long as the result of the model at one time, so all of them are mapped and cleared
page by page again in the next epoch.
"""

from __future__ import annotations

import ctypes
import functools
import os

LONGEST = 32 * 1024 * 1024
"""Blocks of more bytes are mappings of their own, which glibc never keeps; its own upper limit."""

KEPT = 4 * LONGEST
"""So many free bytes at the end of the heap stay with the process."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")


@functools.cache
def keep_freed_memory() -> bool:
    """Let the heap keep `KEPT` bytes that are free, once a process; whether that was done.

    A user's own settings in the environment stand, and other C libraries are left as they are.
    """
    if any(name in os.environ for name in _USERS):
        return False
    if "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # either call ends glibc's own adjustment of both, so the second needs the first
    return bool(mallopt(_MMAP_THRESHOLD, LONGEST)) and bool(mallopt(_TRIM_THRESHOLD, KEPT))


def give_back() -> None:
    """Return what the heap keeps to the system, where the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
