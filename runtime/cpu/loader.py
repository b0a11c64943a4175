"""Programs of the host: C that the compiler made a shared object of, a function a phase."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comm import Call
from . import threads, toolchain
from .crew import Crews
from .memory import HOST, HostMemory

if TYPE_CHECKING:
    from ..program import PhaseOnGraph


class CpuEntry:
    """A C function with the threads of the process, or with one where that is faster."""

    def __init__(self, library: ctypes.CDLL, data: Mapping[str, Any], profile: bool) -> None:
        self.function = getattr(library, f"gnnc_{data['name']}")
        self.function.argtypes = [ctypes.c_int, *(ctypes.c_void_p,) * 2]
        self.function.restype = None
        self.crews = Crews()
        self.seconds: ctypes.Array[ctypes.c_double] | None = None
        if profile:
            laps = ctypes.c_double * max(len(data["kernels"]), 1)
            self.seconds = laps.in_dll(library, f"gnnc_{data['name']}_seconds")

    def run(
        self, phase: PhaseOnGraph, workspace: int, pointers: ctypes.Array[ctypes.c_void_p]
    ) -> None:
        """Call it. Raises what the carrier raised meanwhile."""
        sizes, places = ctypes.addressof(phase.sizes), ctypes.addressof(pointers)
        if (messages := phase.messages) is not None:
            assert phase.carrier is not None  # PhaseOnGraph asks for one
            call = phase.calls or Call(phase.phase.name, messages, phase.carrier)
            pointers[messages.slot] = call.address
            # its time tells what others do, too
            self.function(threads.num_threads(), sizes, places)
            call.end()
        elif self.seconds is not None:  # its own times are to be those of all threads
            self.function(threads.num_threads(), sizes, places)
        else:
            run = self.function
            self.crews.run("", phase.rows_in_all, lambda count: run(count, sizes, places))


class CpuProgram:
    """A shared object."""

    def __init__(self, path: Path, profile: bool) -> None:
        self.path, self.profile = path, profile
        self.library = toolchain.load(path)

    def entry(self, data: Mapping[str, Any]) -> CpuEntry:
        """The function of a phase."""
        return CpuEntry(self.library, data, self.profile)

    def memory(self, device: str) -> HostMemory:
        """See `memory_of`."""
        return memory_of(device)


def memory_of(device: str) -> HostMemory:
    """The memory of the host. Raises ValueError for another device."""
    if device != "cpu":
        raise ValueError(f"the program runs on the CPU, not on {device}")
    return HOST


def load_program(
    data: Mapping[str, Any],
    source: str,
    *,
    march: str | None,
    sanitize: bool,
    profile: bool,
    denormals: bool,
) -> CpuProgram:
    """Compile a program's text, or find it in the cache, and load it; of `denormals` the text says
    itself.

    Raises:
        CompileError, NoCompiler: from the tool chain.
    """
    path = toolchain.compile_source(source, march=march, sanitize=sanitize)
    return CpuProgram(path, profile)
