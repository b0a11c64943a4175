"""Whether a nest may write rows over those that it reads."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.intra.bindings import ViewOp, root
from ...dialects.intra.rows import (
    ApplyOp,
    CastOp,
    DotOp,
    LoadOp,
    MatmulOp,
    OuterOp,
    SegmentOp,
    StoreOp,
    TotalOp,
    TraverseOp,
)
from ...dialects.intra.shapes import ShapeOp
from ...dialects.intra.syntax import row_dims


def reads_before_writing(nest: TraverseOp, new: SSAValue, old: SSAValue) -> bool:
    """Whether every row of the buffer `old` is read by its own iteration, before that of `new` is
    stored: in one stage (passes/intra/cut_stages.py), whose ops run in their order, but for large
    dots, which write where their result is to lie. Beside sums and products rows are read number
    by number, which is how they are stored."""
    ops = list(nest.body.block.ops)
    stores = [op for op in nest.walk() if isinstance(op, StoreOp) and root(op.buffer) is new]
    if len(stores) != 1 or stores[0].row is not nest.row:
        return False
    (store,) = stores
    loads = [op for op in nest.walk() if isinstance(op, LoadOp) and root(op.buffer) is old]
    if any(
        op.row is not nest.row
        or op.parent is not nest.body.block
        or op.otherwise is not None
        or way(op.buffer) != way(store.buffer)
        for op in loads
    ):
        return False
    mixed = any(isinstance(op, DotOp | MatmulOp | OuterOp | SegmentOp) for op in nest.walk())
    if mixed and not all(goes_number_by_number(load) for load in loads):
        return False
    last = ops.index(store)
    return all(
        op.parent is nest.body.block and ops.index(op) <= last
        for load in loads
        for op in users(load)
    )


def goes_number_by_number(load: LoadOp) -> bool:
    """Whether a row is read by ops that make of each of its numbers one of theirs."""
    return all(
        isinstance(op, ApplyOp | CastOp) and row_dims(op.result.type) == row_dims(load.result.type)
        for op in (use.operation for use in load.result.uses)
    )


def way(buffer: SSAValue) -> list[tuple[Attribute, object]]:
    """The views between a buffer and what it is a view of."""
    found: list[tuple[Attribute, object]] = []
    while isinstance(view := buffer.owner, ViewOp):
        found.append((buffer.type, dict(view.properties)))
        buffer = view.buffer
    return found


def users(op: Operation) -> Iterable[Operation]:
    """What reads the result of an op, through other shapes of it, which are no copies, and through
    products, whose factors a total may read when it adds them (codegen/openmp/row_values.py)."""
    for use in op.results[0].uses:
        user = use.operation
        yield user
        if isinstance(user, ShapeOp):
            yield from users(user)
        elif isinstance(user, ApplyOp) and user.fn.data == "mul":
            yield from (u.operation for u in user.result.uses if isinstance(u.operation, TotalOp))
