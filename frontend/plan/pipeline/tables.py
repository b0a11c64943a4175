"""What a search tried, in a file: for the next run on the same rows and device, and to read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from ....runtime import durable_file
from .launches import Launch
from .play import Task
from .search import Tries

FORMAT = "launches of gnnc"
VERSION = 1


class BadTable(ValueError):
    """A file that is no table of launches, or that of other rows or another device."""


def fingerprint(tasks: Sequence[Task]) -> str:
    """SHA-256 of what all ranks sum up."""
    found = hashlib.sha256()
    for t in tasks:
        found.update(f"{len(t.local)} {t.width} {t.depth};".encode())
        for degrees in (t.local, t.remote):
            found.update(degrees.astype("<i8").tobytes())
    return found.hexdigest()


def save(path: Path, tries: Tries, device: str, tasks: Sequence[Task]) -> None:
    """Writes the table; a file that is there is replaced as a whole.

    Raises:
        OSError: it cannot be written, and is as it was.
    """
    table = {
        "format": FORMAT,
        "version": VERSION,
        "device": device,
        "rows": fingerprint(tasks),
        "launches": [
            # no JSON has infinities
            {"ps": x.ps, "dist": x.dist, "wpb": x.wpb, "seconds": s if s < float("inf") else None}
            for x, s in tries.seconds.items()
        ],
    }
    durable_file.replace(path, memoryview(json.dumps(table, indent=1).encode()))


def load(path: Path, device: str, tasks: Sequence[Task]) -> Tries:
    """The table of a search for these rows on this device.

    Raises:
        OSError: it cannot be read.
        BadTable: it is none, damaged, or of something else.
    """
    try:
        found: object = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadTable(f"{path} is no table of launches: {error}") from error
    table = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if (table.get("format"), table.get("version")) != (FORMAT, VERSION):
        raise BadTable(f"{path} is no table of launches of version {VERSION}")
    if table.get("device") != device:
        raise BadTable(f"{path} is of the device {table.get('device')}, and this is {device}")
    if table.get("rows") != fingerprint(tasks):
        raise BadTable(f"{path} is of other rows")
    try:
        return Tries({_launch(x): _seconds(x["seconds"]) for x in table["launches"]})
    except (KeyError, TypeError, ValueError) as error:
        raise BadTable(f"{path} is damaged: {error!r}") from error


def _launch(entry: dict[str, Any]) -> Launch:
    return Launch(int(entry["ps"]), int(entry["dist"]), int(entry["wpb"]))


def _seconds(value: Any) -> float:
    if value is None:
        return float("inf")
    seconds = float(value)
    if not seconds >= 0:
        raise ValueError(f"{value} seconds")
    return seconds
