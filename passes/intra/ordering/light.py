"""Nests that take little as part of others: of what reads them, or of what they read."""

from __future__ import annotations

import math
from collections.abc import Iterable

from xdsl.ir import SSAValue

from ....dialects.intra.bindings import AllocOp, NamedBuffer
from ....dialects.intra.rows import TotalOp
from ....dialects.intra.syntax import buffer_dims, element, element_bytes
from .uses import Uses


def part_of_readers(uses: Uses) -> set[int]:
    """The nests that are done right before those that read them, row by row, and not while a
    message is under way, which they would not hide. One that reads more than it writes is better
    part of what it reads; what is read behind the same wait anyway does not count."""
    return {i for i in range(len(uses.steps)) if _is_part_of_readers(uses, i)}


def _is_part_of_readers(uses: Uses, i: int) -> bool:
    readers = uses.readers(i)
    if not readers or not uses.goes_row_by_row(i) or _has_totals(uses, i):
        return False
    if not all(uses.over_the_same_rows(i, r) for r in readers):
        return False
    later = (r for r, w in enumerate(uses.waits) if w - uses.waits[i])
    anyway = uses.read_by(r for r in later if uses.over_the_same_rows(i, r))
    return bytes_of_rows(uses.reads[i] - anyway) <= bytes_of_rows(uses.writes[i])


def part_of_what_it_reads(uses: Uses, i: int, missing: Iterable[int], done: Iterable[int]) -> bool:
    """Whether a nest goes with those just done: row by row over what one of them computed, or what
    follows from that by those that are `missing`."""
    read = uses.reads[i] | uses.read_by(missing)
    return uses.goes_row_by_row(i) and any(
        read & uses.writes[j] and uses.over_the_same_rows(i, j) for j in done
    )


def _has_totals(uses: Uses, i: int) -> bool:
    return any(isinstance(op, TotalOp) for op in uses.steps[i].walk())


def bytes_of_rows(buffers: Iterable[SSAValue]) -> int:
    """Those of one row of each buffer that has rows."""
    rows = (b for b in buffers if isinstance(b.owner, AllocOp | NamedBuffer) and b.owner.domain)
    return sum(element_bytes(element(b.type)) * math.prod(buffer_dims(b)) for b in rows)
