"""What can be wrong with a machine, a device or a call of CUDA: an exception each, which says what
to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .options import OLDEST


class CudaError(RuntimeError):
    """CUDA cannot be used, or a call of it failed."""


class NoNvrtc(CudaError):
    """NVRTC is not installed, or cannot be loaded."""


class NvrtcError(CudaError):
    """Device text does not compile. `log` is all that NVRTC and ptxas say, `lines` the lines of the
    text that errors are of, with the ops that these were printed for.
    """

    def __init__(self, arch: str, status: str, log: str, lines: Sequence[str]) -> None:
        told = "\n".join(lines or [x.strip() for x in log.splitlines() if "error" in x] or [log])
        super().__init__(
            f"NVRTC failed for {arch} ({status}); this is a bug in gnnc, please report it\n{told}"
        )
        self.arch, self.status, self.log, self.lines = arch, status, log, list(lines)


class NvccError(CudaError):
    """nvcc rejected device text, or cannot run."""

    def __init__(self, command: Sequence[str], log: str) -> None:
        super().__init__(f"nvcc failed\n  command: {' '.join(command)}\n{log.rstrip()}")
        self.log = log


class NoImages(CudaError):
    """Nothing here makes machine code of device text."""


class NoCupy(CudaError):
    """cupy is not installed, or cannot be imported."""

    def __init__(self, driver: int | None, reason: str = "") -> None:
        which = "gnnc[cuda13] or gnnc[cuda12]" if driver is None else f"gnnc[{extra_for(driver)}]"
        what = "cupy is not installed" if not reason else f"cupy cannot be imported: {reason}"
        super().__init__(f"{what}; `pip install {which}` (and only one of cupy's packages)")


class NoDevice(CudaError):
    """There is no GPU, or no driver for it."""


class NoToolkit(CudaError):
    """cupy is there without the libraries of CUDA that compile for it."""

    def __init__(self, cupy_cuda: int, reason: str) -> None:
        super().__init__(
            f"cupy finds no NVRTC of CUDA {cupy_cuda // 1000}, which compiles the kernels: "
            f"`pip install gnnc[{extra_for(cupy_cuda)}]` has it (cupy: {_first_line(reason)})"
        )


class WrongToolkit(CudaError):
    """cupy was built for a newer CUDA than the driver knows."""

    def __init__(self, cupy_cuda: int, driver: int) -> None:
        have, know = cupy_cuda // 1000, driver // 1000
        super().__init__(
            f"cupy is built for CUDA {have} and the driver knows CUDA {version_of(driver)}: "
            f"`pip uninstall cupy-cuda{have}x` and `pip install gnnc[cuda{know}]`, or install a "
            f"driver for CUDA {have}"
            if know >= 12
            else f"the driver knows CUDA {version_of(driver)}, gnnc needs 12 or newer (cupy here "
            f"is built for CUDA {have}): install a newer driver"
        )


class DeviceTooOld(CudaError):
    """The device has a compute capability that programs are not made for."""

    def __init__(self, name: str, capability: tuple[int, int]) -> None:
        have, need = (".".join(map(str, c)) for c in (capability, OLDEST))
        super().__init__(
            f"{name} has compute capability {have}, programs need {need} or newer (A100, RTX 30 "
            "and later): choose another device, or the target openmp"
        )


class OutOfDeviceMemory(CudaError, MemoryError):
    """The device has not as much memory as a call needs."""

    def __init__(self, what: str, reason: str, needed: int | None = None) -> None:
        size = "" if needed is None else f" for {needed / 2**20:.0f} MiB"
        super().__init__(
            f"{what}: the device is out of memory{size} ({_first_line(reason)}). Free tensors or "
            "give a smaller graph; torch keeps memory that it does not use until "
            "`torch.cuda.empty_cache()`, cupy until `free_all_blocks()` of its pool"
        )


class LaunchFailed(CudaError):
    """A kernel could not be launched, or one before it failed."""


class MixedDevices(CudaError):
    """An argument is on another device than the others."""

    def __init__(self, name: str, device: str, others: Sequence[str], where: str) -> None:
        more = "" if len(others) <= 3 else ", .."
        super().__init__(
            f"{name} is on {device}, but {', '.join(others[:3])}{more} on {where}: move it with "
            f"`.to({where!r})`"
        )


def check_one_device(devices: Mapping[str, str]) -> str | None:
    """The one device of the arguments, by name, or None of no arguments.

    Raises:
        MixedDevices: they are on several; it names an argument that is not where most are.
    """
    found: dict[str, list[str]] = {}
    for name, device in devices.items():
        found.setdefault(device, []).append(name)
    if len(found) < 2:
        return next(iter(found), None)
    where = max(found, key=lambda d: len(found[d]))
    device, names = next((d, n) for d, n in found.items() if d != where)
    raise MixedDevices(names[0], device, found[where], where)


def extra_for(version: int) -> str:
    """The extra of gnnc for a version of CUDA as CUDA counts it (13020 is 13.2)."""
    return "cuda13" if version >= 13000 else "cuda12"


def version_of(version: int) -> str:
    """A version of CUDA as people write it."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
