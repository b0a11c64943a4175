"""Derivatives of the value ops, by op class: each adds the cotangents of what the op reads.

The rules follow from one: a read of `a` by an op computed on `D` adds, for every stored row of `a`,
the sum over the rows of `D` that read it (`Reverse.put`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ....dialects.inter import ranks, shapes, values
from ....dialects.inter import reduce as reductions
from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import POINTWISE_OPS, PointwiseOp
from ....dialects.inter.types import ONE, Dom, is_float, rows, set_name, set_type
from .derivatives_pointwise import carries, pointwise
from .reverse import Reverse

Rule = Callable[[Reverse, Any], None]
"""Reads the cotangent of the op's result, which is not 0, and puts those of its operands."""

T = TypeVar("T", bound=ValueOp)

RULES: dict[type[Operation], Rule] = {op: pointwise for op in POINTWISE_OPS.values()}
"""The derivative of each op class."""

STOPS: frozenset[type[Operation]] = frozenset({values.StopOp})
"""Ops that pass floats on without their gradient."""


Slope = Callable[[Reverse, T, SSAValue], None]
"""A rule that is given the cotangent of the op's result."""


def derivative(cls: type[T]) -> Callable[[Slope[T]], Slope[T]]:
    """Registers the decorated function as the derivative of `cls`."""

    def register(slope: Slope[T]) -> Slope[T]:
        RULES[cls] = lambda r, op: slope(r, op, r.cotangent(op.results[0]))
        return slope

    return register


def passes_gradient(op: Operation, i: int) -> bool:
    """Whether the result of `op` moves, differentiably, with its operand `i`."""
    if not isinstance(op, ValueOp) or not is_float(op.type.elem):
        return False
    if type(op) in STOPS:
        return False
    return not isinstance(op, PointwiseOp) or carries(op, i)


def differentiate(r: Reverse, op: ValueOp) -> None:
    """Adds what `op` contributes to the cotangents of its operands."""
    rule = RULES.get(type(op))
    if rule is None:
        raise PassFailedException(
            f"autodiff: {op.name} has no derivative: put inter.stop before it if its operands need "
            "no gradient"
        )
    rule(r, op)


# ---------------------------------------------------------------- reads across sets


def _at(r: Reverse, op: values.AtOp) -> None:
    if op.x in r.need:
        _at_operand(r, op)
    if op.otherwise is not None:
        y, d = op.results[0], lambda: r.cotangent(op.results[0])
        r.put(op.otherwise, lambda: r.b.where(_missing(r, op), d(), r.zero(y)), op.type.dom)


RULES[values.AtOp] = _at  # which may need no cotangent of the whole result


def _missing(r: Reverse, op: values.AtOp) -> SSAValue:
    """Where a partial map has no value."""
    return r.b.pointwise("lt", r.b.index(op.set, op.path.data), r.b.const(0, (), i64))


def _at_operand(r: Reverse, op: values.AtOp) -> None:
    name, path, y = set_name(op.set), op.path.data, op.results[0]
    home, over = rows(op.x).dom, op.type.dom
    keys = tuple(f"{path}.{k}" for k in home.keys) or (path,)
    if home == ONE:  # read at every row that the map leads anywhere
        d = r.cotangent(y)
        r.put(
            op.x,
            lambda: d if op.otherwise is None else r.b.where(_missing(r, op), r.zero(d), d),
            over,
        )
    elif len(keys) > 1:
        r.put(op.x, lambda: _to_codomain(r, op), Dom(home.set))
    elif r.env.along(name, keys) != over:
        r.put_groups(op.x, r.b.reduce("sum", r.cotangent(y), over, keys))
    else:  # the rows of the result are those of the codomain
        here, below = r.parts(y)
        if here is not None:
            r.put_groups(op.x, r.b.reduce("sum", here, over, keys))
        if below is not None:
            r.put_groups(op.x, below)


