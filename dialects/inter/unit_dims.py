"""Rules of canonicalization for dimensions of size 1 in rows: two forms of a formula that differ in
them become one.

The normal form computes without them. An op whose rows have such a dimension is written on rows
that lack it, with reshapes in front and one behind; that meets the next op's, and two in a row are
one, or none. They are left where something needs the dimension: at arguments and results of the
function, in an operand that is repeated along it (`4x1` beside `4x8`), in front of a slice, a
concatenation or an extreme along it. Every rule makes fewer dimensions of 1 in rows that ops but
reshapes give or take, so they come to an end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Operation, SSAValue

from .base import Row, ValueOp
from .pointwise import POINTWISE_OPS, PointwiseOp, broadcast_dims
from .reduce import DropoutOp, ReduceOp, SoftmaxOp
from .rewrite import Rewrite, Rule, producer
from .shapes import BroadcastOp, ConcatOp, ContractOp, ReshapeOp, RowReduceOp, SliceOp, TransposeOp
from .syntax import ints
from .types import RowsType, rows
from .values import AsRowsOp, AtOp, CastOp, PartOp, StackOp, StopOp

Dims = Sequence[int]


def only_ones(op: ReshapeOp) -> bool:
    """Whether a reshape adds and drops dimensions of 1 only. One that changes nothing stores the
    value on another domain: reading through it is right as well."""
    return squeezed(rows(op.x).dims) == squeezed(op.type.dims)


def squeezed(dims: Dims) -> list[int]:
    """Row dimensions without those of 1."""
    return [n for n in dims if n != 1]


def _without(dims: Dims, gone: Collection[int]) -> list[int]:
    """The dimensions but those at some places."""
    return [n for i, n in enumerate(dims) if i not in gone]


def _place(kept: int, gone: Collection[int]) -> int:
    """Where a dimension is when those at the places `gone` are dropped."""
    return kept - sum(i < kept for i in gone)


def _same_rows(op: ValueOp, rw: Rewrite) -> SSAValue | None:
    """Ops that do the same to each number of a row, or to the same place of several rows: their
    operands of the result's shape lose its ones. The place of a number in its row, by which
    dropout draws, counts in C order, so it stays."""
    dims = op.type.dims
    if 1 not in dims:
        return None
    operands = [rw.reshape(v, squeezed(dims)) if _rows_of(v, dims) else v for v in op.operands]
    return rw.reshape(rw.again(operands, squeezed(dims)), dims)


def _rows_of(v: SSAValue, dims: Dims) -> bool:
    return isinstance(v.type, RowsType) and v.type.dims == tuple(dims)


def _pointwise(op: PointwiseOp, rw: Rewrite) -> SSAValue | None:
    """A function on rows that broadcast, aligned right: no operand has a dimension that is 1 in all
    of them, nor one of 1 in front."""
    dims = op.type.dims
    gone = {len(dims) - i for i, n in enumerate(dims) if n == 1}  # counted from the right, from 1
    shapes = [_aligned(rows(x).dims, gone) for x in op.xs]
    if all(rows(x).dims == tuple(s) for x, s in zip(op.xs, shapes, strict=True)):
        return None
    operands = [rw.reshape(x, s) for x, s in zip(op.xs, shapes, strict=True)]
    return rw.reshape(rw.again(operands, squeezed(dims)), dims)


def _aligned(dims: Dims, gone: Collection[int]) -> list[int]:
    """Dimensions that are aligned right, without those at places from the right, and without ones
    in front."""
    kept = [n for i, n in enumerate(dims) if len(dims) - i not in gone]
    while kept and kept[0] == 1:
        del kept[0]
    return kept


def _repeated(op: PointwiseOp, rw: Rewrite) -> SSAValue | None:
    """An operand that was broadcast before the function would do so."""
    operands = list(op.xs)
    for i, x in enumerate(op.xs):
        wide = producer(x, BroadcastOp)
        if wide is None:
            continue
        shapes = [rows(v).dims for v in (*operands[:i], wide.x, *operands[i + 1 :])]
        if broadcast_dims(shapes) == op.type.dims:
            operands[i] = wide.x
    if all(a is b for a, b in zip(operands, op.xs, strict=True)):
        return None
    return rw.again(operands, op.type.dims)


def _row_reduce(op: RowReduceOp, rw: Rewrite) -> SSAValue | None:
    """Ones that stay are dropped before, and those that are summed; an extreme needs its own."""
    dims, summed = rows(op.x).dims, op.kind.data == "sum"
    gone = [i for i, n in enumerate(dims) if n == 1 and (summed or i not in op.axes)]
    axes = [_place(i, gone) for i in op.axes if i not in gone]
    if not gone or not axes:
        return None
    props = {"kind": op.kind, "dims": ints(axes)}
    x = rw.reshape(op.x, _without(dims, gone))
    left = [n for i, n in enumerate(rows(x).dims) if i not in axes]
    y = rw.make(RowReduceOp, [x], props, Row(tuple(left), op.type.elem))
    return rw.reshape(y, op.type.dims)


def _contract(op: ContractOp, rw: Rewrite) -> SSAValue | None:
    """Letters of size 1 say nothing."""
    shapes = (rows(op.a).dims, rows(op.b).dims, op.type.dims)
    if not any(1 in dims for dims in shapes):
        return None
    left, right, out = (
        "".join(c for c, n in zip(term, dims, strict=True) if n != 1)
        for term, dims in zip(op.letters(), shapes, strict=True)
    )
    operands = [rw.reshape(x, squeezed(rows(x).dims)) for x in (op.a, op.b)]
    props = {"spec": StringAttr(f"{left},{right}->{out}")}
    y = rw.make(ContractOp, operands, props, Row(tuple(squeezed(op.type.dims)), op.type.elem))
    return rw.reshape(y, op.type.dims)


def _transpose(op: TransposeOp, rw: Rewrite) -> SSAValue | None:
    dims = rows(op.x).dims
    gone = [i for i, n in enumerate(dims) if n == 1]
    if not gone:
        return None
    perm = ints([_place(i, gone) for i in op.order if i not in gone])
    row = Row(tuple(squeezed(op.type.dims)), op.type.elem)
    x = rw.reshape(op.x, squeezed(dims))
    return rw.reshape(rw.make(TransposeOp, [x], {"perm": perm}, row), op.type.dims)


def _along(op: SliceOp | ConcatOp, rw: Rewrite) -> SSAValue | None:
    """Ones but that of the dimension which the op is along."""
    dim = op.axis if isinstance(op, ConcatOp) else op.bounds[0]
    dims = op.type.dims
    gone = [i for i, n in enumerate(dims) if n == 1 and i != dim]
    if not gone:
        return None
    operands = [rw.reshape(x, _without(rows(x).dims, gone)) for x in op.operands]
    place = IntegerAttr(_place(dim, gone), i64)
    return rw.reshape(rw.again(operands, _without(dims, gone), dim=place), dims)


def _broadcast(op: BroadcastOp, rw: Rewrite) -> SSAValue | None:
    """Ones of the result, and of the operand in front; what then repeats nothing is a reshape."""
    have, dims = rows(op.x).dims, op.type.dims
    if squeezed(have) == squeezed(dims):
        return rw.make(ReshapeOp, [op.x], {}, Row(dims, op.type.elem))
    gone = {len(dims) - i for i, n in enumerate(dims) if n == 1}
    shape = _aligned(have, gone)
    if have == tuple(shape) and not gone:
        return None
    return rw.reshape(rw.again([rw.reshape(op.x, shape)], squeezed(dims)), dims)


def _as_rows(op: AsRowsOp, rw: Rewrite) -> SSAValue | None:
    """A reshape in front, which would be a copy of the row, goes behind."""
    inner = producer(op.x, ReshapeOp)
    if inner is None or not only_ones(inner):
        return None
    have = rows(inner.x).dims
    if have[:1] != rows(op.x).dims[:1]:
        return None
    return rw.reshape(rw.again([op.set, inner.x], have[1:]), op.type.dims)


UNIT_DIM_RULES: dict[type[Operation], tuple[Rule, ...]] = {
    **dict.fromkeys((AtOp, CastOp, StopOp, StackOp, PartOp), (_same_rows,)),
    **dict.fromkeys((ReduceOp, SoftmaxOp, DropoutOp), (_same_rows,)),
    **dict.fromkeys(POINTWISE_OPS.values(), (_repeated, _pointwise)),
    RowReduceOp: (_row_reduce,),
    ContractOp: (_contract,),
    TransposeOp: (_transpose,),
    SliceOp: (_along,),
    ConcatOp: (_along,),
    BroadcastOp: (_broadcast,),
    AsRowsOp: (_as_rows,),
}
"""The rules of an op class, which come after its others."""
