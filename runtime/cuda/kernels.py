"""The kernels of a device text on one device, as host code takes them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from .device import cupy, current_device, memory_errors
from .driver import Device, driver
from .errors import NvrtcError
from .nvrtc import cited
from .options import compile_options


class DeviceKernels:
    """Device text, compiled by cupy for one device, where it stays loaded as long as this lives.

    cupy keeps what it compiled in its own cache on disk.

    Raises:
        NvrtcError: the text does not compile; it cites the lines, and the ops of these.
        KeyError: a kernel of `names` is not in the text.
        OutOfDeviceMemory: the device cannot hold the code.
    """

    def __init__(
        self, text: str, names: Sequence[str], device: Device, *, denormals: bool = False
    ) -> None:
        self.cupy = cupy()
        self.device = device
        self.names = tuple(names)
        with self.current(), memory_errors("the kernels of a program"):
            self.module = self.cupy.RawModule(code=text, options=compile_options(denormals))
            self._compile(text)
            self.functions = [self._function(name) for name in self.names]
        handles = [f.kernel.ptr for f in self.functions]
        self.handles = (ctypes.c_void_p * max(len(handles), 1))(*handles)
        """The CUfunctions in order of `names`: the `kernels` of an exported function."""

    def current(self) -> AbstractContextManager[Any]:
        """See `current_device`."""
        return current_device(self.device.number)

    def _compile(self, text: str) -> None:
        try:
            self.module.compile()
        except self.cupy.cuda.compiler.CompileException as error:
            log = error.get_message()
            raise NvrtcError(self.device.arch, "by cupy", log, cited(text, log)) from error

    def _function(self, name: str) -> Any:
        try:
            return self.module.get_function(name)
        except self.cupy.cuda.driver.CUDADriverError as error:
            raise KeyError(f"the device text has no kernel {name}: {error}") from error

    def call(
        self, function: Any, stream: int, workspace: int, sizes: int, buffers: int, what: str
    ) -> None:
        """Call an exported function of the host text, of ctypes: it launches on `stream`, and
        returns before the kernels have run. All addresses are integers.

        Raises:
            OutOfDeviceMemory, LaunchFailed: a launch failed, of `what`.
        """
        found = driver()
        handles = ctypes.addressof(self.handles)
        with self.current():
            status = function(found.launch_address(), handles, stream, workspace, sizes, buffers)
        found.check(status, what)


HOST_ARGUMENTS = [ctypes.c_void_p] * 6
"""The arguments of an exported function: launch, kernels, stream, workspace, sizes, buffers."""


def host_function(library: ctypes.CDLL, name: str) -> Any:
    """An exported function of the host text, with its types set."""
    function = getattr(library, name)
    function.argtypes = HOST_ARGUMENTS
    function.restype = ctypes.c_int
    return function
