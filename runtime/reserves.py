"""How many chunks of rows a step has at most, by the sizes of a graph: for so many it is given
scratch memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .sets.tables import Domain

KIND = "chunks"
"""A length that phases ask for as for that of a table, where there is none."""


class Reserve(NamedTuple):
    """A number of chunks, by what codegen/common/scratch.py says of it: the numbers of the domains
    that have the rows, and of the one whose rows are their work."""

    pieces: int
    rows: Sequence[int]
    work: int | None
    row_cost: int
    grain: int
    most: int

    @classmethod
    def of(cls, spec: Mapping[str, Any], number: Callable[[Domain], int]) -> Reserve:
        """A description with its domains numbered."""
        work = None if spec["work"] is None else number(spec["work"])
        rows = [number(domain) for domain in spec["rows"]]
        return cls(spec["pieces"], rows, work, spec["row_cost"], spec["grain"], spec["chunks"])

    def chunks(self, counts: Sequence[int]) -> int:
        """As many as `chunk_count` of the kernels (codegen/openmp/prelude.h) finds where all rows
        of the domain belong to groups, else no fewer; `counts` are the rows of all domains."""
        rows = self.pieces + sum(counts[domain] for domain in self.rows)
        members = 0 if self.work is None else counts[self.work]
        found = min(max((members + self.row_cost * rows) // self.grain, 1), self.most)
        return found & ~1 if found > 1 else 1
