"""One rule an `inter` op: what it becomes on buffers. Every rule makes at most a few nests; fusion
follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IntAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.inter import pointwise, ranks, reduce, shapes, values
from ...dialects.inter.base import ValueOp
from ...dialects.inter.types import ONE, UNIT, Dom, rows, set_name, set_type
from ...dialects.intra import rows as intra
from ...dialects.intra.syntax import IntraOp, row_dims, row_type
from .context import INLINE, Lowering, viewed
from .contractions import lower_contract
from .exchanges import lower_all_reduce, lower_move
from .nests import Nest, fn_params
from .reductions import lower_count, lower_dropout, lower_reduce, lower_softmax

Rule = Callable[[Lowering, Any], None]
Rows = Sequence[SSAValue]


def lower_stop(low: Lowering, op: values.StopOp) -> None:
    if rows(op.x).dom == rows(op.results[0]).dom:
        low.alias(op, low.buffer(op.x))
    else:
        low.rowwise(op, lambda nest: low.read(nest, op.x))


def lower_at(low: Lowering, op: values.AtOp) -> None:
    env, d, x = low.env, rows(op.results[0]).dom, rows(op.x).dom
    path = ".".join([op.path.data, *x.keys]) if len(x.keys) <= 1 else op.path.data
    s = set_name(op.set)
    if op.otherwise is not None:
        return lower_at_else(low, op, path)
    if x.set != UNIT and len(d.keys) == 1 and env.determines(s, d.keys[0], path) == "":
        return low.alias(op, low.buffer(op.x))

    def compute(nest: Nest) -> SSAValue:
        if x.set == UNIT:
            row = nest.first()
        else:
            row = nest.along(path)
            if len(x.keys) > 1:
                row = nest.lookup(low.host.pair_index(x), row)
        if isinstance(const := op.x.owner, values.ConstOp):
            return low.inline(nest, const)
        return nest.load(low.buffer(op.x), row)

    if not isinstance(op.x.owner, values.ConstOp):
        low.buffer(op.x)
    low.rowwise(op, compute)


def lower_at_else(low: Lowering, op: values.AtOp, path: str) -> None:
    """A read through a partial map. Where it has no value its row is -1, which only a load takes:
    what lies elsewhere than at that row is chosen by it, or laid there before."""
    assert op.otherwise is not None
    x, other = rows(op.x), op.otherwise
    buffer = None if x.dom.set == UNIT else low.buffer(op.x)
    if len(x.dom.keys) > 1:
        buffer = low.copied(op.x, Dom(x.dom.set))

    def compute(nest: Nest) -> SSAValue:
        row = nest.along(path)
        if buffer is not None:
            return nest.load(buffer, row, low.read(nest, other))
        number = nest.emit(intra.PositionOp.make([row], [i64]))
        found = nest.apply("ge", number, nest.const(0, i64), elem=i1)
        return nest.apply("where", found, low.read(nest, op.x), low.read(nest, other))

    low.rowwise(op, compute)


def lower_stack(low: Lowering, op: values.StackOp) -> None:
    t = rows(op.results[0])
    out = low.host.buffer(t.dom, t.dims, t.elem)
    for k, (x, name) in enumerate(zip(op.xs, set_type(op.set).part_names, strict=True)):
        into = low.host.part(out, set_type(op.set), k)
        nest = low.host.nest(Dom(name))
        nest.store(low.read(nest, x), into)
    low.alias(op, out)


def lower_part(low: Lowering, op: values.PartOp) -> None:
    x = rows(op.x)
    whole = Dom(set_name(op.set))
    if x.dom == ONE:
        return low.rowwise(op, lambda nest: low.read(nest, op.x))
    if x.dom != whole:  # a value seen from the union through a map: read it at the union's rows
        buffer = low.copied(op.x, whole)
    else:
        buffer = low.buffer(op.x)
    source = low.host.part(buffer, set_type(op.set), op.index.data)
    low.rowwise(op, lambda nest: nest.load(source, nest.row))


def lower_as_rows(low: Lowering, op: values.AsRowsOp) -> None:
    t = rows(op.results[0])
    low.alias(op, low.host.view(low.buffer(op.x), t.dom, t.dims))


def lower_as_unit(low: Lowering, op: values.AsUnitOp) -> None:
    s = Dom(set_name(op.set))
    buffer = low.buffer(op.x) if rows(op.x).dom == s else low.copied(op.x, s)
    low.alias(op, low.host.view(buffer, ONE, rows(op.results[0]).dims))


def lower_table(low: Lowering, op: values.TableOp) -> None:
    t = rows(op.results[0])
    low.alias(op, low.host.table(op.numbers(), t.dims, t.elem))


def row_pointwise(nest: Nest, op: pointwise.PointwiseOp, xs: Rows) -> SSAValue:
    params = fn_params(op.parameters())
    return nest.apply(op.SPEC.name, *xs, elem=op.type.elem, params=params)


def row_broadcast(nest: Nest, op: shapes.BroadcastOp, xs: Rows) -> SSAValue:
    (x,) = xs
    return x if row_dims(x.type) == op.type.dims else emitted(nest, intra.BroadcastOp, op, xs)


def row_slice(nest: Nest, op: shapes.SliceOp, xs: Rows) -> SSAValue:
    dim, lo, hi, step = (IntAttr(n) for n in op.bounds)
    return emitted(nest, intra.SliceOp, op, xs, dim=dim, lo=lo, hi=hi, step=step)


def emitted(
    nest: Nest, cls: type[IntraOp], op: ValueOp, xs: Rows, **properties: Attribute
) -> SSAValue:
    """An op of the nest that gives a row of the result of `op`."""
    return nest.emit(cls.make(xs, [row_type(op.type.dims, op.type.elem)], **properties))


ROW_WISE: Mapping[type[Operation], Callable[[Nest, Any, Rows], SSAValue]] = {
    **dict.fromkeys(pointwise.POINTWISE_OPS.values(), row_pointwise),
    values.CastOp: lambda nest, op, xs: nest.cast(xs[0], op.type.elem),
    shapes.ReshapeOp: lambda nest, op, xs: nest.reshape(xs[0], op.type.dims),
    shapes.TransposeOp: lambda nest, op, xs: nest.transpose(xs[0], op.order),
    shapes.BroadcastOp: row_broadcast,
    shapes.SliceOp: row_slice,
    shapes.ConcatOp: lambda nest, op, xs: emitted(
        nest, intra.ConcatOp, op, xs, dim=IntAttr(op.axis)
    ),
    shapes.RowReduceOp: lambda nest, op, xs: emitted(
        nest, intra.FoldOp, op, xs, kind=op.kind, dims=op.dims
    ),
}
"""What a nest makes of a row of each operand, for ops that do the same to every row."""


def lower_row_wise(low: Lowering, op: Operation) -> None:
    row = ROW_WISE[type(op)]
    low.rowwise(op, lambda nest: row(nest, op, [low.read(nest, x) for x in op.operands]))


def is_made_anew(v: SSAValue) -> bool:
    """Whether no buffer holds a result as it is to lie: it is made where it is read, or is another
    shape of a row whose nest makes this shape as well."""
    x = viewed(v)
    return isinstance(v.owner, INLINE) if x is None else type(x.owner) in ROW_WISE


RULES: Mapping[type[Operation], Rule] = {
    **dict.fromkeys(ROW_WISE, lower_row_wise),
    values.StopOp: lower_stop,
    values.AtOp: lower_at,
    values.StackOp: lower_stack,
    values.PartOp: lower_part,
    values.AsRowsOp: lower_as_rows,
    values.AsUnitOp: lower_as_unit,
    values.TableOp: lower_table,
    shapes.ContractOp: lower_contract,
    reduce.ReduceOp: lower_reduce,
    reduce.SoftmaxOp: lower_softmax,
    reduce.CountOp: lower_count,
    reduce.DropoutOp: lower_dropout,
    ranks.MoveOp: lower_move,
    ranks.AllReduceOp: lower_all_reduce,
}


def lower(low: Lowering, ops: list[Operation]) -> None:
    """Lower the ops in order.

    Raises:
        PassFailedException: an op has no rule, or reads rows in a way no nest can.
    """
    for op in ops:
        if isinstance(op, INLINE) or viewed(op.results[0]) is not None:
            continue
        rule = RULES.get(type(op))
        if rule is None:
            raise PassFailedException(f"lower-to-intra: {op.name} has no lowering here")
        rule(low, op)
