"""Scratch memory of a step: temporaries that are in use at this step alone. Where each chunk of a
nest's rows keeps partial results, there are as many rows as chunks, by the sizes at hand; where
rounds do without sums of chunks, as many as rows that they keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from ...dialects.intra import bindings
from .c_types import CType
from .host import domain_of

CHUNKS, SUMS, ROWS = "chunks", "sums", "rows"
"""What a piece of scratch memory has rows for: chunks, or blocks of a round; chunks with sums of
their own; rows that rounds keep."""
RESERVED = {CHUNKS: "reserved", ROWS: "kept"}
"""The parameters of a kernel that say for how many chunks, and rows of rounds, it has scratch
memory; for none of these where there are no rounds."""


@dataclass(frozen=True)
class Chunks:
    """How a nest's rows are cut into chunks: `most` at most, of about `grain` units of work. A row
    is `row_cost`, and so much more as it has members of the group `offsets`. There are rounds of
    `round` blocks of `block` rows instead (0: there are not) where chunks would take too much."""

    offsets: bindings.OffsetsOp | None
    row_cost: int
    grain: int
    most: int
    block: int = 0
    round: int = 0


@dataclass(frozen=True)
class Scratch:
    """`count` numbers, or as many for each of what there is of a kind, with `chunks`; kernels call
    them `name`."""

    name: str
    c: CType
    count: int
    chunks: Chunks | None = None
    kind: str = CHUNKS


def rows_of_nest(size: SSAValue) -> dict[str, Any]:
    """How many rows a nest has, as plain data: those of domains, and so many `pieces` more."""
    match op := size.owner:
        case bindings.SizeOp(domain=None):
            return {"rows": [], "pieces": 1}
        case bindings.SizeOp():
            return {"rows": [domain_of(op.domain)], "pieces": 0}
        case bindings.PiecesOp():
            return {"rows": [], "pieces": op.count.data}
        case bindings.SumSizesOp():
            left, right = rows_of_nest(op.left), rows_of_nest(op.right)
            return {name: left[name] + right[name] for name in left}
        case _:
            raise AssertionError(op)
