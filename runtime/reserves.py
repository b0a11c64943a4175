"""How many chunks of rows a step has at most, by the sizes of a graph: for so many it is given
scratch memory. And whether it has chunks, or rounds of blocks, which keep some rows.

All of this follows from sizes alone, never from the number of threads: the order in which numbers
are added depends on it. The same in C is `reserved` of standalone/places.c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .sets.tables import Domain

KIND = "chunks"
"""A length that phases ask for as for that of a table, where there is none."""
SMALL = 64 * 1024
"""Bytes that chunks may take on any graph."""
MORE = 8
"""Scratch memory may take an eighth of what is in use at once without it, so that all together
stays near the bound (footprint.py)."""
FEW = 4
"""Chunks that there are however much they take, where there is work for so many."""
ENOUGH = 8
"""Chunks of which fewer are worse than rounds."""
BEHIND = 32
"""Rows kept beside those of two rounds, of a number or more: a vector of 16 behind each."""


class Reserve(NamedTuple):
    """A number of what is named by `of`, by what codegen/common/scratch.py says of it: the numbers
    of the domains that have the rows, and of the one whose rows are their work."""

    of: str
    pieces: int
    rows: Sequence[int]
    work: int | None
    row_cost: int
    grain: int
    most: int
    bytes: int
    """What a chunk takes."""
    step: int
    block: int
    round: int

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any], number: Callable[[Domain], int]) -> Reserve:
        """A description with its domains numbered."""
        work = None if spec["work"] is None else number(spec["work"])
        rows = [number(domain) for domain in spec["rows"]]
        most = spec["chunks"]
        names = ("row_cost", "grain", "bytes", "step", "block", "round")
        return cls(spec["of"], spec["pieces"], rows, work, most=most, **{n: spec[n] for n in names})

    def length(self, counts: Sequence[int], room: Callable[[int], int]) -> int:
        """The number, where `counts` are the rows of all domains and `room` the bytes that scratch
        memory may take at a step."""
        chunks, rounds = self.cut(counts, room)
        match self.of:
            case "chunks":
                return max(chunks, self.round) if rounds else chunks
            case "sums":
                return 0 if rounds else chunks
            case _:
                kept = min(self.all_rows(counts), 2 * self.block * self.round)
                return kept + BEHIND if rounds else 0

    def cut(self, counts: Sequence[int], room: Callable[[int], int]) -> tuple[int, bool]:
        """How many chunks there are, and whether there are rounds instead of them."""
        found = self.chunks(counts)
        if found * self.bytes <= SMALL or (fit := room(self.step) // self.bytes) >= found:
            return found, False
        if self.round and fit < ENOUGH:
            return found, True
        return max(min(found, FEW), fit & ~1), False

    def chunks(self, counts: Sequence[int]) -> int:
        """As many as `chunk_count` of the kernels (codegen/openmp/prelude.h) finds where all rows
        of the domain belong to groups, else no fewer."""
        members = 0 if self.work is None else counts[self.work]
        work = members + self.row_cost * self.all_rows(counts)
        found = min(max(work // self.grain, 1), self.most)
        return found & ~1 if found > 1 else 1

    def all_rows(self, counts: Sequence[int]) -> int:
        """The rows of the nest."""
        return self.pieces + sum(counts[domain] for domain in self.rows)
