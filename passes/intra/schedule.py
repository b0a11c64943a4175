"""schedule: how each nest is cut into chunks, blocks and vectors on a target.

Attaches `{schedule = #intra.schedule<..>}` to every nest: rows of a chunk carry about `grain` units
of work (an edge is 1, a row `row_cost`; twice as much where chunks share sums of groups, up to two
of which each hands over; more where partial sums are large, so that they take a small part of a
chunk's time), `chunks` bounds their number; where such sums are large, there may be rounds of
blocks instead, and one sum that all threads add to: sizes decide (runtime/reserves.py); `block`
rows pass through the stages of a nest together so that they stay in the near caches; rows that are
gathered are asked for at most `prefetch` members before, fewer where they are wide, and while
products of one block run those of the next (none with `prefetch` 0). Operands of
outer products are exchanged where that saves vectors (turn_outer.py). The numbers depend on widths
only, never on a graph, so one program serves all graphs and any number of threads.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra.bindings import OffsetsOp, PiecesOp
from ...dialects.intra.gathers import gathered_beside_products
from ...dialects.intra.rows import (
    ApplyOp,
    DotOp,
    DropoutOp,
    LoadOp,
    LookupOp,
    MatmulOp,
    OuterOp,
    SegmentOp,
    StoreOp,
    TotalOp,
    TraverseOp,
)
from ...dialects.intra.schedule import ScheduleAttr
from ...dialects.intra.steps import phases
from ...dialects.intra.strips import strip_of
from ...dialects.intra.syntax import element, element_bytes, length, row_bytes
from ...dialects.pointwise import POINTWISE
from ..targets import DEFAULT, Target, target_of
from .cut_stages import uncut
from .turn_outer import turn_outer_products

PRODUCTS = (MatmulOp, OuterOp)

GRAIN = 8192
"""Units of work of a chunk, as a rule."""
FEWEST = 8
"""Members of a strip that are worth it."""
ENOUGH = 3
"""Functions of single numbers that are."""
AHEAD = 16 * 1024
"""Bytes of gathered rows that are asked for and not yet read: a part of the nearest cache."""
MEANWHILE = 128 * 1024
"""Bytes of gathered rows that are asked for beyond a block: a part of the second-level cache."""
FEWEST_AHEAD = 8
"""Members whose rows are asked for before, at least."""
APART = 96 * 1024
"""Bytes of sums that each chunk has to itself on any graph. Rounds read rows in parts, which takes
longer where these come from memory."""
ROUND = 12
"""Blocks of a round, at most: enough for several threads, and so few that their rows stay near; of
blocks of twice the rows half as many."""
NARROW = 128
"""Columns of the right operand, at most: with 256 rounds took an eighth longer than chunks do."""
FEWEST_OF_ROUND = 4
"""Blocks of a round, at least: for as many threads."""


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """Decide chunks, blocks and vector width of every nest."""

    name = "schedule"

    target: str = DEFAULT
    vector_bytes: int = 64
    block: int = 48
    grain: int = GRAIN
    chunks: int = 256
    row_cost: int = 4
    prefetch: int = 64
    apart: int = APART

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(self.name, self.target)
        if self.vector_bytes not in (16, 32, 64):
            raise PassFailedException(
                f"schedule: vector-bytes is 16, 32 or 64, not {self.vector_bytes}"
            )
        least = {"block": 1, "grain": 1, "chunks": 1, "row_cost": 0, "prefetch": 0, "apart": 0}
        for name, bound in least.items():
            if not bound <= getattr(self, name) < 2**31:
                option = name.replace("_", "-")
                raise PassFailedException(
                    f"schedule: {option} is {bound} or more, not {getattr(self, name)}"
                )
        for func in phases(op):
            for nest in uncut(func, self.name):
                turn_outer_products(nest, self.vector_bytes)
                nest.properties["schedule"] = self.of(nest, target)
                for group in nest.walk():
                    if isinstance(group, SegmentOp) and pays_in_strips(group, self.vector_bytes):
                        group.in_strips = UnitAttr()

    def of(self, nest: TraverseOp, target: Target) -> ScheduleAttr:
        """The schedule of one nest."""
        sums = partial_bytes(nest)
        return ScheduleAttr.of(
            vector_bytes=self.vector_bytes,
            block=self.block_rows(nest, target, block_sums(nest)),
            grain=int(self.grain * work_of_chunk(nest, sums, target)),
            chunks=most_chunks(sums, self.chunks, target),
            row_cost=self.row_cost + products(nest) // 512 + pieces(nest) // 64,
            prefetch=min(self.prefetch, members_ahead(nest)),
            panel=target.nests.panels[self.vector_bytes],
            masked=int(self.vector_bytes in target.nests.masked),
            round=self.round_blocks(nest, target),
            meanwhile=members_meanwhile(nest) if self.prefetch else 0,
        )

    def round_blocks(self, nest: TraverseOp, target: Target) -> int:
        """The blocks of a round after which threads share the columns of sums of outer products,
        where these take more than `apart` bytes, of which each chunk would have its own; 0 where
        chunks are better. The rows of a round take no more memory than the sums. An even number,
        for two threads.
        """
        sums, outers = block_sums(nest), [op for op in nest.walk() if isinstance(op, OuterOp)]
        wide = any(op.sizes()["f"] > NARROW for op in outers)
        if sums <= self.apart or wide or sums_by_group(nest):
            return 0
        rows = self.block_rows(nest, target, sums)
        most = ROUND * self.block_rows(nest, target) // rows
        bytes_of_block = rows * max(self.local_bytes(nest, (OuterOp,)), 1)
        blocks = min(sums // bytes_of_block, most) // 2 * 2
        return blocks if blocks >= FEWEST_OF_ROUND else 0

    def block_rows(self, nest: TraverseOp, target: Target, far: int = 0) -> int:
        """As many rows as the cache holds, at most `block`; halved, so that tiles divide it. Twice
        both where sums of outer products, of `far` bytes, leave the near caches between two blocks:
        each block loads and stores all of them.
        """
        per_row, times = self.local_bytes(nest), 2 if far > target.caches.block else 1
        rows = self.block * times
        while rows > 6 and rows * per_row > target.caches.block * times:
            rows //= 2
        while rows > 1 and rows * per_row > target.caches.stack:
            rows //= 2
        return rows

    def local_bytes(self, nest: TraverseOp, kinds: tuple[type, ...] = PRODUCTS) -> int:
        """What a row takes in block-local buffers: what products of these kinds read and make, but
        for rows that they read where they lie."""
        local: dict[SSAValue, int] = {}
        for op in nest.body.block.ops:
            if not isinstance(op, kinds):
                continue
            if isinstance(op, MatmulOp):
                values = (op.x, op.result)
            elif isinstance(op, OuterOp):
                values = (op.a, op.b)
            else:
                continue
            for v in values:
                size = row_bytes(v)
                lies = isinstance(v.owner, LoadOp) and v.owner.row is nest.row
                whole = size % self.vector_bytes == 0 or not isinstance(op, OuterOp) or v is op.a
                local[v] = max(local.get(v, 0), 0 if lies and whole else size)
        return sum(local.values())


def members_ahead(nest: TraverseOp) -> int:
    """How many members, or rows of the nest, before it is read a row is asked for: as many as the
    nearest cache holds of what one of them gathers."""
    gathered: Counter[SSAValue] = Counter()
    for op in nest.walk():
        if isinstance(op, LoadOp) and isinstance(lookup := op.row.owner, LookupOp):
            gathered[lookup.row] += row_bytes(op.result)
    return max(FEWEST_AHEAD, AHEAD // max(gathered.values(), default=1))


def members_meanwhile(nest: TraverseOp) -> int:
    """The members of the next block whose rows are asked for while products of a block run; 0 where
    nothing is gathered beside products."""
    gathers = gathered_beside_products(nest)
    return 0 if gathers is None else max(MEANWHILE // gathers.bytes_of_member, 1)


def pays_in_strips(op: SegmentOp, vector_bytes: int) -> bool:
    """Whether what several members have computed at once is worth laying it side by side: a heavy
    function, or a few others. Groups by several maps have few members."""
    strip = strip_of(op, vector_bytes)
    if strip is None or strip.members < FEWEST or by_several_maps(op):
        return False
    applied = [POINTWISE[o.fn.data] for o in strip.narrow if isinstance(o, ApplyOp)]
    drops = any(isinstance(o, DropoutOp) for o in strip.narrow)
    return drops or any(f.heavy for f in applied) or len(applied) >= ENOUGH


def by_several_maps(op: SegmentOp) -> bool:
    """Whether the groups are those of pairs, or of more keys."""
    offsets = op.offsets.owner
    return isinstance(offsets, OffsetsOp) and len(offsets.along) > 1


def most_chunks(sums: int, chunks: int, target: Target) -> int:
    """At most `chunks`, fewer where the partial sums of each, of so many bytes, are large; at least
    4, for as many threads."""
    caches, sums = target.caches, max(sums, 1)
    near = max(target.nests.enough_chunks, caches.near_partials // sums)
    return max(4, min(chunks, near, caches.partials // sums))


def work_of_chunk(nest: TraverseOp, sums: int, target: Target) -> float:
    """How many grains a chunk has, so that its partial sums, of so many bytes, take a small part of
    its time."""
    times = sums / (GRAIN * target.caches.partials_a_unit)
    return max(2 if sums_by_group(nest) else 1, times)


def partial_bytes(nest: TraverseOp) -> int:
    """What the partial sums of one chunk take."""
    found = 0
    for op in nest.body.block.ops:
        if isinstance(op, OuterOp):
            found += outer_bytes(op) * (2 if op.at else 1)  # chunks share sums at both ends
        elif isinstance(op, TotalOp):
            found += row_bytes(op.value)
    return found


def block_sums(nest: TraverseOp) -> int:
    """Bytes of the sums of outer products that every block of rows adds to."""
    found = (op for op in nest.body.block.ops if isinstance(op, OuterOp) and not op.at)
    return sum(outer_bytes(op) for op in found)


def sums_by_group(nest: TraverseOp) -> bool:
    """Whether sums of outer products are kept by group."""
    return any(isinstance(op, OuterOp) and bool(op.at) for op in nest.body.block.ops)


def pieces(nest: TraverseOp) -> int:
    """Numbers that a nest over pieces of a row loads and stores for each: they may be long."""
    if not isinstance(nest.size.owner, PiecesOp):
        return 0
    moved = (
        op.result if isinstance(op, LoadOp) else op.value
        for op in nest.body.block.ops
        if isinstance(op, LoadOp | StoreOp)
    )
    return sum(length(v) for v in moved)


def outer_bytes(op: OuterOp) -> int:
    """What one partial sum of outer products takes, padded to whole vectors."""
    n = op.sizes()
    return element_bytes(element(op.a.type)) * n["b"] * n["k"] * (n["f"] + 15)


def products(nest: TraverseOp) -> int:
    """Multiplications a row costs in products and contractions."""
    total = 0
    for op in nest.body.block.ops:
        if isinstance(op, MatmulOp | OuterOp):
            n = op.sizes()
            total += n["l"] * n["b"] * n["k"] * n["f"]
        elif isinstance(op, DotOp):
            total += math.prod(op.sizes().values())
    return total
