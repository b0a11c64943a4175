"""raise, patterns: what users and libraries spell out becomes the op that means it.

- `where(x ** -0.5 == inf, 0, x ** -0.5)` is `rsqrt {zero = 0}`, also with `x == 0` as condition;
- a sum over the rows of a group divided by their number (at least 1) is a mean;
- a product summed over dimensions of the row is a contraction (GAT's scores);
- values stacked and summed over the new dimension are added (the relations of a hetero model).
"""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.reduce import CountOp
from ....dialects.inter.shapes import ConcatOp, RowReduceOp
from ....dialects.inter.types import is_float, rows
from ....dialects.inter.values import CastOp
from ..linear.factors import factorise, placed
from ..linear.function import LinearFunction, is_unit, linear_reduce, pointwise
from .constants import constant


def count_of_sum(fn: LinearFunction, op: ValueOp) -> bool:
    """A sum of a constant over rows is the constant times their number."""
    reduce = linear_reduce(op.results[0])
    if reduce is None or reduce.kind.data != "sum" or not is_unit(reduce.x):
        return False
    b = fn.before(op)
    count = b.count(reduce.over, reduce.along_keys, reduce.type.elem)
    if constant(reduce.x) != 1 or reduce.type.dims:
        count = b.mul(reduce.x, count)
    fn.replace(op.results[0], count)
    return True


def guarded_rsqrt(fn: LinearFunction, op: ValueOp) -> bool:
    """An inverse root with its infinity at 0 replaced by a constant."""
    if not isinstance(op, PointwiseOp) or op.SPEC.name != "where":
        return False
    condition, replacement, root = op.operands
    rsqrt = pointwise(root, "rsqrt")
    value = constant(replacement)
    if rsqrt is None or "zero" in rsqrt.properties or value is None:
        return False
    x = rsqrt.operands[0]
    if rows(x).dims != op.type.dims or not _is_zero_of(condition, x, root):
        return False
    new = fn.before(op).pointwise("rsqrt", x, zero=float(value))
    fn.replace(op.results[0], new)
    return True


def _is_zero_of(condition: SSAValue, x: SSAValue, root: SSAValue) -> bool:
    """Whether `condition` says that `x` is 0: x == 0, or its inverse root is infinite."""
    eq = pointwise(condition, "eq")
    if eq is None:
        return False
    for a, b in (tuple(eq.operands), tuple(reversed(eq.operands))):
        c = constant(b)
        if a is x and c == 0:
            return True
        absolute = pointwise(a, "abs")
        if c == math.inf and (a is root or (absolute and absolute.operands[0] is root)):
            return True
    return False


def mean_of_sum(fn: LinearFunction, op: ValueOp) -> bool:
    """A sum divided by the number of its rows, or by 1 where there is none."""
    if not isinstance(op, PointwiseOp) or op.SPEC.name not in ("mul", "div"):
        return False
    product = factorise(op.results[0])
    sums = [f for f in product.factors if not f.inverse and linear_reduce(f.value) is not None]
    if len(product.factors) != 2 or len(sums) != 1 or product.negative:
        return False
    reduce = linear_reduce(sums[0].value)
    (divisor,) = [f for f in product.factors if f is not sums[0]]
    if reduce is None or reduce.kind.data != "sum" or not divisor.inverse:
        return False
    if rows(reduce.results[0]).dims != op.type.dims:
        return False
    count = _clamped_count(divisor.value)
    if count is None or (count.over, count.along_keys) != (reduce.over, reduce.along_keys):
        return False
    b = fn.before(op)
    fn.replace(op.results[0], b.reduce("mean", reduce.x, reduce.over, reduce.along_keys))
    return True


def _clamped_count(v: SSAValue) -> CountOp | None:
    """The count in `maximum(count, 1)` or `where(count < 1, 1, count)`, also of a count of integers
    that is made a float then."""
    if isinstance(v.owner, CastOp):
        v = v.owner.x
    if (clamp := pointwise(v, "maximum")) is not None:
        choices = list(clamp.operands)
    elif (chosen := pointwise(v, "where")) is not None:
        condition, *choices = chosen.operands
        below = pointwise(condition, "lt")
        if below is None or list(below.operands) != choices[::-1]:
            return None
    else:
        return None
    counts = [x.owner for x in choices if isinstance(x.owner, CountOp)]
    ones = [x for x in choices if constant(x) == 1]
    return counts[0] if len(counts) == 1 and len(ones) == 1 else None


def sum_of_stack(fn: LinearFunction, op: ValueOp) -> bool:
    """A concatenation summed over its dimension is the sum of its parts, each summed over it."""
    if not isinstance(op, RowReduceOp) or op.kind.data != "sum":
        return False
    stack = op.x.owner
    if not isinstance(stack, ConcatOp) or stack.axis not in op.axes or not op.x.has_one_use():
        return False
    b = fn.before(op)
    total: SSAValue | None = None
    for x in stack.xs:
        alone = all(rows(x).dims[d] == 1 for d in op.axes)
        part = b.reshape(x, op.type.dims) if alone else b.row_reduce("sum", x, op.axes)
        total = part if total is None else b.add(total, part)
    assert total is not None
    fn.replace(op.results[0], total)
    return True


def contract_of_sum(fn: LinearFunction, op: ValueOp) -> bool:
    """`row_reduce sum (a * b)` over dimensions that both have."""
    if not isinstance(op, RowReduceOp) or op.kind.data != "sum" or not is_float(op.type.elem):
        return False
    product = pointwise(op.x, "mul")
    if product is None or any(use.operation is not op for use in op.x.uses):
        return False
    rank = len(rows(op.x).dims)
    letters = "abcdefghijklmnopqrstuvwxyz"[:rank]
    left, right = (placed(x, rank) for x in product.operands)
    terms = ["".join(letters[p] for p in f.place if p is not None) for f in (left, right)]
    if not all(letters[d] in t for d in op.axes for t in terms):
        return False
    out = "".join(
        c for i, c in enumerate(letters) if i not in op.axes and (c in terms[0] or c in terms[1])
    )
    b = fn.before(op)
    dims = [[n for n in rows(f.value).dims if n != 1] for f in (left, right)]
    operands = [b.reshape(f.value, d) for f, d in zip((left, right), dims, strict=True)]
    y = b.contract(f"{terms[0]},{terms[1]}->{out}", operands[0], operands[1])
    fn.replace(op.results[0], b.reshape(y, op.type.dims))
    return True
