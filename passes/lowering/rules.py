"""One rule an `inter` op: what it becomes on buffers. Every rule makes at most a few nests; fusion
follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import (
    ArrayAttr,
    IntAttr,
    IntegerAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.inter import pointwise, reduce, shapes, values
from ...dialects.inter.types import ONE, UNIT, Dom, RowsType, rows, set_name, set_type
from ...dialects.intra import rows as intra
from ...dialects.intra.syntax import buffer_dims, element, row_dims, row_type
from ..machine import row_bytes
from .nests import Host, Nest, fn_params
from .products import Product, is_matmul, outer_roles, sum_of_outer

Rule = Callable[["Lowering", Operation], None]
GROUP_BYTES = 256 * 1024
"""What the matrix of a group of rows may take."""
FEW_NUMBERS = 256
"""Sums of so many numbers stay in registers: a loop over the group's members does without a
block.
"""
INLINE = (values.ConstOp, values.IotaOp, values.IndexOp, values.SizeOp)
"""Values that are made where they are read, and need no buffer."""


class Lowering:
    """Lowers the rows ops of one function into a host block."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.env = host.env
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.skipped: set[Operation] = set()

    # ------------------------------------------------------------ reading values

    def buffer(self, v: SSAValue) -> SSAValue:
        """The buffer of a value; inline values get one here."""
        if v not in self.buffers:
            if not (isinstance(v, OpResult) and isinstance(v.op, INLINE)):
                raise PassFailedException(
                    f"lower-to-intra: no buffer for {v}: is it defined before its use?"
                )
            t = rows(v)
            out = self.host.buffer(t.dom, t.dims, t.elem)
            nest = self.host.nest(t.dom)
            nest.store(self.read(nest, v), out)
            self.buffers[v] = out
        return self.buffers[v]

    def read(self, nest: Nest, v: SSAValue) -> SSAValue:
        """A value at the row of a nest."""
        t = rows(v)
        if isinstance(v, OpResult) and isinstance(v.op, INLINE):
            return self.inline(nest, v.op)
        return nest.load(self.buffer(v), nest.index(t.dom))

    def inline(self, nest: Nest, op: Operation) -> SSAValue:
        t = rows(op.results[0])
        match op:
            case values.ConstOp():
                return nest.const(op.number, t.elem, t.dims)
            case values.IotaOp():
                row = nest.index(t.dom)
            case values.IndexOp():
                row = nest.along(op.path.data)
            case values.SizeOp():
                size = self.host.size(Dom(set_name(op.set)))
                return nest.emit(intra.CountOp.make([size], [i64]))
            case _:
                raise AssertionError(op)
        return nest.emit(intra.PositionOp.make([row], [i64]))

    def alias(self, op: Operation, buffer: SSAValue) -> None:
        """The result lies where another value lies."""
        self.buffers[op.results[0]] = buffer

    def rowwise(self, op: Operation, compute: Callable[[Nest], SSAValue]) -> None:
        """A result whose rows are computed one by one over its own domain."""
        t = rows(op.results[0])
        out = self.host.buffer(t.dom, t.dims, t.elem)
        nest = self.host.nest(t.dom)
        nest.store(compute(nest), out)
        self.buffers[op.results[0]] = out

    # ------------------------------------------------------------ groups

    def group_of(self, over: Dom, along: tuple[str, ...]) -> tuple[Dom, tuple[str, ...]]:
        """The stored rows of `over` and the paths from them that make the groups."""
        if len(along) > 1:
            along = self.env.along(over.set, along).keys or ("",)
        if len(over.keys) != 1:
            return over, along
        at = self.host.storage(over)
        paths = [self.env.determines(over.set, over.keys[0], k) for k in along]
        if any(p is None for p in paths):
            raise PassFailedException(f"lower-to-intra: along {along} is not determined by {over}")
        return at, tuple(p or "" for p in paths)

    def in_group(
        self, nest: Nest, over: Dom, along: tuple[str, ...], x: SSAValue, kind: str
    ) -> SSAValue:
        """`x` reduced over the rows of `over` that belong to the group of the nest's row."""
        return self.reduced_group(nest, over, along, lambda n: self.read(n, x), kind)

    def reduced_group(
        self,
        nest: Nest,
        over: Dom,
        along: tuple[str, ...],
        member: Callable[[Nest], SSAValue],
        kind: str,
    ) -> SSAValue:
        """What `member` computes at each row of `over` that belongs to the group, reduced."""
        at, paths = self.group_of(over, along)
        if paths == ("",):  # the groups are the stored rows themselves
            return self.on_rows(nest, over, member)
        loop = nest.segment(at, paths)
        return loop.reduce([self.on_rows(loop, over, member)], [kind])[0]

    @staticmethod
    def on_rows(nest: Nest, over: Dom, member: Callable[[Nest], SSAValue]) -> SSAValue:
        """What `member` computes in a nest whose rows are those of `over`, however it calls
        them.
        """
        before, nest.dom = nest.dom, over
        value = member(nest)
        nest.dom = before
        return value

    def group_size(
        self, nest: Nest, over: Dom, along: tuple[str, ...], elem: Attribute
    ) -> SSAValue:
        at, paths = self.group_of(over, along)
        if paths == ("",):
            return nest.const(1, elem)
        offsets, _ = self.host.group(at, paths)
        n = nest.emit(intra.LengthOp.make([offsets, nest.row], [i64]))
        return nest.cast(n, elem)

    def run(self, ops: list[Operation]) -> None:
        """Lower the ops in order.

        Raises:
            PassFailedException: an op has no rule, or reads rows in a way no nest can.
        """
        for op in ops:
            if op in self.skipped or isinstance(op, INLINE):
                continue
            rule = RULES.get(type(op))
            if rule is None and isinstance(op, pointwise.PointwiseOp):
                rule = lower_pointwise
            if rule is None:
                raise PassFailedException(f"lower-to-intra: {op.name} has no lowering here")
            rule(self, op)


