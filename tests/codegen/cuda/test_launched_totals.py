"""What is reduced over ranks, read in memory of other processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gnnc.tests.runtime.ranks.launching import launched, one_at_a_time  # noqa: F401

pytest.importorskip("mpi4py")

BEGIN = "from gnnc.tests.codegen.cuda.exported import has_right_sums, run_until_one_dies\n"
OPTIONS = ("--threads", "1")


def test_a_process_goes_on_when_nobody_reads_its_memory_any_more(tmp_path: Path) -> None:
    body = f"""{BEGIN}
for fenced in (True, False):
    assert has_right_sums(c, fenced) == (fenced or rank == 0), fenced
"""
    result = launched(tmp_path, 2, body, options=OPTIONS, timeout=300)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_rank_that_is_killed_while_others_read_its_memory(tmp_path: Path) -> None:
    """They are told, as with messages, and nothing of its memory is left."""
    before = set(os.listdir("/dev/shm"))
    result = launched(tmp_path, 3, f"{BEGIN}run_until_one_dies(c)\n", options=OPTIONS, timeout=300)
    assert result.returncode == 1
    assert "gnnc launch: rank 1 failed" in result.stderr
    assert "was killed by signal 9" in result.stderr and "SIGBUS" not in result.stderr
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "gnnc" in name]
