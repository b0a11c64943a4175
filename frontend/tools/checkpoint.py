"""Checkpoints of a training: files from which it goes on exactly as if it had not been stopped."""

from __future__ import annotations

import io
import pickle
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import torch

from ...runtime import durable_file
from .children import Message, Refused
from .training import Settings

FORMAT = "checkpoint of gnnc train, 1"
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
        "format": FORMAT,
        "settings": asdict(settings),
        "checksum": checksum,
        "state": state,
        "told": told,
    }
    packed = io.BytesIO()  # of a file that cannot be written, torch would not say why
    torch.save(content, packed)
    try:
        durable_file.replace(path, packed.getbuffer())
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
    """The content of a checkpoint. Only tensors and plain data are read, no code is run."""
    try:
        with ZipFile(path) as archive:
            damaged = archive.testzip()  # torch reads without a look at the checksums
        content: Any = None if damaged else torch.load(path, weights_only=True)
    except (BadZipFile, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise Refused(f"--resume: {path} is damaged or no checkpoint: {error}") from error
    except OSError as error:
        raise Refused(f"--resume: {path} cannot be read: {error}") from error
    if damaged:
        raise Refused(f"--resume: {path} is damaged: the checksum of {damaged} is another")
    if not _is_ours(content):
        raise Refused(f"--resume: {path} is no checkpoint of this version of gnnc train")
    return content


def _is_ours(content: Any) -> bool:
    return isinstance(content, dict) and ("format", FORMAT) in content.items()
