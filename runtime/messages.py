"""What a phase exchanges with other ranks, on one graph: from the entry `comm` of its buffers
(codegen/common/exchange_code.py).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .memory import Region

Domain = list[Any]
Count = Callable[[Domain], int]
"""How many rows a domain has."""


@dataclass(frozen=True)
class Rows:
    """An array that lies somewhere in memory, the number of rows first."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """What it takes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def at(self, address: int | None) -> NDArray[Any]:
        """The array at an address, writable, which has to stay valid while it is used."""
        size = self.bytes
        if not size or not address:
            return np.empty(self.shape, self.dtype)
        memory = (ctypes.c_char * size).from_address(address)
        return np.frombuffer(memoryview(memory).cast("B"), self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Move:
    """Rows that go to others, and theirs."""

    plan: str
    sent: Rows
    received: Rows


@dataclass(frozen=True)
class Reduction:
    """Rows that are reduced over all ranks, in one message: each has as many of them."""

    kind: str
    buffers: tuple[Rows, ...]


@dataclass
class Publication:
    """Buffers that other ranks read where they lie, with their bytes. `numbers` are the rows that
    the plan sends; None where all ranks have the same rows. `placed` says whether the table of
    others' rows is filled already, `known` what the tables of addresses hold, `shown` where the
    buffers of each rank lie."""

    plan: str
    bytes: tuple[int, ...]
    numbers: NDArray[np.int64] | None
    placed: bool = False
    known: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    shown: list[list[Region]] = field(default_factory=list[list[Region]])

    @property
    def said(self) -> str:
        """What it is in messages."""
        return "totals over all ranks" if self.numbers is None else f"plan {self.plan!r}"


@dataclass(frozen=True)
class Messages:
    """The messages of a phase by the numbers that its C calls them, and the place of the functions
    in its array of buffers.
    """

    slot: int
    moves: tuple[Move, ...]
    reductions: tuple[Reduction, ...]
    publications: tuple[Publication, ...]

    @staticmethod
    def of(
        slot: int,
        entry: Mapping[str, Any],
        count: Count,
        dtypes: Mapping[str, Any],
        table: Callable[[int], NDArray[Any]],
    ) -> Messages:
        """From plain data. `dtypes` are the element types by name, `table` gives the index table at
        a place in the phase's array of buffers."""

        def rows(at: Domain | None, b: Mapping[str, Any]) -> Rows:
            n = count(at) if at else 1
            return Rows((n, *b["row"]), np.dtype(dtypes[b["dtype"]]))

        moves = (Move(m["plan"], rows(m["from"], m), rows(m["to"], m)) for m in entry["moves"])
        reductions = (
            Reduction(r["kind"], tuple(rows(b["at"], b) for b in r["buffers"]))
            for r in entry["reductions"]
        )

        def publication(p: Mapping[str, Any]) -> Publication:
            sizes = tuple(rows(b["at"], b).bytes for b in p["buffers"])
            if (sent := p["sent"]) is None:
                return Publication(p["plan"], sizes, None)
            through = sent["through"]
            numbers = np.arange(count(sent["from"])) if through is None else table(through)
            return Publication(p["plan"], sizes, numbers.astype(np.int64))

        publications = map(publication, entry["publications"])
        return Messages(slot, tuple(moves), tuple(reductions), tuple(publications))
