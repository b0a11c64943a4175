"""The constants of a machine, and their file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...runtime import durable_file

Floats = NDArray[np.float64]

PACE = ("edge_number", "far_number", "node_number", "multiply_add", "score")
"""The constants of work that is done faster where fewer cores work."""

FORMAT = "constants of gnnc plan"
VERSION = 1


class BadConstants(ValueError):
    """A constant out of its range, or a file that has no constants."""


@dataclass(frozen=True)
class Constants:
    """What work and messages cost. The defaults are those of a rank with one core of a shared
    two-core Intel Xeon, and of messages between two processes on it, rounded.

    Attributes:
        edge_number: seconds for a number that an edge reads: the place of a row, or a number of a
            row that is in the caches, by whole cache lines.
        far_number: the same of a row that is in memory.
        cache_bytes: of the rows that edges read, so many are in the caches, or near enough.
        node_number: seconds for a number of a node's row that is read or written in order.
        multiply_add: seconds for a multiplication and addition of a product with a weight.
        score: seconds for the weight of an edge in a head of attention, once computed.
        fixed: seconds of a step whatever the graph is.
        shared: the time of work where all cores of the machine have ranks, over that of a rank
            alone; for all steps of more than one rank.
        shared_caches: the share of `cache_bytes` that a rank has there.
        exchange: seconds of a rank for each exchange with others, whatever it sends.
        alpha: seconds for each message, on both of its ends.
        bandwidth: bytes a second of a link (beta).
        overlap: the share of the aggregation of local edges that can go on beside messages. 0 where
            cores carry messages, as between processes of one machine.
        fixed_bytes: bytes of a process that trains, before the graph.
        edge_bytes: bytes for each edge of a rank.
    """

    edge_number: float = 5.5e-11
    far_number: float = 2.7e-10
    cache_bytes: float = 8.4e6
    node_number: float = 1.45e-10
    multiply_add: float = 8.1e-12
    score: float = 1.2e-9
    fixed: float = 2.3e-4
    shared: float = 1.1
    shared_caches: float = 0.5
    exchange: float = 2.5e-5
    alpha: float = 1.8e-5
    bandwidth: float = 7.5e9
    overlap: float = 0.0
    fixed_bytes: float = 4.9e8
    edge_bytes: float = 81.0

    def among(self, ranks: int) -> Constants:
        """Those of the work of one of so many ranks, all of which work at once: it does nothing
        else, so they have no `shared` of their own."""
        if ranks == 1:
            return self
        caches = self.shared_caches * self.cache_bytes
        return replace(self.at(self.shared), cache_bytes=caches, shared=1.0, shared_caches=1.0)

    def at(self, pace: float) -> Constants:
        """Those of a machine whose work takes so many times as long."""
        return replace(self, **{name: pace * getattr(self, name) for name in PACE})

    def gathered(self, table: Floats | float) -> Floats | float:
        """Seconds for a number of a row that is read anywhere in a table of so many bytes."""
        near = np.minimum(1.0, self.cache_bytes / np.maximum(table, 1.0))
        return near * self.edge_number + (1 - near) * self.far_number

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise BadConstants(f"{name}: {value}, and it should be a number of at least 0")
        if not self.bandwidth > 0:
            raise BadConstants(f"bandwidth: {self.bandwidth}, and it should be above 0")
        for name in ("overlap", "shared_caches"):
            if getattr(self, name) > 1:
                raise BadConstants(f"{name}: {getattr(self, name)}, and it is a share, at most 1")


def save(path: Path, constants: Constants, machine: Mapping[str, Any]) -> None:
    """Writes the file as a whole; `machine` says what they were measured on.

    Raises:
        OSError: it cannot be written; `path` is as it was.
    """
    whole = {"format": FORMAT, "version": VERSION, "constants": asdict(constants)}
    text = json.dumps({**whole, "machine": machine}, indent=1) + "\n"
    durable_file.replace(path, memoryview(text.encode()))


def load(path: Path) -> Constants:
    """The constants in a file; those that it leaves out have their defaults.

    Raises:
        OSError: the file cannot be read.
        BadConstants: it has none, or one that is no number, or that is not known.
    """
    try:
        found: object = json.loads(path.read_bytes())
    except ValueError as error:
        raise BadConstants(f"{path} has no constants: {error}") from error
    whole = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if whole.get("format") != FORMAT or not isinstance(whole.get("constants"), dict):
        raise BadConstants(f"{path} has no constants of gnnc plan")
    if whole.get("version") != VERSION:
        raise BadConstants(f"{path} has version {whole.get('version')}, this gnnc reads {VERSION}")
    given = cast("dict[str, Any]", whole["constants"])
    known = {f.name for f in fields(Constants)}
    for name, value in given.items():
        if name not in known:
            raise BadConstants(
                f"{path}: {name} is no constant, they are {', '.join(sorted(known))}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadConstants(f"{path}: {name}: {value!r} is no number")
    try:
        return Constants(**{name: float(value) for name, value in given.items()})
    except BadConstants as error:
        raise BadConstants(f"{path}: {error}") from error
