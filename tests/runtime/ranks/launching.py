"""Scripts that `gnnc launch` runs, one at a time whatever else pytest runs: each is several
processes."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

BEGIN = """
import os, signal, sys, time
import numpy as np
import gnnc
from gnnc.runtime.ranks.world import world
c = world()
rank, size = gnnc.rank(), gnnc.world_size()
c.barrier()
"""


@pytest.fixture(autouse=True)
def one_at_a_time():
    with open(Path(tempfile.gettempdir()) / f"gnnc-mpi-tests-{os.getuid()}", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def launched(
    folder: Path,
    size: int,
    body: str,
    *more: str,
    options: tuple[str, ...] = (),
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(BEGIN + textwrap.dedent(body))
    command = [sys.executable, "-m", "gnnc.frontend.cli", "launch", "-n", str(size), *options]
    return subprocess.run(
        [*command, str(script), *more], capture_output=True, text=True, timeout=timeout
    )
