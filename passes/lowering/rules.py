"""One rule an `inter` op: what it becomes on buffers. Every rule makes at most a few nests; fusion
follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects.builtin import (
    IntAttr,
    i1,
    i64,
)
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.inter import pointwise, reduce, shapes, values
from ...dialects.inter.types import ONE, UNIT, Dom, rows, set_name, set_type
from ...dialects.intra import rows as intra
from ...dialects.intra.syntax import row_dims, row_type
from .context import INLINE, Lowering
from .contractions import lower_contract
from .nests import Nest, fn_params
from .reductions import lower_count, lower_dropout, lower_reduce, lower_softmax

Rule = Callable[[Lowering, Any], None]


def lower_pointwise(low: Lowering, op: pointwise.PointwiseOp) -> None:
    elem = rows(op.results[0]).elem

    def compute(nest: Nest) -> SSAValue:
        xs = [low.read(nest, x) for x in op.xs]
        return nest.apply(op.SPEC.name, *xs, elem=elem, params=fn_params(op.parameters()))

    low.rowwise(op, compute)


def lower_cast(low: Lowering, op: values.CastOp) -> None:
    low.rowwise(op, lambda nest: nest.cast(low.read(nest, op.x), rows(op.results[0]).elem))


def lower_stop(low: Lowering, op: values.StopOp) -> None:
    if rows(op.x).dom == rows(op.results[0]).dom:
        low.alias(op, low.buffer(op.x))
    else:
        low.rowwise(op, lambda nest: low.read(nest, op.x))


def lower_reshape(low: Lowering, op: shapes.ReshapeOp) -> None:
    low.rowwise(op, lambda nest: nest.reshape(low.read(nest, op.x), rows(op.results[0]).dims))


def lower_broadcast(low: Lowering, op: shapes.BroadcastOp) -> None:
    t = rows(op.results[0])

    def compute(nest: Nest) -> SSAValue:
        x = low.read(nest, op.x)
        if row_dims(x.type) == t.dims:
            return x
        return nest.emit(intra.BroadcastOp.make([x], [row_type(t.dims, t.elem)]))

    low.rowwise(op, compute)


def lower_transpose(low: Lowering, op: shapes.TransposeOp) -> None:
    perm = [p.data for p in op.perm]
    low.rowwise(op, lambda nest: nest.transpose(low.read(nest, op.x), perm))


def lower_slice(low: Lowering, op: shapes.SliceOp) -> None:
    t = rows(op.results[0])
    dim, lo, hi, step = (IntAttr(n) for n in op.bounds)

    def compute(nest: Nest) -> SSAValue:
        x = low.read(nest, op.x)
        return nest.emit(
            intra.SliceOp.make([x], [row_type(t.dims, t.elem)], dim=dim, lo=lo, hi=hi, step=step)
        )

    low.rowwise(op, compute)


def lower_concat(low: Lowering, op: shapes.ConcatOp) -> None:
    t = rows(op.results[0])

    def compute(nest: Nest) -> SSAValue:
        xs = [low.read(nest, x) for x in op.xs]
        return nest.emit(intra.ConcatOp.make(xs, [row_type(t.dims, t.elem)], dim=IntAttr(op.axis)))

    low.rowwise(op, compute)


def lower_row_reduce(low: Lowering, op: shapes.RowReduceOp) -> None:
    t = rows(op.results[0])

    def compute(nest: Nest) -> SSAValue:
        x, result = low.read(nest, op.x), row_type(t.dims, t.elem)
        return nest.emit(intra.FoldOp.make([x], [result], kind=op.kind, dims=op.dims))

    low.rowwise(op, compute)


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


def part_sizes(low: Lowering, s: SSAValue, count: int) -> list[SSAValue]:
    return [low.host.size(Dom(p)) for p in set_type(s).part_names[:count]]


def lower_stack(low: Lowering, op: values.StackOp) -> None:
    t = rows(op.results[0])
    out = low.host.buffer(t.dom, t.dims, t.elem)
    for k, (x, name) in enumerate(zip(op.xs, set_type(op.set).part_names, strict=True)):
        into = low.host.part(out, part_sizes(low, op.set, k))
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
    source = low.host.part(buffer, part_sizes(low, op.set, op.index.data))
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


RULES: Mapping[type[Operation], Rule] = {
    **dict.fromkeys(pointwise.POINTWISE_OPS.values(), lower_pointwise),
    values.CastOp: lower_cast,
    values.StopOp: lower_stop,
    values.AtOp: lower_at,
    values.StackOp: lower_stack,
    values.PartOp: lower_part,
    values.AsRowsOp: lower_as_rows,
    values.AsUnitOp: lower_as_unit,
    values.TableOp: lower_table,
    shapes.ReshapeOp: lower_reshape,
    shapes.BroadcastOp: lower_broadcast,
    shapes.TransposeOp: lower_transpose,
    shapes.SliceOp: lower_slice,
    shapes.ConcatOp: lower_concat,
    shapes.RowReduceOp: lower_row_reduce,
    shapes.ContractOp: lower_contract,
    reduce.ReduceOp: lower_reduce,
    reduce.SoftmaxOp: lower_softmax,
    reduce.CountOp: lower_count,
    reduce.DropoutOp: lower_dropout,
}


def lower(low: Lowering, ops: list[Operation]) -> None:
    """Lower the ops in order.

    Raises:
        PassFailedException: an op has no rule, or reads rows in a way no nest can.
    """
    for op in ops:
        if isinstance(op, INLINE):
            continue
        rule = RULES.get(type(op))
        if rule is None:
            raise PassFailedException(f"lower-to-intra: {op.name} has no lowering here")
        rule(low, op)
