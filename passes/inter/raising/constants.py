"""raise, constants: neutral factors and terms go, powers that have a name of their own get it."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.types import is_float, rows
from ....dialects.inter.values import AtOp, ConstOp, StackOp
from ....dialects.inter.zeros import is_neutral, same_number
from ....dialects.signature import is_returned
from ..linear.function import LinearFunction, is_unit


def constant(v: SSAValue) -> float | int | None:
    """The number that fills `v`, seen through reads and reshapes of a constant."""
    owner = v.owner
    if isinstance(owner, ConstOp):
        return owner.number
    if isinstance(owner, AtOp) and owner.otherwise is None:
        return constant(owner.x)
    if isinstance(owner, ValueOp) and owner.name in ("inter.reshape", "inter.broadcast"):
        return constant(owner.operands[0])
    return None


def drop_neutral(fn: LinearFunction, op: ValueOp) -> bool:
    """`x * 1`, `x / 1` and `x - 0` are `x`, `x + 0` where x is not -0.0."""
    if not isinstance(op, PointwiseOp) or op.SPEC.neutral == (None, None):
        return False
    (a, b), (left, right) = op.xs, op.SPEC.neutral
    for x, neutral, other in ((b, right, a), (a, left, b)):
        if is_neutral(constant(x), neutral, other) and _is_result(op, other):
            return _use(fn, op, other)
    return False


def _is_result(op: ValueOp, x: SSAValue) -> bool:
    return rows(x).dims == op.type.dims


def _use(fn: LinearFunction, op: ValueOp, x: SSAValue) -> bool:
    """Drops `op`; only a result of the function keeps its op for the domain of its type."""
    if rows(x) != op.type and is_returned(op.results[0]):
        return False
    op.results[0].replace_all_uses_with(x)
    return True


def fold_constants(fn: LinearFunction, op: ValueOp) -> bool:
    """A function of constants is a constant, where it is finite for all."""
    if not isinstance(op, PointwiseOp) or not op.SPEC.total:
        return False
    numbers = [x.owner.number for x in op.operands if isinstance(x.owner, ConstOp)]
    if len(numbers) != len(op.operands) or not is_float(op.type.elem):
        return False
    value = float(op.SPEC.function(*numbers, **op.parameters()))
    fn.replace(op.results[0], fn.before(op).const(value, op.type.dims, op.type.elem))
    return True


def unstack(fn: LinearFunction, op: ValueOp) -> bool:
    """Equal single rows on all parts of a union are that row (GCN without weights)."""
    if not isinstance(op, StackOp) or is_returned(op.results[0]):
        return False
    first = op.xs[0]
    if not is_unit(first):
        return False
    for x in op.xs[1:]:
        same = same_number(constant(x), constant(first))
        if x is not first and not (is_unit(x) and same):
            return False
    op.results[0].replace_all_uses_with(first)
    return True


def name_power(fn: LinearFunction, op: ValueOp) -> bool:
    """`pow` with a constant exponent that is 1, 2, 1/2, -1/2 or -1."""
    if not isinstance(op, PointwiseOp) or op.SPEC.name != "pow":
        return False
    x, exponent = op.operands
    if rows(x).dims != op.type.dims:
        return False
    b = fn.before(op)
    match constant(exponent):
        case 1:
            y = b.mul(x, b.const(1.0, (), rows(x).elem))
        case 2:
            y = b.mul(x, x)
        case 0.5:
            y = b.pointwise("sqrt", x)
        case -0.5:
            y = b.pointwise("rsqrt", x)
        case -1:
            y = b.div(b.const(1.0, (), rows(x).elem), x)
        case _:
            return False
    fn.replace(op.results[0], y)
    return True
