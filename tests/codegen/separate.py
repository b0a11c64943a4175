"""Calls a phase with every buffer in an allocation of its own and exact size, so that a sanitizer
sees each access beside a buffer, and a wrong index cannot land in another one."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from gnnc.runtime.carrier import Carrier
from gnnc.runtime.memory import Memory
from gnnc.runtime.program import Phase, PhaseOnGraph
from gnnc.runtime.sets.tables import Tables

_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]


class Allocate(Protocol):
    def __call__(self, size: int, align: int = 1) -> int:
        """The address of `size` bytes."""
        ...


@contextmanager
def memory() -> Generator[Allocate]:
    """Gives memory that is freed when the block is left."""
    taken: list[int] = []

    def allocate(size: int, align: int = 1) -> int:
        rounded = -(-size // align) * align or align
        taken.append(_libc.malloc(size) if align == 1 else _libc.aligned_alloc(align, rounded))
        return taken[-1]

    try:
        yield allocate
    finally:
        for address in taken:
            _libc.free(address)


def call_at(phase: PhaseOnGraph, tables: Tables, addresses: Mapping[int, int]) -> None:
    """Run a phase; `addresses` are those of inputs and outputs by their place in the argument
    array. Temporaries and workspace are allocated one by one."""
    pointers = (ctypes.c_void_p * max(len(phase.fixed), 1))(*phase.fixed)
    for k, address in addresses.items():
        pointers[k] = address
    with memory() as allocate:
        for k, b in enumerate(phase.phase.buffers):
            if b["kind"] == "temporary":
                pointers[k] = allocate(phase.bytes[k])
        phase.phase.entry.run(phase, allocate(phase.phase.workspace, align=64), pointers)


def call_separately(phase: PhaseOnGraph, tables: Tables, arrays: Mapping[int, Any]) -> None:
    """Run a phase; `arrays` are its inputs and outputs by their place in the argument array.

    Rows of inputs and outputs are copied to memory that is aligned to their element only.
    """
    with memory() as allocate:
        copies: dict[int, int] = {}
        for k, x in arrays.items():
            # malloc aligns to 16 bytes: one element further, rows are as ill-aligned as they may be
            copies[k] = allocate(x.nbytes + x.itemsize) + x.itemsize
            ctypes.memmove(copies[k], x.ctypes.data, x.nbytes)
        call_at(phase, tables, copies)
        for k, x in arrays.items():
            ctypes.memmove(x.ctypes.data, copies[k], x.nbytes)


class SeparatePhase(PhaseOnGraph):
    """A phase whose calls take memory of their own for each buffer."""

    def __init__(
        self, phase: Phase, tables: Tables, memory: Memory, carrier: Carrier | None
    ) -> None:
        super().__init__(phase, tables, memory, carrier)
        self.tables = tables

    def call(self, addresses: Mapping[int, int], spent: tuple[int, ...] = ()) -> None:
        call_at(self, self.tables, addresses)
        for k in spent:  # nobody reads it any more
            ctypes.memset(addresses[k], 255, self.bytes[k])
