"""fuse-traversals, accesses: what a step does to memory, as merge asks it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ....dialects.intra.bindings import root
from ....dialects.intra.rows import (
    LoadOp,
    LookupOp,
    MatmulOp,
    OuterOp,
    SegmentOp,
    StoreOp,
    TraverseOp,
    buffers_read,
    buffers_written,
)
from ....dialects.intra.steps import Step
from ....dialects.intra.syntax import row_bytes
from ....dialects.walks import ops_within
from ...analysis.costs import DEGREE
from .simplify import identity

Gathered = tuple[SSAValue, object, SSAValue]
"""The groups, the table and the buffer of rows that are gathered."""


@dataclass
class Accesses:
    """What a step does to memory: roots of the buffers it reads and writes; of a nest also bytes a
    row by root of what it loads and stores at its own row, and by group, table and root of what it
    gathers for the rows of its group; how many ops and products it has.
    """

    reads: set[SSAValue]
    writes: set[SSAValue]
    loaded: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    stored: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    gathered: dict[Gathered, int] = field(default_factory=dict[Gathered, int])
    ops: int = 0
    products: int = 0

    @staticmethod
    def of(step: Step) -> Accesses:
        if not isinstance(step, TraverseOp):
            return Accesses(step.reads(), step.writes())
        ops, row = ops_within(step), step.row
        found = Accesses(buffers_read(ops), buffers_written(ops), ops=1 + len(ops))
        for op in ops:
            if isinstance(op, LoadOp):
                if op.row is row:
                    found.loaded[root(op.buffer)] = row_bytes(op.result)
            elif isinstance(op, StoreOp):
                if op.row is row:
                    found.stored[root(op.buffer)] = row_bytes(op.value)
            elif isinstance(op, MatmulOp | OuterOp):
                found.products += 1
        found.gathered = gathers(step)
        return found

    def of_buffers(self, buffers: Set[SSAValue]) -> Accesses:
        """What of it is done to some of the buffers."""
        loaded = {b: size for b, size in self.loaded.items() if b in buffers}
        stored = {b: size for b, size in self.stored.items() if b in buffers}
        gathered = {k: size for k, size in self.gathered.items() if k[-1] in buffers}
        reads, writes = self.reads & buffers, self.writes & buffers
        return Accesses(reads, writes, loaded, stored, gathered, self.ops, self.products)

    def key(self) -> object:
        """Equal for what is equal."""
        sizes = (frozenset(x.items()) for x in (self.loaded, self.stored, self.gathered))
        return frozenset(self.reads), frozenset(self.writes), *sizes, self.ops, self.products


def gathers(nest: TraverseOp) -> dict[Gathered, int]:
    """What the groups of the nest's own rows look up through tables, in bytes a row."""
    found: dict[Gathered, int] = {}
    for segment in nest.body.block.ops:
        if not isinstance(segment, SegmentOp) or segment.row is not nest.row:
            continue
        for op in segment.body.block.ops:
            if isinstance(op, LoadOp) and isinstance(lookup := op.row.owner, LookupOp):
                key = segment.offsets, identity(lookup.table), root(op.buffer)
                found[key] = round(DEGREE * row_bytes(op.result))
    return found
