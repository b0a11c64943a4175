"""Built programs: made by plain make in an empty environment, and run."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from gnnc.frontend.torch.training.build import build
from gnnc.frontend.torch.training.program import TrainingProgram

EMPTY = {"PATH": os.environ["PATH"]}


def printed(training: Any, *args: Any, seed: int = 0, **kwargs: Any) -> str:
    """What a training prints in Python, after a seed."""
    out = io.StringIO()
    torch.manual_seed(seed)
    with contextlib.redirect_stdout(out):
        training(*args, **kwargs)
    return out.getvalue()


def loaded(text: str, path: Path) -> Any:
    """The module of a file with this text."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("training_file", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["training_file"] = module  # where Dynamo looks names up
    spec.loader.exec_module(module)
    return module


def made(
    training: TrainingProgram, folder: Path, *args: Any, goal: str = "", **kwargs: Any
) -> Path:
    """The executable of a training."""
    build(training, args, kwargs, folder)
    return compiled(folder, goal)


def compiled(folder: Path, goal: str = "") -> Path:
    """The executable that make makes in a folder, without a warning."""
    command = ["make", "-C", str(folder), "-j2", *([goal] if goal else [])]
    done = subprocess.run(command, env=EMPTY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return folder / ("train-sanitized" if goal == "sanitize" else "train")


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of a program in its folder, on one thread."""
    command = [str(program), *arguments]
    env = {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=env, cwd=program.parent, capture_output=True, text=True)


def trained(program: Path, *arguments: str) -> str:
    """What a program prints that comes to its end."""
    done = run(program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text: str) -> list[float]:
    """The numbers in what is printed."""
    return [float(x) for x in re.findall(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?", text)]


def assert_equal(ours: str, theirs: str, lines: int, within: float) -> None:
    """Raises where two trainings print something else: so many lines of numbers that are near."""
    assert len(ours.splitlines()) == len(theirs.splitlines()) == lines
    assert len(numbers(ours)) >= 2 * lines
    without = [re.sub(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?", "#", x) for x in (ours, theirs)]
    assert without[0] == without[1]
    pairs = list(zip(numbers(ours), numbers(theirs), strict=True))
    assert max(abs(a - b) / max(1.0, abs(b)) for a, b in pairs) <= within
    assert len(set(numbers(theirs))) > lines  # a loss that stays as it is would show nothing
