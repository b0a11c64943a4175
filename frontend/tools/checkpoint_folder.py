"""The folder of `gnnc train --checkpoint`: a file a training, named by its way and its seed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .children import Refused

LOCK = ".lock"


@dataclass(frozen=True)
class CheckpointFolder:
    """A folder that this run writes its checkpoints to."""

    path: Path

    def file(self, way: str, seed: int) -> Path:
        """Where a training has its checkpoint."""
        return self.path / f"{way}-seed{seed}.pt"


@contextmanager
def opened(path: Path, resume: bool) -> Generator[CheckpointFolder]:
    """The folder, for this run alone until it is left.

    Without `resume` there must be no checkpoint of an earlier run in it, so that none is
    overwritten; with it, the folder must be there.

    Raises:
        Refused: there is one, or not; another run has the folder, or it cannot be written to.
    """
    try:
        if not resume:
            path.mkdir(parents=True, exist_ok=True)
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise Refused(f"--checkpoint: {error.strerror}: {path}") from error
    try:
        _take(lock, path)
        found = sorted(p.name for p in path.glob("*-seed*.pt"))
        if found and not resume:
            raise Refused(
                f"--checkpoint: {path} has checkpoints of an earlier run ({found[0]}, ..): "
                "go on with it by --resume, or name another folder"
            )
        yield CheckpointFolder(path)
    finally:
        os.close(lock)


def _take(lock: int, path: Path) -> None:
    """Locks it; the system unlocks it when this process ends, however it ends."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Refused(f"--checkpoint: another run is writing to {path}") from error
