"""Launches of a phase as a CUDA graph: recorded once, replayed where the same buffers come again.

A phase on one graph launches the same kernels with the same sizes at every call; only addresses
differ, and in a loop of training torch's allocator gives the same again and again. What is met for
the second time is recorded, on a stream of its own, for nothing can be recorded on CUDA's default
stream; from then on one call of the driver replays it. Other addresses are launched plainly.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable

from .driver import Driver

KEPT = 4
"""Recorded calls of a phase on one graph."""
REMEMBERED = 16
"""Calls that are known again when they come for the second time."""
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: other threads may use the driver meanwhile
_NON_BLOCKING = 1


class Replays:
    """The recorded calls of one phase on one graph, by the addresses of its buffers."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.seen: OrderedDict[bytes, None] = OrderedDict()
        self.recorded: OrderedDict[bytes, ctypes.c_void_p] = OrderedDict()
        self.stream: ctypes.c_void_p | None = None

    def run(self, key: bytes, stream: int, launch: Callable[[int], None], what: str) -> None:
        """Do on `stream` what `launch` does on the stream that it is given.

        Raises:
            OutOfDeviceMemory, LaunchFailed: the driver refuses.
        """
        if (recorded := self.recorded.get(key)) is not None:
            self.recorded.move_to_end(key)
            self.call("cuGraphLaunch", what, recorded, ctypes.c_void_p(stream))
        elif key in self.seen:
            del self.seen[key]
            self.recorded[key] = recorded = self.record(launch, what)
            if len(self.recorded) > KEPT:
                _, oldest = self.recorded.popitem(last=False)
                self.call("cuGraphExecDestroy", what, oldest)
            self.call("cuGraphLaunch", what, recorded, ctypes.c_void_p(stream))
        else:
            self.seen[key] = None
            if len(self.seen) > REMEMBERED:
                self.seen.popitem(last=False)
            launch(stream)

    def record(self, launch: Callable[[int], None], what: str) -> ctypes.c_void_p:
        """The launches as a graph that can be replayed."""
        if self.stream is None:
            self.stream = ctypes.c_void_p()
            self.call("cuStreamCreate", what, ctypes.byref(self.stream), _NON_BLOCKING)
        graph, made = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", what, self.stream, _RELAXED)
        try:
            launch(self.stream.value or 0)
        finally:  # a stream that records can do nothing else
            self.call("cuStreamEndCapture", what, self.stream, ctypes.byref(graph))
        flags = ctypes.c_ulonglong(0)
        self.call("cuGraphInstantiateWithFlags", what, ctypes.byref(made), graph, flags)
        self.call("cuGraphDestroy", what, graph)
        return made

    def call(self, function: str, what: str, *args: object) -> None:
        self.driver.check(getattr(self.driver.library, function)(*args), f"{function} of {what}")

    def close(self) -> None:
        """Give back what the driver holds."""
        library = self.driver.library
        for recorded in self.recorded.values():
            library.cuGraphExecDestroy(recorded)
        self.recorded.clear()
        if self.stream is not None:
            library.cuStreamDestroy_v2(self.stream)
            self.stream = None

    def __del__(self) -> None:
        self.close()
