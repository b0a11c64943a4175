"""`gnnc info`: what of the things gnnc can use this machine has."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

from ...runtime import cache
from ...runtime.cpu import toolchain
from ...runtime.cpu.threads import num_threads

_PACKAGES = ("xdsl", "numpy", "scipy", "torch", "torch-geometric", "dgl", "cupy-cuda13x", "mpi4py")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command takes none."""


def run(_: argparse.Namespace) -> int:
    """Prints one line a fact; returns 1 where there is no C compiler, for then all runs eagerly."""
    _line("python", platform.python_version())
    for package in _PACKAGES:
        _line(package, _version(package))
    _line("processor", f"{platform.machine()}, {num_threads()} threads")
    _line("cache", str(cache.directory()))
    try:
        found = toolchain.compiler()
    except toolchain.NoCompiler as error:
        _line("C compiler", f"none: {error}")
        return 1
    _line("C compiler", f"{' '.join(found.command)}: {found.version}")
    _line("its code", f"-march={found.march}, vectors of {found.vector_bytes} bytes")
    return 0


def _line(name: str, value: str) -> None:
    print(f"{name:16} {value}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
