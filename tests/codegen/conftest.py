"""Compilers and instruction sets that support code is tested with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gnnc.runtime.cpu import toolchain
from gnnc.tests.session import openmp

__all__ = ["march", "openmp"]

INSTRUCTIONS = {"native": {"sse2"}, "x86-64-v3": {"avx2", "fma", "bmi2"}, "x86-64": {"sse2"}}
"""What -march may be here, and the processor's flags that it needs."""
CLANGS = ("clang", *(f"clang-{k}" for k in range(30, 11, -1)))


@pytest.fixture(
    params=[(cc, march) for cc in ("", "clang") for march in INSTRUCTIONS], ids="-".join
)
def march(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The instruction set of a test; the compiler is the usual one, then clang."""
    cc, name = request.param
    flags = set(Path("/proc/cpuinfo").read_text().split()) if os.name == "posix" else set[str]()
    if not INSTRUCTIONS[name] <= flags:
        pytest.skip(f"this processor cannot run -march={name}")
    if cc:
        found = next(filter(shutil.which, CLANGS), None)
        if found is None:
            pytest.skip("clang is not on the PATH")
        monkeypatch.setenv("CC", found)
        try:
            toolchain.compiler(name)
        except toolchain.NoCompiler as e:
            pytest.skip(f"clang cannot build here: {e}")
    return name
