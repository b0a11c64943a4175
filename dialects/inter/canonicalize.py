"""Canonicalization: what costs no more and changes no number beyond rounding of constants."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from ..pointwise import PointwiseSpec
from .base import InterOp, Row, ValueOp
from .pointwise import POINTWISE_OPS, PointwiseOp
from .reduce import CountOp, DropoutOp, ReduceOp
from .rewrite import Rewrite, Rule, constant, producer
from .sets import SetEnv
from .shapes import BroadcastOp, ConcatOp, ReshapeOp, RowReduceOp, SliceOp, TransposeOp
from .slices import SLICE_RULES
from .structure import RangeOp
from .syntax import ints
from .types import ONE, is_bool, is_float, is_integer, rows, set_type
from .unit_dims import UNIT_DIM_RULES
from .values import (
    AsRowsOp,
    AsUnitOp,
    AtOp,
    CastOp,
    IndexOp,
    IotaOp,
    PartOp,
    SizeOp,
    StackOp,
    StopOp,
)
from .zeros import is_neutral, same_number

# ---------------------------------------------------------------- pointwise


def _fold_constants(op: PointwiseOp, rw: Rewrite) -> SSAValue | None:
    given = [constant(x) for x in op.xs]
    if any(c is None for c in given):
        return None
    arrays: list[Any] = []
    for c, x in zip(given, op.xs, strict=True):
        elem = rows(x).elem
        dtype = np.bool_ if is_bool(elem) else np.float64 if is_float(elem) else np.int64
        arrays.append(np.asarray([c], dtype))
    with np.errstate(all="ignore"):
        value = op.SPEC.function(*arrays, **op.parameters()).reshape(-1)[0].item()
    return rw.const(value) if math.isfinite(value) else None


def _same_row(op: ValueOp, x: SSAValue) -> SSAValue | None:
    """`x` where it has the result's row."""
    t = rows(x)
    return x if (t.dims, t.elem) == (op.type.dims, op.type.elem) else None


def _neutral(op: PointwiseOp, rw: Rewrite) -> SSAValue | None:
    """A binary op with its neutral number on one side is the other operand."""
    (a, b), (left, right) = op.xs, op.SPEC.neutral
    if is_neutral(constant(b), right, a):
        return _same_row(op, a)
    return _same_row(op, b) if is_neutral(constant(a), left, b) else None


def _undone(op: PointwiseOp, rw: Rewrite) -> SSAValue | None:
    """f(f(x)) is x: neg, logical_not."""
    inner = producer(op.xs[0], type(op))
    return inner.xs[0] if inner is not None else None


def _idempotent(op: PointwiseOp, rw: Rewrite) -> SSAValue | None:
    """f(f(x)) is f(x): relu, abs, floor, sign."""
    return op.xs[0] if producer(op.xs[0], type(op)) is not None else None


def _equal_operands(op: PointwiseOp, rw: Rewrite) -> SSAValue | None:
    return op.xs[0] if op.xs[0] is op.xs[1] else None


def _short_first(op: PointwiseOp, rw: Rewrite) -> SSAValue | None:
    """Of operands that may change places, the one of fewer numbers comes first."""
    a, b = op.xs
    if math.prod(rows(a).dims) <= math.prod(rows(b).dims):
        return None
    return rw.again([b, a], op.type.dims)


def _decided(op: PointwiseOp, rw: Rewrite) -> SSAValue | None:
    """where of a known condition, or of two equal values."""
    condition, a, b = op.xs
    if a is b:
        return _same_row(op, a)
    known = constant(condition)
    return None if known is None else _same_row(op, a if known else b)


def pointwise_rules(spec: PointwiseSpec) -> tuple[Rule, ...]:
    """The rules that follow from the record of a function."""
    rules: list[Rule] = [_fold_constants]
    if any(x is not None for x in spec.neutral):
        rules.append(_neutral)
    if spec.involution:
        rules.append(_undone)
    if spec.idempotent:
        rules.append(_idempotent)
    if spec.selective:
        rules.append(_equal_operands)
    if spec.commutative:
        rules.append(_short_first)
    if spec.operands == "where":
        rules.append(_decided)
    return tuple(rules)


# ---------------------------------------------------------------- row dimensions


def _same_shape(op: ValueOp, rw: Rewrite) -> SSAValue | None:
    """A reshape, broadcast, cast or slice that changes nothing."""
    return _same_row(op, op.operands[0])


def _const_view(op: ValueOp, rw: Rewrite) -> SSAValue | None:
    """A view of equal numbers is equal numbers."""
    c = constant(op.operands[0])
    return None if c is None else rw.const(c)


def _nested(op: ReshapeOp | BroadcastOp, rw: Rewrite) -> SSAValue | None:
    """reshape of reshape, broadcast of broadcast"""
    inner = producer(op.x, type(op))
    if inner is None:
        return None
    return rw.make(type(op), [inner.x], {}, Row(op.type.dims, op.type.elem))


