"""How memory is mapped that torch allocates outside compiled code.

A loss that is not compiled makes three or four arrays as long as the result of the model, and frees
them in every epoch. The C library returns such blocks to the system, so each epoch maps and clears
them page by page again; of 27 MB each, that was nearly a fifth of the epoch of a GCN. Huge pages
take one page fault where small ones take 512, and nothing more is kept. torch asks the system for
them, in blocks of 2 MiB and more, where an environment variable says so when it allocates its first
tensor (pytorch/pytorch#93888).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"
"""torch's variable: 1 or 0."""

PLAIN_TORCH = {HUGE_PAGES: "0"}
"""The environment of a process that imports gnnc and shall have torch as it is without it."""

SHORT = 8 * 1024 * 1024
"""Blocks of fewer bytes hold few whole huge pages, or none."""

KEPT = 4 * SHORT
"""So many free bytes at the end of glibc's heap stay with the process."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")


def use_huge_pages() -> bool:
    """Let torch ask for huge pages where the user has not set its variable, and suit glibc to that;
    whether both came in time and were possible. To be called before torch allocates a tensor.
    """
    if sys.platform != "linux":
        return False
    os.environ.setdefault(HUGE_PAGES, "1")
    return os.environ[HUGE_PAGES] == "1" and _will_ask() and _keep_short_blocks()


def _will_ask() -> bool:
    """Whether torch asks for huge pages; no if it allocated a tensor before it was told to."""
    torch = sys.modules.get("torch")
    if torch is None:
        return True
    block = torch.empty(SHORT, dtype=torch.uint8, device="cpu")
    return block.data_ptr() % mmap.PAGESIZE == 0  # else it aligns to 64 bytes


def _keep_short_blocks() -> bool:
    """Let glibc take blocks of up to `SHORT` bytes from its heap, and longer ones from the system.

    By itself it takes blocks from the heap that are as long as those freed so far (mallopt(3)), but
    never finds that out of blocks that are aligned to a page, as torch's are when it asks for huge
    pages: all are mapped anew, short ones without a huge page in them. The user's own settings in
    the environment stand, and other C libraries are left alone.
    """
    if any(name in os.environ for name in _USERS):
        return False
    if "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # the first call ends glibc's own adjustment of both, and leaves the second at 128 KiB
    return bool(mallopt(_MMAP_THRESHOLD, SHORT)) and bool(mallopt(_TRIM_THRESHOLD, KEPT))