# ---------------------------------------------------------------- pointwise and shapes


def lower_pointwise(low: Lowering, op: Operation) -> None:
    assert isinstance(op, pointwise.PointwiseOp)
    elem = rows(op.results[0]).elem

    def compute(nest: Nest) -> SSAValue:
        xs = [low.read(nest, x) for x in op.xs]
        return nest.apply(op.SPEC.name, *xs, elem=elem, params=fn_params(op.parameters()))

    low.rowwise(op, compute)


def lower_cast(low: Lowering, op: Operation) -> None:
    assert isinstance(op, values.CastOp)
    low.rowwise(op, lambda nest: nest.cast(low.read(nest, op.x), rows(op.results[0]).elem))


def lower_stop(low: Lowering, op: Operation) -> None:
    assert isinstance(op, values.StopOp)
    if rows(op.x).dom == rows(op.results[0]).dom:
        low.alias(op, low.buffer(op.x))
    else:
        low.rowwise(op, lambda nest: low.read(nest, op.x))


def lower_reshape(low: Lowering, op: Operation) -> None:
    assert isinstance(op, shapes.ReshapeOp)
    low.rowwise(op, lambda nest: nest.reshape(low.read(nest, op.x), rows(op.results[0]).dims))


def lower_broadcast(low: Lowering, op: Operation) -> None:
    assert isinstance(op, shapes.BroadcastOp)
    t = rows(op.results[0])

    def compute(nest: Nest) -> SSAValue:
        x = low.read(nest, op.x)
        if row_dims(x.type) == t.dims:
            return x
        return nest.emit(intra.BroadcastOp.make([x], [row_type(t.dims, t.elem)]))

    low.rowwise(op, compute)


