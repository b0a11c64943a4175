"""Calls a phase with every buffer in an allocation of its own and exact size, so that a sanitizer
sees each access beside a buffer, and a wrong index cannot land in another one."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from typing import Any

from gnnc.runtime import threads
from gnnc.runtime.program import PhaseOnGraph
from gnnc.runtime.tables import Tables

_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]


def call_separately(phase: PhaseOnGraph, tables: Tables, arrays: Mapping[int, Any]) -> None:
    """Run a phase; `arrays` are its inputs and outputs by their place in the argument array.

    Rows of inputs and outputs are copied to memory that is aligned to their element only.
    """
    memory: list[int] = []

    def allocate(size: int) -> int:
        memory.append(_libc.malloc(size))
        return memory[-1]

    pointers = (ctypes.c_void_p * max(len(phase.fixed), 1))(*phase.fixed)
    copies: dict[int, int] = {}
    for k, x in arrays.items():
        # malloc aligns to 16 bytes: one element further, rows are as ill-aligned as they may be
        copies[k] = allocate(x.nbytes + x.itemsize) + x.itemsize
        ctypes.memmove(copies[k], x.ctypes.data, x.nbytes)
        pointers[k] = copies[k]
    for k, b in enumerate(phase.phase.buffers):
        if b["kind"] == "temporary":
            count = tables.size(b["domain"]) if b["domain"] else 1
            pointers[k] = allocate(count * math.prod(b["row"]) * b["bytes"])
    workspace = _libc.aligned_alloc(64, -(-phase.phase.workspace // 64) * 64 or 64)
    memory.append(workspace)
    phase.phase.function(
        threads.num_threads(),
        workspace,
        ctypes.addressof(phase.sizes),
        ctypes.addressof(pointers),
    )
    for k, x in arrays.items():
        ctypes.memmove(x.ctypes.data, copies[k], x.nbytes)
    for address in memory:
        _libc.free(address)
