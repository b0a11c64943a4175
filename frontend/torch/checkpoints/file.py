"""Files of checkpoints: tensors and plain data, replaced as a whole and looked at before use."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch

from ....runtime import durable_file

OURS = "checkpoint of gnnc"
"""What all formats begin with."""


class BadCheckpoint(ValueError):
    """A file that is damaged, no checkpoint or one of another version, or that does not fit what is
    to go on from it."""


def write(path: Path, format: str, content: dict[str, Any]) -> None:
    """Replaces the file by one with `content`, tensors and plain data.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    packed = io.BytesIO()  # of a file that cannot be written, torch would not say why
    torch.save({"format": format, **content}, packed)
    durable_file.replace(path, packed.getbuffer())


def unpacked(data: bytes, path: Path, format: str) -> dict[str, Any]:
    """What `write` was given, from the bytes of the file `path`. Only tensors and plain data are
    read, no code is run; tensors are on the CPU.

    Raises:
        BadCheckpoint: the file is damaged, or none of this format.
    """
    file = io.BytesIO(data)
    try:
        with ZipFile(file) as archive:
            damaged = archive.testzip()  # torch reads without a look at the checksums
        file.seek(0)
        content: Any = None if damaged else torch.load(file, "cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # bytes that are wrong meet readers with all kinds of them
        raise BadCheckpoint(f"{path} is damaged or no checkpoint: {error}") from error
    if damaged:
        raise BadCheckpoint(f"{path} is damaged: the checksum of {damaged} is another")
    found = content.pop("format", None) if isinstance(content, dict) else None
    if found == format:
        return content
    if isinstance(found, str) and found.startswith(OURS):
        raise BadCheckpoint(f'{path} is no "{format}", which is read here, but a "{found}"')
    raise BadCheckpoint(f"{path} is no checkpoint of gnnc")
