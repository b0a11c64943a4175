"""Compiles CUDA text: with a C++ compiler for the processor, with nvcc for its resources."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent


def on_processor(text: str, folder: Path) -> ctypes.CDLL:
    """The text, after threads.h, as a library, whose misaligned() counts accesses that a GPU
    refuses. Skips without a C++ compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler: install g++ or clang++")
    source, library = folder / "text.cpp", folder / "text.so"
    source.write_text((HERE / "threads.h").read_text() + text)
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-fsanitize=alignment"]
    _run([compiler, *flags, "-o", str(library), str(source)])
    return ctypes.CDLL(str(library))


class Resources(NamedTuple):
    """What ptxas gives a kernel."""

    registers: int
    stack: int
    spilled: int
    """Bytes of stores and loads of what had no register."""


def with_nvcc(
    text: str, folder: Path, options: Sequence[str] = (), arch: str = "sm_90"
) -> dict[str, Resources]:
    """The resources of the kernels of a text. Skips without nvcc; warnings are errors."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH: it is in the CUDA toolkit")
    source = folder / "text.cu"
    source.write_text(text)
    flags = [f"-arch={arch}", "-std=c++17", "-cubin", "-Xptxas", "-v", "-Werror", "all-warnings"]
    command = [nvcc, *flags, *options, "-o", str(folder / "text.cubin"), str(source)]
    return _resources(_run(command))


def _resources(log: str) -> dict[str, Resources]:
    pattern = (
        r"Function properties for (\w+)\n\s+(\d+) bytes stack frame, (\d+) bytes spill stores, "
        r"(\d+) bytes spill loads\n.*Used (\d+) registers"
    )
    return {
        name: Resources(int(registers), int(stack), int(stores) + int(loads))
        for name, stack, stores, loads, registers in re.findall(pattern, log)
    }


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:4000]}"
    return done.stdout + done.stderr
