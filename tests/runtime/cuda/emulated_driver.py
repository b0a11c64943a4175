"""A driver whose kernels the emulator runs, and that records launches as CUDA graphs do."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

from gnnc.runtime.emulator import Emulator, build

from .fakes import FakeCupy, FakeDriver

LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *(ctypes.c_uint,) * 7, *(ctypes.c_void_p,) * 3
)
Launch = Callable[[], int]


class EmulatedDriver(FakeDriver):
    """A device of these kernels' text; `log` has a word for what was asked of it."""

    def __init__(self, text: str, names: list[str]) -> None:
        super().__init__(13020, [("Emulated", (9, 0))])
        self.emulator = Emulator(build(text))
        self.log: list[str] = []
        self.fails = ""
        handles = {name: self.emulator.handle(name) for name in names}
        self.cupy = FakeCupy(handles=handles)
        heads = {n: re.search(rf" {n}\(([^)]*)\)", text) for n in names}
        self.counts = {handles[n]: len(m[1].split(",")) for n, m in heads.items() if m}
        self.run = ctypes.cast(self.emulator.launch, LAUNCH)
        self.cuLaunchKernel = LAUNCH(self._launch)
        self.recording: tuple[int, list[Launch]] | None = None
        self.graphs: dict[int, list[Launch]] = {}

    def _launch(self, kernel: int, *rest: Any) -> int:
        *shape, stream, arguments, _ = rest
        values = (ctypes.c_void_p * self.counts[kernel]).from_address(arguments)
        # they lie on the stack of who launches: a graph has copies
        kept = [ctypes.c_uint64.from_address(at or 0).value for at in values]

        def again() -> int:
            numbers = (ctypes.c_uint64 * len(kept))(*kept)
            size = ctypes.sizeof(ctypes.c_uint64)
            places = [ctypes.addressof(numbers) + size * k for k in range(len(kept))]
            array = (ctypes.c_void_p * len(kept))(*places)
            return self.run(kernel, *shape, None, ctypes.addressof(array), None)

        if self.recording is not None and stream == self.recording[0]:
            self.recording[1].append(again)
            return 0
        self.log.append("launch")
        return again()

    def _asked(self, word: str) -> int:
        self.log.append(word)
        return 2 if word == self.fails else 0

    def cuStreamCreate(self, out: Any, flags: int) -> int:
        out._obj.value = 77
        return self._asked("stream")

    def cuStreamDestroy_v2(self, stream: ctypes.c_void_p) -> int:
        return self._asked("stream destroyed")

    def cuStreamBeginCapture_v2(self, stream: ctypes.c_void_p, mode: int) -> int:
        assert stream.value and self.recording is None
        self.recording = (stream.value, [])
        return self._asked("begin")

    def cuStreamEndCapture(self, stream: ctypes.c_void_p, out: Any) -> int:
        assert self.recording is not None
        self.graphs[len(self.graphs) + 1] = self.recording[1]
        out._obj.value, self.recording = len(self.graphs), None
        return self._asked("end")

    def cuGraphInstantiateWithFlags(self, out: Any, graph: ctypes.c_void_p, flags: Any) -> int:
        out._obj.value = graph.value
        return self._asked("instantiate")

    def cuStreamSynchronize(self, stream: ctypes.c_void_p) -> int:
        return self._asked("synchronize")

    def cuMemcpyDtoH_v2(self, to: Any, source: Any, size: ctypes.c_size_t) -> int:
        return self._copy("to host", to, source, size)

    def cuMemcpyHtoD_v2(self, to: Any, source: Any, size: ctypes.c_size_t) -> int:
        return self._copy("to device", to, source, size)

    def _copy(self, word: str, to: Any, source: Any, size: ctypes.c_size_t) -> int:
        assert self.log[-1] != "launch", "what was launched may not have run yet"
        ctypes.memmove(to, source, size.value)
        return self._asked(word)

    def cuGraphDestroy(self, graph: ctypes.c_void_p) -> int:
        return self._asked("graph destroyed")

    def cuGraphExecDestroy(self, graph: ctypes.c_void_p) -> int:
        return self._asked("destroyed")

    def cuGraphLaunch(self, graph: ctypes.c_void_p, stream: ctypes.c_void_p) -> int:
        assert graph.value
        status = self._asked("replay")
        return status or max(launch() for launch in self.graphs[graph.value])