def _meets(op: ReshapeOp, rw: Rewrite) -> SSAValue | None:
    """A reshape behind a function goes in front of it, where it meets more of them there than it
    makes; not to a shape with ones, which unit_dims.py takes the other way."""
    inner = producer(op.x, PointwiseOp)
    if inner is None or 1 in op.type.dims or not op.x.has_one_use():
        return None
    if rows(op.x).dom != op.type.dom:
        return None
    new: list[SSAValue] = []
    gain = 1
    for x in inner.xs:
        before = producer(x, ReshapeOp)
        if not rows(x).dims:
            new.append(x)
        elif rows(x).dims != inner.type.dims:
            return None
        elif before is not None and rows(before.x).dims == op.type.dims:
            new.append(before.x)
            gain += 1
        else:
            new.append(rw.reshape(x, op.type.dims))
            gain -= 1
    return rw.alike(inner, new, op.type.dims) if gain > 0 else None


def _transpose(op: TransposeOp, rw: Rewrite) -> SSAValue | None:
    if op.order == tuple(range(len(op.order))):
        return op.x
    inner = producer(op.x, TransposeOp)
    if inner is None:
        return None
    perm = ints([inner.order[i] for i in op.order])
    return rw.make(TransposeOp, [inner.x], {"perm": perm}, Row(op.type.dims, op.type.elem))


def _single(op: ConcatOp, rw: Rewrite) -> SSAValue | None:
    return op.xs[0] if len(op.xs) == 1 else None


def _thin(op: RowReduceOp, rw: Rewrite) -> SSAValue | None:
    """A sum over dimensions of 1 only is a reshape; an extreme is not, whose gradient at NaN is
    NaN."""
    if op.kind.data != "sum" or any(rows(op.x).dims[i] != 1 for i in op.axes):
        return None
    return rw.make(ReshapeOp, [op.x], {}, Row(op.type.dims, op.type.elem))


def _cast_const(op: CastOp, rw: Rewrite) -> SSAValue | None:
    c, t = constant(op.x), op.type.elem
    if c is None or not math.isfinite(c):
        return None
    if is_bool(t):
        return rw.const(c != 0)
    if is_integer(t):
        return rw.const(int(c))
    single = rows(op.x).elem == f32  # rounded before, as an f32 is wherever it is read
    return rw.const(float(np.float32(c)) if single else float(c))


# ---------------------------------------------------------------- sets


def _read_unit(op: AtOp, rw: Rewrite) -> SSAValue | None:
    """A single row is the same seen from anywhere."""
    return op.x if op.otherwise is None and rows(op.x).dom == ONE else None


def _read_or_same(op: AtOp, rw: Rewrite) -> SSAValue | None:
    """Where the value and that of `else` are the same constant, or the same single row."""
    if op.otherwise is None:
        return None
    if op.x is op.otherwise and rows(op.x).dom == ONE:
        return op.x
    return op.x if same_number(constant(op.x), constant(op.otherwise)) else None


def _read_iota(op: AtOp, rw: Rewrite) -> SSAValue | None:
    """Row numbers seen through a map are the map."""
    if op.otherwise is not None or producer(op.x, IotaOp) is None:
        return None
    return rw.make(IndexOp, [op.set], {"path": op.path}, Row((), op.type.elem))


def _stack_equal(op: StackOp, rw: Rewrite) -> SSAValue | None:
    """One single row, or one constant, for every part."""
    first = op.xs[0]
    if rows(first).dom != ONE:
        return None
    c = constant(first)
    same = all(x is first or same_number(constant(x), c) for x in op.xs)
    return first if same else None


def _stack_of_parts(op: StackOp, rw: Rewrite) -> SSAValue | None:
    """All parts of a value, in order, are the value."""
    parts = [producer(x, PartOp) for x in op.xs]
    whole = parts[0]
    if whole is None or whole.set is not op.set:
        return None
    for i, p in enumerate(parts):
        if p is None or p.set is not op.set or p.x is not whole.x or p.index.data != i:
            return None
    return whole.x


def _part_of_stack(op: PartOp, rw: Rewrite) -> SSAValue | None:
    stack = producer(op.x, StackOp)
    return stack.xs[op.index.data] if stack is not None and stack.set is op.set else None


def _part_of_unit(op: PartOp, rw: Rewrite) -> SSAValue | None:
    return op.x if rows(op.x).dom == ONE else None


def _as_unit_of_rows(op: AsUnitOp, rw: Rewrite) -> SSAValue | None:
    inner = producer(op.x, AsRowsOp)
    return inner.x if inner is not None and inner.set is op.set else None


def _as_rows_of_unit(op: AsRowsOp, rw: Rewrite) -> SSAValue | None:
    inner = producer(op.x, AsUnitOp)
    return inner.x if inner is not None and inner.set is op.set else None


def _known_size(op: SizeOp, rw: Rewrite) -> SSAValue | None:
    owner = op.set.owner
    return rw.const(owner.size.value.data) if isinstance(owner, RangeOp) else None


