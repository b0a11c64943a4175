"""Checkpoints of a training: files from which it goes on exactly as if it had not been stopped."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..torch.checkpoints import file
from .children import Message, Refused
from .training import Settings

FORMAT = f"{file.OURS} train, 1"
_ELSEWHERE = "root"
"""The setting that may differ: where data lies decides nothing, and the data itself is compared."""


def write(
    path: Path, settings: Settings, checksum: int, state: dict[str, Any], told: Message
) -> None:
    """Replaces the file by one with `state`, of which the training goes on, and `told`, plain data.
    `checksum` is that of the data.

    Raises:
        Refused: it cannot be written; the file is as it was.
    """
    content = {
        "settings": asdict(settings),
        "checksum": checksum,
        "state": state,
        "told": told,
    }
    try:
        file.write(path, FORMAT, content)
    except OSError as error:
        raise Refused(f"--checkpoint: {path} cannot be written: {error}") from error


def read(path: Path, settings: Settings, checksum: int) -> tuple[dict[str, Any], Message]:
    """The state and what was told with it.

    Raises:
        Refused: the file is damaged, is no checkpoint, or is one of another training.
    """
    content = _load(path)
    saved = content["settings"]
    for name, value in asdict(settings).items():
        if name != _ELSEWHERE and saved.get(name) != value:
            raise Refused(
                f"--resume: {path} is of a training with {name.replace('_', '-')} "
                f"{saved.get(name)}, not {value}; give the settings that it was begun with"
            )
    if content["checksum"] != checksum:
        raise Refused(f"--resume: {path} is of a training on other data than --dataset gives now")
    return content["state"], content["told"]


def _load(path: Path) -> dict[str, Any]:
    """The content of a checkpoint."""
    try:
        return file.unpacked(path.read_bytes(), path, FORMAT)
    except file.BadCheckpoint as error:
        raise Refused(f"--resume: {error}") from error
    except OSError as error:
        raise Refused(f"--resume: {path} cannot be read: {error}") from error
