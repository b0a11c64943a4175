"""The machine that the numbers of `gnnc bench` come from."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..frontend.tools.children import Message
from ..runtime.cpu import toolchain

_PACKAGES = ("gnnc", "torch", "torch-geometric", "dgl", "numpy", "xdsl")


def machine() -> Message:
    """What the numbers depend on besides the contestants: processor, memory, compiler, versions."""
    packages: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "processor": _described("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": _memory(),
        "system": platform.platform(),
        "compiler": _compiler(),
        "packages": packages,
    }


def machine_text(found: Message) -> str:
    """The same in one line."""
    packages = [f"{name} {v}" for name, v in found["packages"].items() if v is not None]
    parts = [
        f"{found['processor']}, {found['cores']} cores",
        f"memory {found['memory']}",
        found["system"],
        found["compiler"],
        *packages,
    ]
    return "; ".join(parts)


def _described(file: str, field: str) -> str | None:
    """The value of the first line `field: value` of a file of Linux, None where it has none."""
    path = Path(file)
    for line in path.read_text().splitlines() if path.is_file() else []:
        name, _, value = line.partition(":")
        if name.strip() == field:
            return value.strip()
    return None


def _memory() -> str | None:
    found = _described("/proc/meminfo", "MemTotal")
    return f"{int(found.split()[0]) / 2**20:.1f} GiB" if found else None


def _compiler() -> str:
    try:
        return toolchain.compiler().version
    except toolchain.NoCompiler as error:
        return f"no C compiler: {error}"
