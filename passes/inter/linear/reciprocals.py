"""reorder-linear, reciprocals: what is divided on edges by a node's number is multiplied by its
reciprocal, where the node has that anyway.

The sums of a softmax are such: they leave the sums over edges as reciprocals (linear/sums.py), and
its backward pass divides by them on every edge, twice with leaky scores. A product takes a fraction
of a division's time. Only of numbers that `maximum` keeps at 1 or more: their reciprocals are
finite, and only the last bit may differ.

Before: `div %e, (at %g[dst] %s)` beside `div 1.0, %s`. After: `mul %e, (at %g[dst] (div 1.0, %s))`.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.values import ConstOp
from .function import LinearFunction, at_of, plain_at, pointwise


def multiply_by_reciprocal(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites one division; says whether it did."""
    if (division := pointwise(op.results[0], "div")) is None:
        return False
    x, divisor = division.operands
    read = plain_at(divisor)
    if read is None or not fn.sizes.is_edges(op.type.dom) or not _is_one_or_more(read.x):
        return False
    known = [r for use in read.x.uses if (r := _reciprocal(use.operation, read.x))]
    if not known:
        return False
    b = fn.before(op)
    earlier = [r.results[0] for r in known if r.is_before_in_block(op)]
    # cse makes one of this and a later one
    reciprocal = earlier[0] if earlier else b.div(b.const(1.0, (), op.type.elem), read.x)
    fn.replace(op.results[0], b.mul(x, at_of(b, read, reciprocal)))
    return True


def _reciprocal(op: Operation, x: SSAValue) -> PointwiseOp | None:
    """The op, where it is 1 / x."""
    found = pointwise(op.results[0], "div") if isinstance(op, ValueOp) else None
    is_one = found is not None and found.operands[1] is x and _constant(found.operands[0]) == 1
    return found if is_one else None


def _is_one_or_more(x: SSAValue) -> bool:
    """Whether `maximum` keeps a number from being less than 1."""
    greatest = pointwise(x, "maximum")
    if greatest is None:
        return False
    known = (_constant(y) for y in greatest.operands)
    return any(number is not None and number >= 1 for number in known)


def _constant(x: SSAValue) -> float | None:
    return x.owner.number if isinstance(x.owner, ConstOp) else None
