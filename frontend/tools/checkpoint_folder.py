"""The folder of `gnnc train --checkpoint`: a file a training, named by its way and its seed."""

from __future__ import annotations

import os
from pathlib import Path

from .children import Refused


class CheckpointFolder:
    """A folder that a run may write its checkpoints to.

    Without `resume` there must be none of an earlier run in it, so that none is overwritten.

    Raises:
        Refused: it is no such folder, or cannot be written to.
    """

    def __init__(self, path: Path, resume: bool):
        self.path = path
        try:
            if not resume:
                path.mkdir(parents=True, exist_ok=True)
            found = sorted(p.name for p in path.iterdir() if p.match("*-seed*.pt"))
        except OSError as error:
            raise Refused(f"--checkpoint: {error.strerror}: {path}") from error
        if not os.access(path, os.W_OK | os.X_OK):
            raise Refused(f"--checkpoint: {path} cannot be written to")
        if found and not resume:
            raise Refused(
                f"--checkpoint: {path} has checkpoints of an earlier run ({found[0]}, ..): "
                "go on with it by --resume, or name another folder"
            )

    def file(self, way: str, seed: int) -> Path:
        """Where a training has its checkpoint."""
        return self.path / f"{way}-seed{seed}.pt"