def lower_transpose(low: Lowering, op: Operation) -> None:
    assert isinstance(op, shapes.TransposeOp)
    perm = [p.data for p in op.perm]
    low.rowwise(op, lambda nest: nest.transpose(low.read(nest, op.x), perm))


def lower_slice(low: Lowering, op: Operation) -> None:
    assert isinstance(op, shapes.SliceOp)
    t = rows(op.results[0])
    dim, lo, hi, step = (IntAttr(n) for n in op.bounds)

    def compute(nest: Nest) -> SSAValue:
        x = low.read(nest, op.x)
        return nest.emit(
            intra.SliceOp.make([x], [row_type(t.dims, t.elem)], dim=dim, lo=lo, hi=hi, step=step)
        )

    low.rowwise(op, compute)


def lower_concat(low: Lowering, op: Operation) -> None:
    assert isinstance(op, shapes.ConcatOp)
    t = rows(op.results[0])

    def compute(nest: Nest) -> SSAValue:
        xs = [low.read(nest, x) for x in op.xs]
        return nest.emit(intra.ConcatOp.make(xs, [row_type(t.dims, t.elem)], dim=IntAttr(op.axis)))

    low.rowwise(op, compute)


def lower_row_reduce(low: Lowering, op: Operation) -> None:
    assert isinstance(op, shapes.RowReduceOp)
    t = rows(op.results[0])

    def compute(nest: Nest) -> SSAValue:
        x = low.read(nest, op.x)
        dims = ArrayAttr(IntAttr(d.data) for d in op.dims)
        return nest.emit(
            intra.FoldOp.make([x], [row_type(t.dims, t.elem)], kind=op.kind, dims=dims)
        )

    low.rowwise(op, compute)


def lower_dropout(low: Lowering, op: Operation) -> None:
    assert isinstance(op, reduce.DropoutOp)

    def compute(nest: Nest) -> SSAValue:
        x, key = low.read(nest, op.x), low.read(nest, op.key)
        site = IntegerAttr(op.site_number, i64)
        return nest.emit(intra.DropoutOp.make([x, key, nest.row], [x.type], p=op.p, site=site))

    low.rowwise(op, compute)


# ---------------------------------------------------------------- contractions


def lower_contract(low: Lowering, op: Operation) -> None:
    assert isinstance(op, shapes.ContractOp)
    if is_summed_outer(op):
        return  # the reduction that reads it makes the sum without the products
    a, b, spec = op.a, op.b, op.spec.data
    la, lb, out = op.letters()
    t = rows(op.results[0])
    one_row = t.dom.set == UNIT
    if rows(a).dom == ONE and not one_row:
        a, b, spec = b, a, f"{lb},{la}->{out}"
    if rows(b).dom == ONE and not one_row and rows(a).dom != ONE and is_matmul(spec):
        product = Product.of(low.host, spec, rows(a).dims, low.buffer(b))
        low.rowwise(op, lambda nest: product.emit(nest, low.read(nest, a)))
        return
    for x, w, text in ((op.a, op.b, op.spec.data), (op.b, op.a, f"{lb},{la}->{out}")):
        if is_grouped_product(t.dom, x, w, text):
            return lower_grouped_product(low, op, x, w, text)
    for x, by, long, short in ((op.a, op.b, la, lb), (op.b, op.a, lb, la)):
        if long == out and out.startswith(short):
            return low.rowwise(op, lambda n: multiplied(n, low.read(n, x), low.read(n, by)))
    low.rowwise(op, lambda nest: nest.dot(op.spec.data, low.read(nest, op.a), low.read(nest, op.b)))


def multiplied(nest: Nest, x: SSAValue, by: SSAValue) -> SSAValue:
    """A row times one of its leading dimensions only: a number for each head, say."""
    dims = row_dims(by.type)
    missing = len(row_dims(x.type)) - len(dims)
    return nest.apply("mul", x, nest.reshape(by, (*dims, *[1] * missing)))


