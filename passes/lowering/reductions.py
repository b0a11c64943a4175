"""Reductions of `inter` over rows: groups, totals, softmax, counts, and dropout."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.inter import reduce, shapes
from ...dialects.inter.types import ONE, UNIT, Dom, rows
from ...dialects.intra import rows as intra
from ...dialects.intra.syntax import buffer_dims, element
from .context import Lowering
from .contractions import is_summed_outer
from .nests import Nest
from .products import sum_of_outer


def lower_dropout(low: Lowering, op: reduce.DropoutOp) -> None:

    def compute(nest: Nest) -> SSAValue:
        x, key = low.read(nest, op.x), low.read(nest, op.key)
        site = IntegerAttr(op.site_number, i64)
        row = nest.row if op.numbers is None else low.read(nest, op.numbers)
        column = [] if op.column is None else [low.read(nest, op.column)]
        return nest.emit(intra.DropoutOp.make([x, key, row, column], [x.type], p=op.p, site=site))

    low.rowwise(op, compute)


def lower_reduce(low: Lowering, op: reduce.ReduceOp) -> None:
    if not op.along_keys:
        return total(low, op)
    t, kind, over, along = rows(op.results[0]), op.kind.data, op.over, op.along_keys
    if isinstance(product := op.x.owner, shapes.ContractOp) and is_summed_outer(low, product):
        low.alias(op, sum_of_outer(low.host, product, over, low.read, along[0]))
        return

    def compute(nest: Nest) -> SSAValue:
        value = low.in_group(nest, over, along, op.x, "sum" if kind == "mean" else kind)
        if kind == "mean":
            n = low.group_size(nest, over, along, t.elem)
            return nest.apply("div", value, nest.apply("maximum", n, nest.const(1, t.elem)))
        if kind == "last":
            assert op.otherwise is not None
            n = low.group_size(nest, over, along, i64)
            some = nest.apply("gt", n, nest.const(0, i64), elem=i1)
            return nest.apply("where", some, value, low.read(nest, op.otherwise))
        return value

    low.rowwise(op, compute)


def total(low: Lowering, op: reduce.ReduceOp) -> None:
    """A reduction over all rows into the single row."""
    t, kind = rows(op.results[0]), op.kind.data
    if kind == "last":
        raise PassFailedException("lower-to-intra: reduce last along () has no lowering")
    x = op.x
    if isinstance(product := x.owner, shapes.ContractOp) and is_summed_outer(low, product):
        out = sum_of_outer(low.host, product, op.over, low.read)
    elif op.over.set == UNIT:
        out = low.buffer(x)
    else:
        out = low.host.buffer(ONE, t.dims, t.elem)
        nest = low.host.nest(op.over)
        nest.total(low.read(nest, x), out, "sum" if kind == "mean" else kind)
    if kind == "mean":
        out = divided(low, out, op.over)
    low.alias(op, out)


def divided(low: Lowering, x: SSAValue, over: Dom) -> SSAValue:
    """The single row `x` divided by the number of rows of `over`, at least 1."""
    elem = element(x.type)
    out = low.host.buffer(ONE, buffer_dims(x), elem)
    size = low.host.size(over)
    nest = low.host.nest(ONE)
    n = nest.cast(nest.emit(intra.CountOp.make([size], [i64])), elem)
    n = nest.apply("maximum", n, nest.const(1, elem))
    nest.store(nest.apply("div", nest.load(x, nest.first()), n), out)
    return out


def lower_softmax(low: Lowering, op: reduce.SoftmaxOp) -> None:
    """exp(x - m) / s with the group's maximum m and sum s, each over the group's stored rows."""
    t, over, along = rows(op.results[0]), op.over, op.along_keys
    host = low.host
    groups = low.env.along(over.set, along)
    most, sums = (host.buffer(groups, t.dims, t.elem) for _ in range(2))

    def reduce_to(out: SSAValue, kind: str, value: Callable[[Nest, SSAValue], SSAValue]) -> None:
        """`value` of a row and its group, reduced."""
        if along:
            nest = host.nest(groups)
            row = nest.row
            nest.store(low.reduced_group(nest, over, along, lambda n: value(n, row), kind), out)
        else:
            nest = host.nest(over)
            nest.total(value(nest, nest.first()), out, kind)

    def shifted(nest: Nest, group: SSAValue) -> SSAValue:
        return nest.apply("exp", nest.apply("sub", low.read(nest, op.x), nest.load(most, group)))

    reduce_to(most, "max", lambda nest, _: low.read(nest, op.x))
    reduce_to(sums, "sum", shifted)

    def compute(nest: Nest) -> SSAValue:
        group = nest.index(groups)
        return nest.apply("div", shifted(nest, group), nest.load(sums, group))

    low.rowwise(op, compute)


def lower_count(low: Lowering, op: reduce.CountOp) -> None:
    t = rows(op.results[0])

    def compute(nest: Nest) -> SSAValue:
        if op.along_keys:
            return low.group_size(nest, op.over, op.along_keys, t.elem)
        n = nest.emit(intra.CountOp.make([low.host.size(op.over)], [i64]))
        return nest.cast(n, t.elem)

    low.rowwise(op, compute)