def _to_codomain(r: Reverse, op: values.AtOp) -> SSAValue:
    """For each row of the codomain, the sum over the rows of the result that read it."""
    name, path, over, d = set_name(op.set), op.path.data, op.type.dom, r.cotangent(op.results[0])
    if not r.env.le(r.env.along(name, (path,)), over):
        # stored per pair of the codomain, which no map of the result leads to: give each row of the
        # set that reads a pair an even share of its cotangent
        whole, elem = Dom(name), rows(d).elem
        count = r.lift(name, over.keys, r.b.count(whole, over.keys, elem))
        d = r.b.div(d, r.b.pointwise("maximum", count, r.b.const(1.0, (), elem)))
        over = whole
    return r.b.reduce("sum", d, over, (path,))


@derivative(ranks.MoveOp)
def _move(r: Reverse, op: ranks.MoveOp, d: SSAValue) -> None:
    r.put(op.x, lambda: r.b.move(d, op.target, op.source), Dom(set_name(op.source)))


# ---------------------------------------------------------------- unions and tables


@derivative(values.StackOp)
def _stack(r: Reverse, op: values.StackOp, d: SSAValue) -> None:
    for i, (x, part) in enumerate(zip(op.xs, set_type(op.set).part_names, strict=True)):
        r.put(x, lambda i=i: d if rows(d).dom == ONE else r.b.part(i, op.set, d), Dom(part))


@derivative(values.PartOp)
def _part(r: Reverse, op: values.PartOp, d: SSAValue) -> None:
    parts = set_type(op.set).part_names

    def others_zero() -> SSAValue:
        zero = r.zero(d, rows(d).dims)
        return r.b.stack(op.set, *(d if i == op.index.data else zero for i in range(len(parts))))

    r.put(op.x, others_zero, Dom(set_name(op.set)))


@derivative(values.AsRowsOp)
def _as_rows(r: Reverse, op: values.AsRowsOp, d: SSAValue) -> None:
    r.put(op.x, lambda: r.b.as_unit(op.set, d, rows(op.x).dims[0]), ONE)


@derivative(values.AsUnitOp)
def _as_unit(r: Reverse, op: values.AsUnitOp, d: SSAValue) -> None:
    r.put(op.x, lambda: r.b.as_rows(op.set, d), Dom(set_name(op.set)))


# ---------------------------------------------------------------- the row's own dimensions


@derivative(shapes.ContractOp)
def _contract(r: Reverse, op: shapes.ContractOp, d: SSAValue) -> None:
    p, q, o = op.letters()
    r.put(op.a, lambda: r.b.contract(f"{o},{q}->{p}", d, op.b), op.type.dom)
    r.put(op.b, lambda: r.b.contract(f"{p},{o}->{q}", op.a, d), op.type.dom)


def _padded(r: Reverse, op: shapes.SliceOp, d: SSAValue) -> SSAValue:
    """The numbers of `d` back in their places, zeros between and around them."""
    dim, lo, _, step = op.bounds
    dims, size = op.type.dims, rows(op.x).dims[dim]
    before, length, after = dims[:dim], dims[dim], dims[dim + 1 :]
    if step > 1 and length > 1:
        gaps = r.zero(d, (*before, length, step - 1, *after))
        one = r.b.reshape(d, (*before, length, 1, *after))
        d = r.b.reshape(r.b.concat([one, gaps], dim + 1), (*before, length * step, *after))
        if length * step > size - lo:  # the gap after the last number is shorter
            d = r.b.slice(d, dim, 0, size - lo)
        length = min(length * step, size - lo)
    pieces = [d]
    if lo > 0:
        pieces.insert(0, r.zero(d, (*before, lo, *after)))
    if lo + length < size:
        pieces.append(r.zero(d, (*before, size - lo - length, *after)))
    return d if len(pieces) == 1 else r.b.concat(pieces, dim)


