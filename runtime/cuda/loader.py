"""Programs for CUDA on a device: functions of phases launch kernels that cupy compiled for it, on
torch's current stream, in torch's memory."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..comm import Call
from ..cpu import toolchain
from .device import check_device, current_stream, number_of
from .driver import driver
from .kernels import DeviceKernels, host_function
from .memory import DeviceMemory
from .reach import DeviceReach
from .replays import Replays

if TYPE_CHECKING:
    from ..program import PhaseOnGraph


class CudaEntry:
    """A C function that launches kernels."""

    seconds: ctypes.Array[ctypes.c_double] | None = None

    def __init__(self, program: CudaProgram, name: str) -> None:
        self.program, self.name = program, name
        self.function = host_function(program.library, f"gnnc_{name}")
        self.replays: WeakKeyDictionary[PhaseOnGraph, Replays] = WeakKeyDictionary()

    def run(
        self, phase: PhaseOnGraph, workspace: int, pointers: ctypes.Array[ctypes.c_void_p]
    ) -> None:
        """Launch on the current stream of the phase's device, or replay what was launched with the
        same buffers before; the kernels run later.

        Raises:
            OutOfDeviceMemory, LaunchFailed: the driver refuses.
            Exception: what the carrier of messages raised.
        """
        number = number_of(phase.memory.device)
        kernels = self.program.kernels(number)
        sizes, buffers = ctypes.addressof(phase.sizes), ctypes.addressof(pointers)

        def launch(stream: int) -> None:
            kernels.call(self.function, stream, workspace, sizes, buffers, self.name)

        if (messages := phase.messages) is not None:  # what others send is no part of a recording
            assert phase.carrier is not None  # PhaseOnGraph asks for one
            stream = current_stream(number)
            reach = DeviceReach(driver(), stream, self.name)
            call = Call(self.name, messages, phase.carrier, reach)
            pointers[messages.slot] = call.address
            with kernels.current():
                launch(stream)
            call.end()
            return
        replays = self.replays.get(phase)
        if replays is None:
            self.replays[phase] = replays = Replays(driver())
        key = bytes(pointers) + workspace.to_bytes(8, "little")
        with kernels.current():
            replays.run(key, current_stream(number), launch, self.name)


class CudaProgram:
    """The shared object at `path` of the functions that launch, and the text of the kernels."""

    def __init__(self, path: Path, text: str, names: list[str], denormals: bool) -> None:
        self.path = path
        self.library = toolchain.load(path)
        self.text, self.names, self.denormals = text, names, denormals
        self.compiled: dict[int, DeviceKernels] = {}

    def kernels(self, number: int) -> DeviceKernels:
        """The kernels on a device, compiled when first asked for.

        Raises:
            CudaError: programs cannot run there; the message says what to do.
        """
        if number not in self.compiled:
            device = check_device(number)
            self.compiled[number] = DeviceKernels(
                self.text, self.names, device, denormals=self.denormals
            )
        return self.compiled[number]

    def entry(self, data: Mapping[str, Any]) -> CudaEntry:
        """The function of a phase."""
        return CudaEntry(self, data["name"])

    @functools.lru_cache(maxsize=16)  # noqa: B019 - programs are kept by who compiled them
    def memory(self, device: str) -> DeviceMemory:
        """The memory of a device.

        Raises:
            ValueError: it is no CUDA device.
        """
        number_of(device)
        return DeviceMemory(device)


def memory_of(device: str) -> DeviceMemory:
    """The memory of a device, for programs that are to be loaded. Raises ValueError for another."""
    number_of(device)
    return DeviceMemory(device)


def load_program(
    data: Mapping[str, Any],
    source: str,
    *,
    march: str | None,
    sanitize: bool,
    profile: bool,
    denormals: bool,
) -> CudaProgram:
    """Compile the text of the functions that launch, or find it in the cache, and load it; kernels
    are compiled for the device that they are first needed on. `profile` has no times of them.

    Raises:
        CompileError, NoCompiler: from the tool chain.
    """
    path = toolchain.compile_source(source, march=march, sanitize=sanitize)
    return CudaProgram(path, data["device"], data["kernels"], denormals)