def is_grouped_product(dom: Dom, x: SSAValue, w: SSAValue, spec: str) -> bool:
    """Rows of `dom` times matrices that many of them share: a matrix a relation, or a node type."""
    keys = rows(w).dom.keys
    shared = len(keys) == 1 and rows(w).dom.set == dom.set and len(dom.keys) != 1
    return shared and rows(x).dom != ONE and is_matmul(spec) and is_small(rows(w))


def is_small(t: RowsType) -> bool:
    """A matrix for a group of rows stays in the second-level cache, and on a thread's stack."""
    return row_bytes(t) <= GROUP_BYTES


def lower_grouped_product(
    low: Lowering, op: shapes.ContractOp, x: SSAValue, w: SSAValue, spec: str
) -> None:
    t, matrices = rows(op.results[0]), rows(w).dom
    at = low.host.storage(matrices)
    product = Product.of(low.host, spec, rows(x).dims, low.buffer(w), at)
    source = low.buffer(x)
    out = low.host.buffer(t.dom, t.dims, t.elem)
    nest, index = low.host.grouped_nest(t.dom, matrices.keys[0])
    row = nest.load(source, nest.index(rows(x).dom))
    nest.store(product.emit(nest, row, index), out)
    low.buffers[op.results[0]] = out


def is_summed_outer(op: shapes.ContractOp) -> bool:
    """The contraction is only read by sums over all rows, or over those of a group, so its products
    need not be kept.
    """
    t = rows(op.results[0])
    users = [u.operation for u in op.results[0].uses]
    if not users or outer_roles(op) is None or t.dom == ONE:
        return False
    return all(isinstance(u, reduce.ReduceOp) and sums_outer(u, t) for u in users)


def sums_outer(op: reduce.ReduceOp, products: RowsType) -> bool:
    """Whether a reduction is a sum of outer products that printers block over rows."""
    if op.over != products.dom or op.kind.data not in ("sum", "mean"):
        return False
    if not op.along_keys:
        return True
    several = op.kind.data == "sum" and len(op.along_keys) == 1 and len(op.over.keys) != 1
    return several and FEW_NUMBERS < math.prod(products.dims) and is_small(products)


# ---------------------------------------------------------------- reductions


def lower_reduce(low: Lowering, op: Operation) -> None:
    assert isinstance(op, reduce.ReduceOp)
    if not op.along_keys:
        return total(low, op)
    t, kind, over, along = rows(op.results[0]), op.kind.data, op.over, op.along_keys
    if isinstance(op.x, OpResult) and isinstance(op.x.op, shapes.ContractOp):
        if is_summed_outer(op.x.op):
            low.buffers[op.results[0]] = sum_of_outer(low.host, op.x.op, over, low.read, along[0])
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
    if isinstance(x, OpResult) and isinstance(x.op, shapes.ContractOp) and is_summed_outer(x.op):
        out = sum_of_outer(low.host, x.op, op.over, low.read)
    elif op.over.set == UNIT:
        out = low.buffer(x)
    else:
        out = low.host.buffer(ONE, t.dims, t.elem)
        nest = low.host.nest(op.over)
        nest.total(low.read(nest, x), out, "sum" if kind == "mean" else kind)
    if kind == "mean":
        out = divided(low, out, op.over)
    low.buffers[op.results[0]] = out


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


def lower_softmax(low: Lowering, op: Operation) -> None:
    """exp(x - m) / s with the group's maximum m and sum s, each over the group's stored rows."""
    assert isinstance(op, reduce.SoftmaxOp)
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


def lower_count(low: Lowering, op: Operation) -> None:
    assert isinstance(op, reduce.CountOp)
    t = rows(op.results[0])

    def compute(nest: Nest) -> SSAValue:
        if op.along_keys:
            return low.group_size(nest, op.over, op.along_keys, t.elem)
        n = nest.emit(intra.CountOp.make([low.host.size(op.over)], [i64]))
        return nest.cast(n, t.elem)

    low.rowwise(op, compute)


