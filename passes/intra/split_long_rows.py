"""split-long-rows: long single rows are computed in pieces, by all threads.

A nest over the single row has one iteration, however long the row: the update of a table of
weights, its penalty, a gradient times the loss's cotangent. What is pointwise in such a nest moves
to a nest over pieces of the row, which are rows of views of the same buffers. Values of one number
are computed for each piece again; what reduces, multiplies or moves long rows stays.

Before: `traverse %i in %one { load 90x64x64 .. }`. After, 90 times as often: `traverse %i in
%pieces { load 4096 .. }`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, IntAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.intra.bindings import PiecesOp, SizeOp, ViewOp, root
from ...dialects.intra.rows import (
    ApplyOp,
    BroadcastOp,
    CastOp,
    ConstOp,
    FirstOp,
    LoadOp,
    ReshapeOp,
    SliceOp,
    StoreOp,
    TraverseOp,
    nests,
)
from ...dialects.intra.steps import phases
from ...dialects.intra.syntax import buffer_type, element, length, row_dims, row_of, row_type
from ..dead_ops import erase_dead
from ..targets import DEFAULT, Nests, target_of
from .cut_stages import uncut

POINTWISE = (ApplyOp, BroadcastOp, CastOp, ConstOp, LoadOp)
SHORT = (*POINTWISE, FirstOp, ReshapeOp, SliceOp)


@dataclass
class Work:
    """Stores of rows of one shape, and all that computes their values, in order."""

    nest: TraverseOp
    stores: list[StoreOp]
    ops: list[Operation] = field(default_factory=list[Operation])

    def buffers(self) -> tuple[set[SSAValue], set[SSAValue]]:
        """Roots of what it reads, and of what it writes."""
        reads = {root(op.buffer) for op in self.ops if isinstance(op, LoadOp)}
        return reads, {root(op.buffer) for op in self.stores}


def piece_length(count: int, most: int) -> int:
    """The longest piece, of `most` numbers or fewer, that divides a row of `count`; 0 where pieces
    would be short."""
    longest = max(n for n in range(1, min(most, count) + 1) if count % n == 0)
    return longest if longest >= math.sqrt(most) else 0


def work_of(nest: TraverseOp, stores: list[StoreOp], piece: int) -> Work | None:
    """What computes the stored rows, if all of it is pointwise."""
    dims = row_dims(stores[0].value.type)
    needed: set[Operation] = set()
    todo: list[SSAValue] = [s.value for s in stores]
    while todo:
        op = todo.pop().owner
        if not isinstance(op, Operation) or op.parent is not nest.body.block:  # a row, a buffer
            continue
        wide = any(row_dims(r.type) == dims for r in op.results)
        if not isinstance(op, POINTWISE if wide else SHORT) or not fits(
            op, nest, dims if wide else None, piece
        ):
            return None
        if op not in needed:
            needed.add(op)
            todo += op.operands
    return Work(nest, stores, [op for op in nest.body.block.ops if op in needed])


def fits(op: Operation, nest: TraverseOp, dims: tuple[int, ...] | None, piece: int) -> bool:
    """Whether an op does the same to a piece as to the whole row: a load is of the row itself, and
    operands of a wide op, whose rows have `dims`, are as wide or a single number."""
    if isinstance(op, LoadOp):
        return op.otherwise is None and (op.row is nest.row or isinstance(op.row.owner, FirstOp))
    rows = [x for x in op.operands if not isinstance(x.type, IndexType)]
    if dims is not None:
        return all(row_dims(x.type) == dims or length(x) == 1 for x in rows)
    return all(length(x) <= piece for x in (*rows, *op.results) if x.type != IndexType())


def spreadable(nest: TraverseOp, limits: Nests) -> Iterable[Work]:
    """The parts of a nest over the single row that can be done in pieces."""
    by_shape: dict[tuple[int, ...], list[StoreOp]] = defaultdict(list)
    for op in nest.body.block.ops:
        if not isinstance(op, StoreOp) or (count := length(op.value)) < limits.long_row:
            continue
        if piece_length(count, limits.piece):
            by_shape[row_dims(op.value.type)].append(op)
    for stores in by_shape.values():
        work = work_of(nest, stores, limits.piece)
        if work is not None and independent(nest, work):
            yield work


def independent(nest: TraverseOp, work: Work) -> bool:
    """Whether the part may run before the rest of its nest."""
    reads, writes = work.buffers()
    rest = [op for op in nest.body.block.ops if isinstance(op, StoreOp) and op not in work.stores]
    kept = {root(op.buffer) for op in rest}
    loads = {root(op.buffer) for op in nest.walk() if isinstance(op, LoadOp)}
    return not (reads & (kept | writes)) and not (writes & (loads | kept))


def spread(work: Work, most: int) -> None:
    """Move a part of a nest to a nest over pieces, of `most` numbers or fewer, in front of it."""
    count = length(work.stores[0].value)
    size = piece_length(count, most)
    dims = row_dims(work.stores[0].value.type)
    before = InsertPoint.before(work.nest)
    pieces = PiecesOp.make([], [IndexType()], count=IntAttr(count // size))
    Rewriter.insert_op(pieces, before)
    body = Block(arg_types=[IndexType()])
    first = FirstOp.make([], [IndexType()])
    body.add_op(first)
    value: dict[SSAValue, SSAValue] = {}

    def view(buffer: SSAValue) -> SSAValue:
        kind = buffer_type((size,), element(buffer.type))
        op = ViewOp.make([buffer], [kind], pieces=IntAttr(count // size))
        Rewriter.insert_op(op, before)
        return op.result

    def as_piece(x: SSAValue) -> SSAValue:
        """An operand of a wide op: as it is where it is wide, else a number without dimensions."""
        if row_dims(x.type) == dims or not row_dims(x.type):
            return value[x]
        flat = ReshapeOp.make([value[x]], [element(x.type)])
        body.add_op(flat)
        return flat.result

    for op in work.ops:
        wide = any(row_dims(r.type) == dims for r in op.results)
        if isinstance(op, LoadOp):
            row = body.args[0] if wide else first.result
            buffer = view(op.buffer) if wide else op.buffer
            new: Operation = LoadOp.make([buffer, row, None], [row_of(buffer)])
        else:
            new = op.clone({**value, **{x: as_piece(x) for x in op.operands}} if wide else value)
        body.add_op(new)
        (result,) = new.results
        if wide:
            kind = row_type((size,), element(result.type))
            result = Rewriter.replace_value_with_new_type(result, kind)
        value[op.results[0]] = result
    for store in work.stores:
        body.add_op(StoreOp.make([value[store.value], view(store.buffer), body.args[0]]))
        Rewriter.erase_op(store)
    Rewriter.insert_op(TraverseOp.build_op(pieces.result, body), before)


def split_long_rows(func: FuncOp, limits: Nests) -> None:
    """Spreads what can be of all nests of a phase, and drops nests that are left empty."""
    for nest in nests(func):
        if not isinstance(nest.size.owner, SizeOp) or nest.size.owner.domain is not None:
            continue
        for work in list(spreadable(nest, limits)):
            spread(work, limits.piece)
        erase_dead(nest.body.block)
        if not nest.body.block.ops:
            Rewriter.erase_op(nest)


@dataclass(frozen=True)
class SplitLongRowsPass(ModulePass):
    """Computes long single rows in pieces, by all threads."""

    name = "split-long-rows"

    target: str = DEFAULT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limits = target_of(self.name, self.target).nests
        for func in phases(op):
            uncut(func, self.name)
            split_long_rows(func, limits)
            erase_dead(func.body.block)
