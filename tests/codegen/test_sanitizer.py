"""No program reads or writes beside a buffer, and none does what C leaves undefined."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gnnc.runtime.cpu.toolchain import sanitizer_environment

from .sanitized import PROGRAMS

FOLDER = Path(__file__).parents[1]
QUICK = ["reductions 3", "linear of many rows", "gcn", "stack and part", "dropout"]
PARTS = 16
"""Processes that share all programs."""
pytestmark = pytest.mark.sanitize

WRONG = """
from codegen.compiled import Case
from codegen.separate import call_separately
from codegen.shared import SMALL
from gnnc.codegen.openmp import printer

plain, whole, some = printer.prelude, "(*(const T *)(p))", "v[l] = p[l]"

def moved(*how):
    text = plain(*how)
    assert whole in text and some in text
    text = text.replace(some, "v[l] = p[l + 99]")
    return text.replace(whole, "(*(const T *)((p) + 99))")

printer.prelude = moved
case = Case.of(SMALL["reduce sum"], sanitize=True)
case.run(case.values(4, {"N": 9, "g": 30}), call=call_separately)
"""


def run(code: list[str]) -> subprocess.CompletedProcess[str]:
    """Python in a process whose objects may be sanitized, with two threads."""
    env = {**os.environ, **sanitizer_environment(), "OMP_NUM_THREADS": "2"}
    return subprocess.run(
        [sys.executable, *code], cwd=FOLDER, env=env, capture_output=True, text=True
    )


def check(names: list[str]) -> None:
    result = run(["-m", "codegen.sanitized", *names])
    assert result.returncode == 0, result.stderr[-4000:]
    assert result.stdout.splitlines() == [f"checked {name}" for name in names]
    assert "runtime error" not in result.stderr


def test_quick_programs():
    check(QUICK)


@pytest.mark.long
@pytest.mark.parametrize("first", range(PARTS))
def test_all_programs(first):
    check(list(PROGRAMS)[first::PARTS])


@pytest.mark.usefixtures("openmp")
def test_a_wrong_access_is_seen():
    """A load behind the last row stops the process: the check can fail."""
    result = run(["-c", WRONG])
    assert result.returncode != 0
    assert "AddressSanitizer" in result.stderr