ROW_WISE: dict[type[Operation], Callable[[Reverse, Any, SSAValue], SSAValue]] = {
    values.CastOp: lambda r, op, d: r.b.cast(d, rows(op.x).elem),
    shapes.ReshapeOp: lambda r, op, d: r.b.reshape(d, rows(op.x).dims),
    shapes.BroadcastOp: lambda r, op, d: r.fit(d, rows(op.x).dims),
    shapes.TransposeOp: lambda r, op, d: r.b.transpose(
        d, [op.order.index(i) for i in range(len(op.order))]
    ),
    shapes.SliceOp: _padded,
    reductions.DropoutOp: lambda r, op, d: r.b.dropout(
        d, op.key, op.set, op.probability, op.site_number, op.numbers, op.column
    ),
}
"""The cotangent of the operand `x` of an op that does the same to every row."""


def _row_wise(r: Reverse, op: Any) -> None:
    of_x, d = ROW_WISE[type(op)], r.cotangent(op.results[0])
    r.put(op.x, lambda: of_x(r, op, d), op.type.dom)


RULES.update(dict.fromkeys(ROW_WISE, _row_wise))


@derivative(shapes.ConcatOp)
def _concat(r: Reverse, op: shapes.ConcatOp, d: SSAValue) -> None:
    lo = 0
    for x in op.xs:
        hi = lo + rows(x).dims[op.axis]
        r.put(x, lambda lo=lo, hi=hi: r.b.slice(d, op.axis, lo, hi), op.type.dom)
        lo = hi


@derivative(shapes.RowReduceOp)
def _row_reduce(r: Reverse, op: shapes.RowReduceOp, d: SSAValue) -> None:
    dims = rows(op.x).dims

    def ties() -> SSAValue:
        best = r.spread(op.results[0], dims, op.axes)
        share, mask = _shares(r, op.x, best, lambda m: r.b.row_reduce("sum", m, op.axes), d)
        return _dealt(r, mask, r.spread(share, dims, op.axes))

    plain = op.kind.data == "sum"
    r.put(op.x, (lambda: r.spread(d, dims, op.axes)) if plain else ties, op.type.dom)


def _shares(
    r: Reverse,
    x: SSAValue,
    best: SSAValue,
    total: Callable[[SSAValue], SSAValue],
    d: SSAValue,
    more: SSAValue | None = None,
) -> tuple[SSAValue, SSAValue]:
    """`d` divided by the number of entries of `x` that equal `best` (and `more` of them), and where
    they are; `total` sums over what the maximum was taken of. Where `best` is NaN nothing equals
    it, and the share is no finite number."""
    b, elem = r.b, rows(d).elem
    mask = b.pointwise("eq", x, best)
    count = total(b.cast(mask, elem))
    if more is not None:
        count = b.add(count, more)
    return b.div(d, count), mask


def _dealt(r: Reverse, mask: SSAValue, share: SSAValue) -> SSAValue:
    """The share where the mask holds; elsewhere 0, or NaN as in torch where nobody has a share."""
    return r.b.where(mask, share, r.b.mul(share, r.zero(share)))


# ---------------------------------------------------------------- reductions over rows


@derivative(reductions.ReduceOp)
def _reduce(r: Reverse, op: reductions.ReduceOp, d: SSAValue) -> None:
    _REDUCE[op.kind.data](r, op, d)


def _lift(r: Reverse, op: reductions.OverAlong, v: SSAValue) -> SSAValue:
    return r.lift(op.over.set, op.along_keys, v)


def _total(r: Reverse, op: reductions.OverAlong, v: SSAValue) -> SSAValue:
    return r.b.reduce("sum", v, op.over, op.along_keys)


def _sum(r: Reverse, op: reductions.ReduceOp, d: SSAValue) -> None:
    r.put(op.x, lambda: _lift(r, op, d), op.over)


