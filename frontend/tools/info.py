"""`gnnc info`: what of the things gnnc can use this machine has."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

from ...runtime import cache
from ...runtime.cpu import toolchain
from ...runtime.cpu.threads import num_threads
from ...runtime.cuda import device, nvrtc
from ...runtime.cuda.driver import driver

_PACKAGES = (
    "xdsl",
    "numpy",
    "scipy",
    "torch",
    "torch-geometric",
    "dgl",
    "cupy-cuda12x",
    "cupy-cuda13x",
    "nvidia-cuda-nvrtc",
    "mpi4py",
    "pymetis",
    "mpich",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="measure how fast this machine multiplies features, dense and sparse, and keep it: "
        "it decides how features are taken",
    )


def run(args: argparse.Namespace) -> int:
    """Prints one line a fact; returns 1 where there is no C compiler, for then all runs eagerly."""
    _line("python", platform.python_version())
    for package in _PACKAGES:
        _line(package, _version(package))
    _line("processor", f"{platform.machine()}, {num_threads()} threads")
    _line("cache", str(cache.directory()))
    _line("CUDA", _cuda())
    _line("CUDA's compiler", nvrtc.why_not() or f"NVRTC {nvrtc.version_text()}, without cupy too")
    try:
        found = toolchain.compiler()
    except toolchain.NoCompiler as error:
        _line("C compiler", f"none: {error}")
        return 1
    _line("C compiler", f"{' '.join(found.command)}: {found.version}")
    _line("its code", f"-march={found.march}, vectors of {found.vector_bytes} bytes")
    if args.calibrate:
        _calibrate()
    return 0


def _cuda() -> str:
    """The devices that programs can run on, or why they cannot. cupy is imported only where there
    is a driver and a device."""
    if (reason := device.why_not()) is not None:
        return f"cannot be used: {reason}"
    found = ", ".join(f"{d.name} ({d.arch})" for d in driver().devices())
    return f"can be used: {found}"


def _calibrate() -> None:
    from ..torch.sparse.speeds import calibrate

    found = calibrate()
    _line("dense features", f"{found.gemm_flops / 1e9:.0f} GFLOP/s, and as they are read")
    _line("reading them", f"{found.stream_bytes / 1e9:.1f} GB/s")
    near, entry = found.near_bytes / 1e9, found.entry_seconds * 1e9
    _line("sparse features", f"{entry:.2f} ns an entry, and its row of a weight at {near:.0f} GB/s")


def _line(name: str, value: str) -> None:
    print(f"{name:18} {value}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
