"""Rows that a nest gathers: those that its rows, or the members of their groups, look up.

They lie anywhere, so memory takes long to bring them. Which rows a block will gather is known
before its turn comes, so they may be asked for ahead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from .indices import LookupOp
from .loops import SegmentOp, TraverseOp
from .memory import LoadOp
from .products import MatmulOp, OuterOp
from .syntax import length, row_bytes


@dataclass(frozen=True)
class BlockGathers:
    """What the members of a block of rows gather: loads with the tables that say which row, the
    widest first. The members are those of the groups that `offsets` begin, or the rows of the nest
    themselves.
    """

    loads: tuple[tuple[LoadOp, SSAValue], ...]
    offsets: SSAValue | None

    @property
    def bytes_of_member(self) -> int:
        """What is read for one member."""
        return sum(row_bytes(load.result) for load, _ in self.loads)


def gathered_at(row: SSAValue, ops: Iterable[Operation]) -> list[tuple[LoadOp, SSAValue]]:
    """The loads of several numbers from a row that a table gives for `row`, with the table."""
    out: list[tuple[LoadOp, SSAValue]] = []
    for op in ops:
        if isinstance(op, LoadOp) and length(op.result) > 1:
            lookup = op.row.owner
            if isinstance(lookup, LookupOp) and lookup.row is row:
                out.append((op, lookup.table))
    return out


def gathered_beside_products(nest: TraverseOp) -> BlockGathers | None:
    """What a nest with products gathers for a block of its rows, once each; None where that is
    nothing. Of segments over groups of the nest's rows, the first one's groups count."""
    if not any(isinstance(op, MatmulOp | OuterOp) for op in nest.body.block.ops):
        return None
    segments = [op for op in nest.walk() if isinstance(op, SegmentOp) and op.row is nest.row]
    offsets = segments[0].offsets if segments else None
    if offsets is None:
        found = gathered_at(nest.row, nest.walk())
    else:
        same = [op for op in segments if op.offsets is offsets]
        found = [g for op in same for g in gathered_at(op.body.block.args[0], op.walk())]
    once = {(op.buffer, table): (op, table) for op, table in found}
    widest = sorted(once.values(), key=lambda g: -row_bytes(g[0].result))
    return BlockGathers(tuple(widest), offsets) if widest else None
