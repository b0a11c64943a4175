"""interleave-rows: narrow rows that are gathered together lie side by side.

The backward half of attention reads at each edge a score, a maximum, a sum and a gradient of the
node at its other end. In a buffer each they are a cache line each, in pages far from each other; in
the rows of one buffer they are as many lines as they fill (an array of structures).

Before: `%a = intra.alloc : memref<?x32xf32>`, `%b = intra.alloc : memref<?x8xf32>`, loads of both
at a row that a table leads to. After: `%all = intra.alloc : memref<?x40xf32>`, `%a = intra.columns
%all {first = 0}`, `%b = intra.columns %all {first = 32}`.

Rows that fill lines by themselves join where that keeps them in memory no longer. Very narrow ones
are joined with each other alone: many nodes share a line of theirs, which is likely to be in a
cache. Comes behind cut-stages, which decides what products read and write in place: those take
rows that lie close.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.intra.bindings import AllocOp, ColumnsOp, DomainAttr, pitch
from ...dialects.intra.rows import LoadOp, LookupOp, StoreOp, TraverseOp
from ...dialects.intra.steps import Step, phases, steps
from ...dialects.intra.syntax import FLOATS, buffer_type, element, element_bytes
from .plan_memory import lives_of

LINE = 64
"""Bytes that are read of memory at least."""
NARROW = LINE // 4
"""Bytes of the narrowest rows that lie beside wider ones: of narrower ones many share a line."""
SLACK = 1 / 32
"""By so much of the most that is in use at once may the memory of a set's rows grow."""


@dataclass(frozen=True)
class InterleaveRowsPass(ModulePass):
    """Lays rows beside each other that are gathered together."""

    name = "interleave-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            interleave(func)


def interleave(func: FuncOp) -> None:
    """Does so in a phase; the rows that are gathered first choose their company first."""
    order = steps(func)
    memory = Memory(func, order)
    taken: set[AllocOp] = set()
    for together in gathered(order):
        for alike in by_width([op for op in together if op not in taken]):
            found = company(alike, memory)
            if len(found) > 1:
                memory.join(found)
                taken.update(found)
                lay(found)


def gathered(order: Sequence[Step]) -> Iterator[list[AllocOp]]:
    """The allocations whose rows a nest reads at one and the same place that a table leads to."""
    for nest in order:
        by_row: dict[SSAValue, dict[AllocOp, None]] = {}
        for op in nest.walk():
            if isinstance(op, LoadOp) and isinstance(op.row.owner, LookupOp):
                rows = op.buffer.owner
                if isinstance(rows, AllocOp) and may_lie_apart(rows):
                    by_row.setdefault(op.row, {})[rows] = None
        yield from map(list, by_row.values())


def may_lie_apart(rows: AllocOp) -> bool:
    """Whether the rows need not lie close to each other."""
    if rows.domain is None or element(rows.result.type) not in FLOATS:
        return False
    users = (use.operation for use in rows.result.uses)
    # what stands in the nest itself is a product's, in place
    return all(
        isinstance(op, LoadOp | StoreOp) and not isinstance(op.parent_op(), TraverseOp)
        for op in users
    )


def row_bytes(rows: AllocOp) -> int:
    """Bytes of a row."""
    return pitch(rows.result) * element_bytes(element(rows.result.type))


def by_width(together: Sequence[AllocOp]) -> list[list[AllocOp]]:
    """Those that may lie side by side: of one type of numbers, and all very narrow or none."""
    found: dict[object, list[AllocOp]] = {}
    for op in together:
        found.setdefault((element(op.result.type), row_bytes(op) < NARROW), []).append(op)
    return list(found.values())


class Memory:
    """What the allocations of each set take, in bytes a row, from step to step."""

    def __init__(self, func: FuncOp, order: Sequence[Step]) -> None:
        self.lives = lives_of(order)
        nothing = np.zeros(len(order), np.int64)
        self.in_use: dict[DomainAttr | None, NDArray[np.int64]] = defaultdict(nothing.copy)
        for op in func.body.block.ops:
            if isinstance(op, AllocOp) and op.result in self.lives:
                life = self.lives[op.result]
                self.in_use[op.domain][life.first : life.last + 1] += row_bytes(op)

    def has_room(self, group: Sequence[AllocOp]) -> bool:
        """Whether a group that lives as long as any of it takes no more, or little."""
        before = self.in_use[group[0].domain]
        return self.joined(group).max() <= (1 + SLACK) * before.max()

    def joined(self, group: Sequence[AllocOp]) -> NDArray[np.int64]:
        """What is in use of a set from step to step where all of a group lives as long as any."""
        out = self.in_use[group[0].domain].copy()
        lives = [self.lives[op.result] for op in group]
        for op, life in zip(group, lives, strict=True):
            out[life.first : life.last + 1] -= row_bytes(op)
        first, last = min(x.first for x in lives), max(x.last for x in lives)
        out[first : last + 1] += sum(map(row_bytes, group))
        return out

    def join(self, group: Sequence[AllocOp]) -> None:
        """Takes a group for one."""
        self.in_use[group[0].domain] = self.joined(group)


def company(together: Sequence[AllocOp], memory: Memory) -> list[AllocOp]:
    """Those that are to lie side by side, the widest first: the narrow ones, and each of the others
    for which there is room."""
    found = [op for op in together if row_bytes(op) < LINE]
    if not found or not memory.has_room(found):
        return []
    for op in sorted((op for op in together if row_bytes(op) >= LINE), key=row_bytes):
        if memory.has_room([op, *found]):
            found.insert(0, op)
    return found


def lay(group: Sequence[AllocOp]) -> None:
    """Makes columns of one allocation of the rows of a group."""
    first, kind = group[0], element(group[0].result.type)
    whole = buffer_type((sum(pitch(op.result) for op in group),), kind)
    all_rows = AllocOp.make([], [whole], domain=first.domain)
    block = first.parent
    assert block is not None
    Rewriter.insert_op(all_rows, InsertPoint.before(min(group, key=block.get_operation_index)))
    at = 0
    for op in group:
        assert isinstance(op.result.type, MemRefType)
        part = ColumnsOp.make([all_rows.result], [op.result.type], first=IntAttr(at))
        part.result.name_hint = op.result.name_hint
        at += pitch(op.result)
        Rewriter.replace_op(op, part)
