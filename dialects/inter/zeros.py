"""Zeros have a sign: `x + 0.0` is x but where x is -0.0. What is known never to be that."""

from __future__ import annotations

import math

from xdsl.ir import Operation, SSAValue

from .reduce import CountOp, ReduceOp
from .shapes import BroadcastOp, ContractOp, ReshapeOp, RowReduceOp, SliceOp, TransposeOp
from .types import is_float, rows
from .values import AsRowsOp, AsUnitOp, AtOp, ConstOp, PartOp

_DEPTH = 8
"""How many ops are looked at before nothing is said."""

_MOVES = (BroadcastOp, ReshapeOp, SliceOp, TransposeOp, AsRowsOp, AsUnitOp, PartOp)


def never_negative_zero(v: SSAValue, depth: int = _DEPTH) -> bool:
    """Whether no number of `v` is -0.0. Sums begin with 0.0 and stay clear of it (but for products
    so small that they are flushed)."""
    op = v.owner
    if not isinstance(op, Operation) or not depth:
        return False
    match op:
        case ConstOp():
            return not is_negative_zero(op.number)
        case ReduceOp():
            return op.kind.data in ("sum", "mean")
        case RowReduceOp():
            return op.kind.data == "sum"
        case ContractOp() | CountOp():
            return True
        case AtOp():
            return op.otherwise is None and never_negative_zero(op.x, depth - 1)
        case _ if isinstance(op, _MOVES):
            return never_negative_zero(op.x, depth - 1)
        case _:
            return op.name == "inter.add" and any(
                never_negative_zero(x, depth - 1) for x in op.operands
            )


def is_negative_zero(x: float) -> bool:
    return x == 0 and math.copysign(1.0, x) < 0


def same_number(a: float | None, b: float | None) -> bool:
    """Whether two numbers are known and the same: 0.0 and -0.0 are not."""
    if a is None or b is None:
        return False
    return a == b and is_negative_zero(a) == is_negative_zero(b)


def is_neutral(x: float | None, neutral: float | None, other: SSAValue) -> bool:
    """Whether a function whose neutral number is `neutral` gives `other` with the constant `x`."""
    if x is None or neutral is None or x != neutral:
        return False
    same_sign = is_negative_zero(x) == is_negative_zero(neutral)
    return same_sign or not is_float(rows(other).elem) or never_negative_zero(other)
