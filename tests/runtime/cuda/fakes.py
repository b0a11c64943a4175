"""Stand-ins for NVIDIA's driver and for cupy on machines with neither."""

from __future__ import annotations

import ctypes
import types
from collections.abc import Sequence
from typing import Any

MESSAGES = {
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    100: ("CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    101: ("CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
}


def _set(reference: Any, value: Any) -> int:
    reference._obj.value = value
    return 0


class FakeDriver:
    """libcuda.so.1 with devices of these names and compute capabilities; `status` is what cuInit
    returns."""

    def __init__(
        self, version: int, devices: Sequence[tuple[str, tuple[int, int]]], status: int = 0
    ) -> None:
        self.version, self.found, self.status = version, list(devices), status
        # cuLaunchKernel has an address only
        self.cuLaunchKernel = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)

    def cuDriverGetVersion(self, out: Any) -> int:
        return _set(out, self.version)

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuDeviceGetCount(self, out: Any) -> int:
        return _set(out, len(self.found))

    def cuDeviceGet(self, out: Any, number: int) -> int:
        return _set(out, number) if number < len(self.found) else 101

    def cuDeviceGetName(self, out: Any, length: int, device: ctypes.c_int) -> int:
        out.value = self.found[device.value][0].encode()
        return 0

    def cuDeviceGetAttribute(self, out: Any, attribute: int, device: ctypes.c_int) -> int:
        return _set(out, self.found[device.value][1][attribute - 75])

    def cuGetErrorName(self, status: int, out: Any) -> int:
        return _set(out, MESSAGES[status][0].encode()) if status in MESSAGES else 1

    def cuGetErrorString(self, status: int, out: Any) -> int:
        return _set(out, MESSAGES[status][1].encode()) if status in MESSAGES else 1


class CompileException(Exception):
    """As cupy's, whose message is no argument."""

    def __init__(self, log: str) -> None:
        super().__init__()
        self.log = log

    def get_message(self) -> str:
        return self.log


class CUDADriverError(RuntimeError):
    """As cupy's."""


class OutOfMemoryError(MemoryError):
    """As cupy's."""


class FakeCupy(types.ModuleType):
    """cupy for CUDA `built_for`, with or without NVRTC. Its modules have the kernels of `handles`,
    and do not compile where there is a `log`."""

    def __init__(
        self,
        built_for: int = 13020,
        nvrtc: bool = True,
        handles: dict[str, int] | None = None,
        log: str | None = None,
    ) -> None:
        super().__init__("cupy")
        self.handles, self.log, self.has_nvrtc = handles or {}, log, nvrtc
        self.no_memory = False
        self.current: list[int] = []
        self.options: tuple[str, ...] = ()
        self.cuda = types.SimpleNamespace(
            runtime=types.SimpleNamespace(runtimeGetVersion=lambda: built_for),
            nvrtc=types.SimpleNamespace(getVersion=self._version),
            compiler=types.SimpleNamespace(CompileException=CompileException),
            driver=types.SimpleNamespace(CUDADriverError=CUDADriverError),
            Device=lambda number: _Current(self, number),
        )

    def _version(self) -> tuple[int, int]:
        if not self.has_nvrtc:
            raise RuntimeError('Failure finding "libnvrtc.so.13"\nin many places')
        return 13, 2

    def RawModule(self, *, code: str, options: tuple[str, ...]) -> _Module:
        self.options = options
        return _Module(self)


class _Current:
    def __init__(self, cupy: FakeCupy, number: int) -> None:
        self.cupy, self.number = cupy, number

    def __enter__(self) -> None:
        self.cupy.current.append(self.number)

    def __exit__(self, *raised: object) -> None:
        self.cupy.current.pop()


class _Module:
    def __init__(self, cupy: FakeCupy) -> None:
        self.cupy = cupy

    def compile(self) -> None:
        assert self.cupy.current  # for the device that is the current one
        if self.cupy.log is not None:
            raise CompileException(self.cupy.log)
        if self.cupy.no_memory:
            raise OutOfMemoryError("Out of memory allocating 1,024 bytes")

    def get_function(self, name: str) -> Any:
        if name not in self.cupy.handles:
            raise CUDADriverError("CUDA_ERROR_NOT_FOUND: named symbol not found")
        kernel = types.SimpleNamespace(ptr=self.cupy.handles[name])
        return types.SimpleNamespace(kernel=kernel)