def _stop(op: StopOp, rw: Rewrite) -> SSAValue | None:
    """Nothing to stop: constants, integers, what was stopped already."""
    free = producer(op.x, StopOp) is not None or constant(op.x) is not None
    return op.x if free or not is_float(op.type.elem) else None


def _no_dropout(op: DropoutOp, rw: Rewrite) -> SSAValue | None:
    return op.x if op.probability == 0 else None


# ---------------------------------------------------------------- reductions


def _count_ones(op: ReduceOp, rw: Rewrite) -> SSAValue | None:
    """A sum of ones is a count."""
    t = op.type
    if op.kind.data != "sum" or constant(op.x) != 1 or t.dims:
        return None
    props = {"over_keys": op.over_keys, "along": op.along}
    return rw.make(CountOp, [op.set], props, Row((), t.elem))


def _reduce_of_read(op: ReduceOp, rw: Rewrite) -> SSAValue | None:
    """Reading along a map and reducing along it again gives the value back, when every group has a
    row (the map is onto): equal rows for mean, max, min and last, exactly one (mono) for sums and
    products, and for the derivative of last {every}."""
    read = producer(op.x, AtOp)
    if read is None or read.set is not op.set or read.otherwise is not None:
        return None
    if op.over.keys or op.along_keys != (read.path.data,) or rows(read.x).dom != op.type.dom:
        return None
    labels = set_type(op.set).map_dict()
    if read.path.data not in labels:  # a path: what is known of it takes the function's sets
        return None
    flags = set(labels[read.path.data].flags)
    if "onto" not in flags or "partial" in flags:
        return None
    needs_one = op.kind.data in ("sum", "mul") or op.every is not None
    return read.x if "mono" in flags or not needs_one else None


_RULES: dict[type[Operation], tuple[Rule, ...]] = {
    ReshapeOp: (_same_shape, _const_view, _nested, _meets),
    BroadcastOp: (_same_shape, _const_view, _nested),
    TransposeOp: (_transpose, _const_view),
    SliceOp: (_same_shape, _const_view, *SLICE_RULES),
    ConcatOp: (_single,),
    RowReduceOp: (_thin,),
    CastOp: (_same_shape, _cast_const),
    AtOp: (_read_unit, _read_or_same, _read_iota),
    StackOp: (_stack_equal, _stack_of_parts),
    PartOp: (_part_of_stack, _part_of_unit),
    AsUnitOp: (_as_unit_of_rows,),
    AsRowsOp: (_as_rows_of_unit,),
    SizeOp: (_known_size,),
    StopOp: (_stop,),
    DropoutOp: (_no_dropout,),
    ReduceOp: (_count_ones, _reduce_of_read),
}
_RULES.update({cls: pointwise_rules(cls.SPEC) for cls in POINTWISE_OPS.values()})
for _cls, _rules in UNIT_DIM_RULES.items():
    _RULES[_cls] = (*_RULES.get(_cls, ()), *_rules)


# ---------------------------------------------------------------- applying


def readers_accept(uses: Sequence[Use], value: SSAValue) -> bool:
    """Makes all uses read `value` instead, if they can where it lives; else leaves them."""
    done: list[tuple[Use, SSAValue]] = []
    env: SetEnv | None = None
    for use in uses:
        user = use.operation
        func = user.parent_op()
        if not isinstance(user, InterOp) or not isinstance(func, FuncOp):
            break
        done.append((use, user.operands[use.index]))
        user.operands[use.index] = value
        env = env or SetEnv.of(func)
        try:
            user.check_sets(env)
        except VerifyException:
            break
    else:
        return True
    for use, old in done:
        use.operation.operands[use.index] = old
    return False


class Canonicalize(RewritePattern):
    """Tries the rules of an op in order."""

    def __init__(self, rules: tuple[Rule, ...]):
        self.rules = rules

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if not isinstance(op, ValueOp):
            return
        for rule in self.rules:
            rw = Rewrite(op)
            value = rule(op, rw)
            if value is not None and replace(op, value, rw.made, rewriter):
                return
            for made in reversed(rw.made):
                made.erase()


def replace(
    op: ValueOp, value: SSAValue, made: Sequence[ValueOp], rewriter: PatternRewriter
) -> bool:
    """Puts `value` in the place of the op's result, if its readers can take it, and the ops that
    were made for it in front."""
    t = rows(value)
    if (t.dims, t.elem) != (op.type.dims, op.type.elem):
        return False
    if t == op.type:
        rewriter.replace(op, made, [value])
        return True
    uses = list(op.results[0].uses)
    if not readers_accept(uses, value):
        return False
    rewriter.insert(made, InsertPoint.before(op))
    for use in uses:
        rewriter.notify_op_modified(use.operation)
    rewriter.erase(op)
    return True


@functools.cache
def patterns_of(cls: type[Operation]) -> tuple[RewritePattern, ...]:
    """The patterns of an op class."""
    rules = _RULES.get(cls, ())
    return (Canonicalize(rules),) if rules else ()