def _mean(r: Reverse, op: reductions.ReduceOp, d: SSAValue) -> None:

    def share() -> SSAValue:
        elem = rows(d).elem
        count = r.b.count(op.over, op.along_keys, elem)
        at_least_one = r.b.pointwise("maximum", count, r.b.const(1.0, (), elem))
        return _lift(r, op, r.b.div(d, at_least_one))

    r.put(op.x, share, op.over)


def _extreme(r: Reverse, op: reductions.ReduceOp, d: SSAValue) -> None:
    y = op.results[0]

    def ties() -> SSAValue:
        start = None
        if op.zero_ties is not None:  # torch's scatter starts from 0: one more tie there
            start = r.b.cast(r.b.pointwise("eq", y, r.zero(y)), rows(y).elem)
        best = _lift(r, op, y)
        share, mask = _shares(r, op.x, best, lambda m: _total(r, op, m), d, start)
        return _dealt(r, mask, _lift(r, op, share))

    r.put(op.x, ties, op.over)


def _mul(r: Reverse, op: reductions.ReduceOp, d: SSAValue) -> None:
    """d times the product of the others, also where a factor is 0."""
    b, zero = r.b, r.zero(d)
    one = b.const(1.0, (), rows(d).elem)

    def others() -> SSAValue:
        is_zero = b.pointwise("eq", op.x, zero)
        nonzero = b.where(is_zero, one, op.x)
        zeros = _total(r, op, b.cast(is_zero, rows(d).elem))
        whole = b.mul(d, b.reduce("mul", nonzero, op.over, op.along_keys))
        none = b.where(b.pointwise("eq", zeros, zero), whole, zero)
        single = b.where(b.pointwise("eq", zeros, one), whole, zero)
        divided = b.div(_lift(r, op, none), nonzero)
        return b.where(is_zero, _lift(r, op, single), divided)

    r.put(op.x, others, op.over)


def _last(r: Reverse, op: reductions.ReduceOp, d: SSAValue) -> None:
    b, zero = r.b, r.zero(d)
    assert op.otherwise is not None  # the verifier's
    if op.every is not None:

        def empty() -> SSAValue:
            count = b.count(op.over, op.along_keys, i64)
            return b.where(b.pointwise("eq", count, b.const(0, (), i64)), d, zero)

        r.put(op.x, lambda: _lift(r, op, d), op.over)
        r.put(op.otherwise, empty, op.type.dom)
        return
    if op.over.keys:
        raise PassFailedException(
            f"autodiff: reduce last over {op.over}: its rows have no numbers; reduce over the set "
            f"{op.over.set}"
        )
    number, none = b.iota(op.set), b.const(-1, (), i64)
    last = b.reduce("last", number, op.over, op.along_keys, none)

    def chosen() -> SSAValue:
        is_last = b.pointwise("eq", number, r.lift(op.over.set, op.along_keys, last, none))
        return b.where(is_last, _lift(r, op, d), zero)

    def missing() -> SSAValue:
        return b.where(b.pointwise("eq", last, none), d, zero)

    r.put(op.x, chosen, op.over)
    r.put(op.otherwise, missing, op.type.dom)


_REDUCE: dict[str, Slope[reductions.ReduceOp]] = {
    "sum": _sum,
    "mean": _mean,
    "max": _extreme,
    "min": _extreme,
    "mul": _mul,
    "last": _last,
}


@derivative(reductions.SoftmaxOp)
def _softmax(r: Reverse, op: reductions.SoftmaxOp, d: SSAValue) -> None:
    b, p, home = r.b, op.results[0], op.type.dom

    def inner() -> SSAValue:
        total = b.reduce("sum", b.mul(p, d), home, op.along_keys)
        return _lift(r, op, total)

    if home == op.over:
        r.put(op.x, lambda: b.mul(p, b.sub(d, inner())), home)
        return
    # p is stored per class of rows: d is a class's total, and each row has its own share of the sum
    r.put(op.x, lambda: b.mul(p, d), home)
    r.put(op.x, lambda: b.neg(b.mul(p, inner())), op.over)
