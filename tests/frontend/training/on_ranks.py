"""Programs that are built for ranks, made by plain make and started by MPI."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnc.frontend.torch.training.build import build
from gnnc.frontend.torch.training.program import TrainingProgram
from gnnc.runtime.ranks.launch import tool

from .building import compiled
from .emulated import quickly

PATIENCE = 60
"""Seconds after which a program is taken to be stuck."""
ALONE = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}


def made(
    training: TrainingProgram, folder: Path, ranks: int, *args: Any, goal: str = "", **kwargs: Any
) -> Path:
    """The executable of a training for so many ranks, which takes less time to make than one that
    is fast, unless it is another `goal` of the makefile."""
    build(training, args, kwargs, folder, target="mpi", ranks=ranks)
    return compiled(folder, goal) if goal else quickly(folder)


def started(program: Path, ranks: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of a program on ranks with a thread each, in its folder."""
    command = [str(tool("mpiexec")), "-n", str(ranks), str(program), *arguments]
    return subprocess.run(
        command, env=ALONE, cwd=program.parent, capture_output=True, text=True, timeout=PATIENCE
    )


def trained(program: Path, ranks: int, *arguments: str) -> str:
    """What a program prints that comes to its end."""
    done = started(program, ranks, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def arrays(folder: Path) -> dict[str, NDArray[Any]]:
    """The arrays in a folder, by name."""
    return {f.stem: np.load(f) for f in sorted(folder.glob("*.npy"))}
