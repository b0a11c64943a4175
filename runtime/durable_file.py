"""Files replaced as a whole: a crash at any moment leaves the old one or the new one."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

BESIDE = ".new"
"""The suffix of what is being written. A crash may leave one; the next write takes its place."""


def replace(path: Path, content: memoryview) -> None:
    """Makes `content` what is in the file `path`.

    The disk has the new content before the name is moved to it, and the name when this returns.

    Raises:
        OSError: it cannot be written; `path` is as it was.
    """
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """A file to write what `path` has once this is left, as `replace` does.

    Raises:
        OSError: it cannot be written; `path` is as it was, as after any other exception.
    """
    beside = path.with_name(path.name + BESIDE)
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """The name is an entry of the folder, which reaches the disk by itself."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