# ---------------------------------------------------------------- moving between sets


def lower_at(low: Lowering, op: Operation) -> None:
    assert isinstance(op, values.AtOp)
    env, d, x = low.env, rows(op.results[0]).dom, rows(op.x).dom
    path = ".".join([op.path.data, *x.keys]) if len(x.keys) <= 1 else op.path.data
    s = set_name(op.set)
    if (
        x.set != UNIT
        and op.otherwise is None
        and len(d.keys) == 1
        and env.determines(s, d.keys[0], path) == ""
    ):
        return low.alias(op, low.buffer(op.x))

    def compute(nest: Nest) -> SSAValue:
        if x.set == UNIT:
            row = nest.first()
        else:
            row = nest.along(path)
            if len(x.keys) > 1:
                row = nest.lookup(low.host.pair_index(x), row)
        if op.otherwise is None:
            if isinstance(op.x, OpResult) and isinstance(op.x.op, values.ConstOp):
                return low.inline(nest, op.x.op)
            return nest.load(low.buffer(op.x), row)
        return nest.load(low.buffer(op.x), row, low.read(nest, op.otherwise))

    if not (
        isinstance(op.x, OpResult) and isinstance(op.x.op, values.ConstOp) and op.otherwise is None
    ):
        low.buffer(op.x)
    low.rowwise(op, compute)


def part_sizes(low: Lowering, s: SSAValue, count: int) -> list[SSAValue]:
    return [low.host.size(Dom(p)) for p in set_type(s).part_names[:count]]


def lower_stack(low: Lowering, op: Operation) -> None:
    assert isinstance(op, values.StackOp)
    t = rows(op.results[0])
    out = low.host.buffer(t.dom, t.dims, t.elem)
    for k, (x, name) in enumerate(zip(op.xs, set_type(op.set).part_names, strict=True)):
        into = low.host.part(out, part_sizes(low, op.set, k))
        nest = low.host.nest(Dom(name))
        nest.store(low.read(nest, x), into)
    low.buffers[op.results[0]] = out


def lower_part(low: Lowering, op: Operation) -> None:
    assert isinstance(op, values.PartOp)
    x = rows(op.x)
    whole = Dom(set_name(op.set))
    if x.dom == ONE:
        return low.rowwise(op, lambda nest: low.read(nest, op.x))
    if x.dom != whole:  # a value seen from the union through a map: read it at the union's rows
        buffer = low.host.buffer(whole, x.dims, x.elem)
        nest = low.host.nest(whole)
        nest.store(low.read(nest, op.x), buffer)
    else:
        buffer = low.buffer(op.x)
    source = low.host.part(buffer, part_sizes(low, op.set, op.index.data))
    low.rowwise(op, lambda nest: nest.load(source, nest.row))


def lower_as_rows(low: Lowering, op: Operation) -> None:
    assert isinstance(op, values.AsRowsOp)
    t = rows(op.results[0])
    low.alias(op, low.host.view(low.buffer(op.x), t.dom, t.dims))


def lower_as_unit(low: Lowering, op: Operation) -> None:
    assert isinstance(op, values.AsUnitOp)
    s, x = Dom(set_name(op.set)), rows(op.x)
    buffer = low.buffer(op.x) if x.dom == s else None
    if buffer is None:
        buffer = low.host.buffer(s, x.dims, x.elem)
        nest = low.host.nest(s)
        nest.store(low.read(nest, op.x), buffer)
    low.alias(op, low.host.view(buffer, ONE, rows(op.results[0]).dims))


def lower_table(low: Lowering, op: Operation) -> None:
    assert isinstance(op, values.TableOp)
    t = rows(op.results[0])
    low.alias(op, low.host.table(op.numbers(), t.dims, t.elem))


RULES: Mapping[type[Operation], Rule] = {
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
