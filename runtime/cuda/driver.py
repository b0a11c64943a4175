"""NVIDIA's driver through ctypes: what devices there are, without cupy or torch, and the address of
the function that launches kernels.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass

from .errors import LaunchFailed, NoDevice, OutOfDeviceMemory, version_of

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY = 2
_NO_DEVICE = 100
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_..


@dataclass(frozen=True)
class Device:
    """A GPU: its number as CUDA counts, its name and its compute capability."""

    number: int
    name: str
    capability: tuple[int, int]

    @property
    def arch(self) -> str:
        """The architecture that NVRTC compiles for, as "sm_90"."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


class Driver:
    """The driver of this machine.

    To make one begins CUDA in this process: a child that is forked afterwards has no CUDA.

    Raises:
        NoDevice: there is no driver, or it finds no device.
    """

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise NoDevice(
                f"there is no NVIDIA driver ({error}): install one, or use the target openmp"
            ) from error
        self.version = self._number("cuDriverGetVersion")
        """The newest CUDA that it knows, as CUDA counts (13020 is 13.2)."""
        status = self.library.cuInit(0)
        if status:
            why = "finds no device" if status == _NO_DEVICE else "cannot be used"
            raise NoDevice(
                f"the NVIDIA driver (for CUDA {version_of(self.version)}) {why}: "
                f"{self.message(status)}; is CUDA_VISIBLE_DEVICES set, or a container without the "
                "devices?"
            )

    def devices(self) -> list[Device]:
        """All devices that the process may see."""
        return [self.device(k) for k in range(self._number("cuDeviceGetCount"))]

    def device(self, number: int) -> Device:
        """The device of a number.

        Raises:
            NoDevice: there is none of this number.
        """
        handle = ctypes.c_int()
        status = self.library.cuDeviceGet(ctypes.byref(handle), number)
        if status:
            count = self._number("cuDeviceGetCount")
            raise NoDevice(f"there is no device {number}: CUDA counts {count}, from 0")
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, len(name), handle)
        major = self._number("cuDeviceGetAttribute", _MAJOR, handle)
        minor = self._number("cuDeviceGetAttribute", _MINOR, handle)
        return Device(number, name.value.decode(), (major, minor))

    def launch_address(self) -> int:
        """The address of cuLaunchKernel, which host code launches through."""
        found = ctypes.cast(self.library.cuLaunchKernel, ctypes.c_void_p).value
        assert found is not None
        return found

    def check(self, status: int, what: str) -> None:
        """Raises what the CUresult of a launch of `what` stands for.

        Raises:
            OutOfDeviceMemory, LaunchFailed: it is not 0.
        """
        if status == OUT_OF_MEMORY:
            raise OutOfDeviceMemory(what, self.message(status))
        if status:
            raise LaunchFailed(
                f"{what}: {self.message(status)}. Kernels run after the call that launches them: "
                "with CUDA_LAUNCH_BLOCKING=1 each is waited for, and the one that failed named"
            )

    def message(self, status: int) -> str:
        """The driver's name of a CUresult, and what it says of it."""
        told = [self._text(f, status) for f in ("cuGetErrorName", "cuGetErrorString")]
        return ": ".join(t for t in told if t) or f"CUresult {status}"

    def _text(self, function: str, status: int) -> str:
        found = ctypes.c_char_p()
        if getattr(self.library, function)(status, ctypes.byref(found)) or found.value is None:
            return ""
        return found.value.decode()

    def _number(self, function: str, *args: object) -> int:
        found = ctypes.c_int()
        self._call(function, ctypes.byref(found), *args)
        return found.value

    def _call(self, function: str, *args: object) -> None:
        status = getattr(self.library, function)(*args)
        if status:
            raise NoDevice(f"{function} of the NVIDIA driver failed: {self.message(status)}")


@functools.cache
def driver() -> Driver:
    """The driver, found once.

    Raises:
        NoDevice: there is none, or it finds no device.
    """
    return Driver()
