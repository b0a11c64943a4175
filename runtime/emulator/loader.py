"""Programs for CUDA on the emulator: the functions of phases launch kernels there, in memory of the
host."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comm import Call, HostReach
from ..cpu import toolchain
from ..memory import Region
from .device import Emulator
from .memory import EmulatedMemory
from .toolchain import build

if TYPE_CHECKING:
    from ..program import PhaseOnGraph

_DEVICE = threading.Lock()
"""There is one emulated device, for one thread at a time."""


class Used:
    """The device, as long as one phase has it: kernels use the memory of its call and no other."""

    def __init__(
        self,
        device: Emulator,
        workspace: int,
        phase: PhaseOnGraph,
        pointers: ctypes.Array[ctypes.c_void_p],
    ) -> None:
        self.device = device
        self.regions = [(workspace, phase.phase.workspace, True)]
        for k, b in enumerate(phase.phase.buffers):
            if address := pointers[k]:
                written = b["kind"] in ("output", "temporary") or b.get("gives") is not None
                self.regions.append((address, phase.bytes[k], written))

    def __enter__(self) -> None:
        _DEVICE.acquire()
        for region in self.regions:
            self.device.allow(*region)

    def __exit__(self, *_: object) -> None:
        self.device.forget()
        _DEVICE.release()


class EmulatedReach(HostReach):
    """Of a phase on the emulated device, which others have while it waits for them."""

    def __init__(self, used: Used) -> None:
        self.used = used

    @contextmanager
    def aside(self) -> Generator[None]:
        """See Reach."""
        self.used.__exit__()
        try:
            yield
        finally:
            self.used.__enter__()

    def lend(self, regions: Sequence[Region]) -> None:
        """See Reach."""
        for region in regions:
            allowed = region.address, region.size, False
            self.used.regions.append(allowed)
            self.used.device.allow(*allowed)


class EmulatedEntry:
    """A C function that launches kernels on the emulated device."""

    seconds: ctypes.Array[ctypes.c_double] | None = None

    def __init__(self, program: EmulatedProgram, name: str) -> None:
        self.program = program
        self.function = getattr(program.library, f"gnnc_{name}")
        self.function.argtypes = [ctypes.c_void_p] * 6
        self.function.restype = ctypes.c_int

    def run(
        self, phase: PhaseOnGraph, workspace: int, pointers: ctypes.Array[ctypes.c_void_p]
    ) -> None:
        """Let kernels use the call's memory and no other, and call it.

        Raises:
            EmulatedFault: a kernel did what CUDA leaves undefined.
        """
        device = self.program.device
        used = Used(device, workspace, phase, pointers)
        call = None
        if (messages := phase.messages) is not None:
            assert phase.carrier is not None  # PhaseOnGraph asks for one
            call = Call(phase.phase.name, messages, phase.carrier, EmulatedReach(used))
        with used:
            if call is not None:
                pointers[call.messages.slot] = call.address
            self.function(
                device.launch,
                ctypes.addressof(self.program.kernels),
                None,
                workspace,
                ctypes.addressof(phase.sizes),
                ctypes.addressof(pointers),
            )
            device.check()
        if call is not None:
            call.end()


class EmulatedProgram:
    """Kernels, and the shared object at `path` of the functions that launch them."""

    def __init__(self, kernels: Path, names: list[str], path: Path) -> None:
        self.path = path
        self.library = toolchain.load(path)
        self.device = Emulator(kernels)
        self.kernels = (ctypes.c_void_p * max(len(names), 1))(*map(self.device.handle, names))

    def entry(self, data: Mapping[str, Any]) -> EmulatedEntry:
        """The function of a phase."""
        return EmulatedEntry(self, data["name"])

    def memory(self, device: str) -> EmulatedMemory:
        """See `memory_of`."""
        return memory_of(device)


def memory_of(device: str) -> EmulatedMemory:
    """The memory of the emulated device. Raises ValueError for another device."""
    if device != "cpu":
        raise ValueError(f"the emulator runs on the CPU, not on {device}")
    return EmulatedMemory()


def load_program(
    data: Mapping[str, Any],
    source: str,
    *,
    march: str | None,
    sanitize: bool,
    profile: bool,
    denormals: bool,
) -> EmulatedProgram:
    """Compile a program's texts, or find them in the cache, and load them. Times of kernels would
    say nothing here: `profile` has none, and denormal numbers are as on the host.

    Raises:
        CompileError, NoCompiler: from the tool chain.
    """
    path = toolchain.compile_source(source, march=march, sanitize=sanitize)
    return EmulatedProgram(build(data["device"], sanitize=sanitize), data["kernels"], path)
