"""Models compiled with the sanitizers leave no buffer and do nothing that C leaves undefined."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from gnnc.runtime.cpu.toolchain import sanitizer_environment  # noqa: E402

from . import zoo  # noqa: E402

pytestmark = pytest.mark.sanitize
FOLDER = Path(__file__).parents[1]
QUICK = ["train_step"]
ALL = [*(name for name in zoo.ZOO if name not in zoo.EAGER), "train_step"]
PARTS = 16
"""Processes that share all models."""


def check(names: list[str], cache: Path) -> None:
    env = {**os.environ, **sanitizer_environment(), "GNNC_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-m", "frontend.sanitized_models", *names],
        cwd=FOLDER,
        env={**env, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == [f"checked {name}" for name in names]
    assert "runtime error" not in done.stderr


def test_quick_models(session_cache):
    check(QUICK, session_cache)


@pytest.mark.long
@pytest.mark.parametrize("first", range(PARTS))
def test_all_models(first, session_cache):
    check(ALL[first::PARTS], session_cache)
