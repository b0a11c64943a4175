"""Programs without Python reduce over ranks as `Communicator.all_reduce` does, to the bit."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gnnc.codegen.common.exchange_code import comm_text
from gnnc.codegen.openmp.ranks_standalone import COMM
from gnnc.runtime import standalone
from gnnc.runtime.cpu.toolchain import program_flags
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator, Kind
from gnnc.runtime.ranks.launch import tool

from .launching import one_at_a_time  # noqa: F401

pytest.importorskip("mpi4py")

RANKS = 3
KINDS: tuple[Kind, ...] = ("sum", "mul", "max", "min")
MAIN = Path(__file__).parent / "reductions.c"


@pytest.fixture
def printed(tmp_path: Path) -> dict[tuple[int, int], list[str]]:
    """The numbers that each rank has after each reduction."""
    sources = standalone.sources("mpi")
    for name, text in {**sources, MAIN.name: MAIN.read_text(), COMM: comm_text()}.items():
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in (*sources, MAIN.name) if name.endswith(".c")]
    program = str(tmp_path / "reductions")
    flags = [*program_flags(), "-Wall", "-Wextra", "-Werror"]
    subprocess.run([str(tool("mpicc")), *flags, "-o", program, *files, "-lm"], check=True)
    command = [str(tool("mpiexec")), "-n", str(RANKS), program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return {(int(rank), int(kind)): numbers for rank, kind, *numbers in lines}


def given(rank: int) -> list[NDArray[Any]]:
    """The arrays of a rank, as the program has them."""
    j = np.arange(4)
    x = 0.1 * (j + 1) * (rank - 1) + np.where(j == 2, 1e9 * (1 - rank), 0)
    single = x.astype(np.float32)
    double = single.astype(np.float64)
    if rank == 1:
        double[1] = np.nan
    long = (j - 1) * (rank + 2) * np.where(j == 3, (2**63 - 1) // 8, 1)
    return [single[:3], double, long, np.array([(rank + 1) * ((2**31 - 1) // 4)], np.int32)]


def reduced(c: Communicator) -> list[list[NDArray[Any]]]:
    return [[c.all_reduce(x, kind) for x in given(c.rank)] for kind in KINDS]


def test_reductions_are_those_of_communicators(printed: dict[tuple[int, int], list[str]]) -> None:
    expected = virtual.run(RANKS, reduced)[0]
    assert sorted(printed) == [(rank, k) for rank in range(RANKS) for k in range(len(KINDS))]
    for (rank, k), numbers in printed.items():
        single, double, long, short = expected[k]
        f, d, i = (numbers[at : 3 * 4 : 3] for at in range(3))
        assert np.array([float.fromhex(x) for x in f[:3]]).tobytes() == np.float64(single).tobytes()
        np.testing.assert_array_equal([float.fromhex(x) for x in d], double)
        assert list(map(int, i)) == long.tolist()
        assert int(numbers[-1]) == short[0], rank
