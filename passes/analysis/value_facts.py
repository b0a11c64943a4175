"""What is known of the numbers of a value: finite, not negative, bounded away from 0.

A factor may leave a sum only where it is finite on every stored row, also on rows that nothing
reads: there it would meet the 0 of an empty group, and 0 times infinity is no number. Arguments
are taken to be finite.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from itertools import dropwhile

from xdsl.ir import Operation, SSAValue

from ...dialects.inter.base import ValueOp
from ...dialects.inter.pointwise import PointwiseOp
from ...dialects.inter.reduce import CountOp, DropoutOp, OverAlong, ReduceOp, SoftmaxOp
from ...dialects.inter.sets import Total
from ...dialects.inter.shapes import ContractOp, RowReduceOp
from ...dialects.inter.types import UNIT, Dom, RowsType, rows, set_name
from ...dialects.inter.values import AtOp, CastOp, ConstOp
from .dependence import operands_first

_SAME = frozenset(f"inter.{n}" for n in ("at", "reshape", "broadcast", "transpose", "slice"))
_MOVES = _SAME | {f"inter.{n}" for n in ("concat", "stack", "part", "as_rows", "as_unit", "stop")}


class Facts:
    """The facts of one function, found when asked for and remembered."""

    def __init__(self) -> None:
        self._known: defaultdict[str, dict[SSAValue, bool]] = defaultdict(dict)

    def _ask(self, what: str, v: SSAValue, find: Callable[[Operation], bool]) -> bool:
        known = self._known[what]
        for x in operands_first(v, known, _read_by):
            known[x] = find(x.owner) if isinstance(x.owner, Operation) else what == "finite"
        return known[v]

    def finite(self, v: SSAValue) -> bool:
        """Finite arguments make every stored row finite."""
        return self._ask("finite", v, self._finite)

    def finite_units(self, op: Operation) -> bool:
        """Whether the single rows among the operands are finite, also where a set has no rows."""
        units = (x for x in _values(op) if rows(x).dom.set == UNIT)
        return all(self.finite(x) for x in units)

    def not_negative(self, v: SSAValue) -> bool:
        """No number is below 0."""
        return self._ask("not negative", v, self._not_negative)

    def positive(self, v: SSAValue) -> bool:
        """All numbers are above some constant above 0."""
        return self._ask("positive", v, self._positive)

    def _finite(self, op: Operation) -> bool:
        if isinstance(op, ConstOp):
            return math.isfinite(op.number)
        if op.name == "inter.where" and (self._is_guarded(op) or self._is_kept_low(op)):
            return True
        if not all(self.finite(x) for x in _values(op)):
            return False
        if op.name == "inter.exp" and _below_greatest(op.operands[0]):
            return True
        if isinstance(op, PointwiseOp) and op.SPEC.smooth_above_zero is not None:
            x = op.operands[op.SPEC.smooth_above_zero]
            if op.SPEC.finite_at_zero:
                return self.not_negative(x)
            return "zero" in op.properties or self.positive(x)
        return op.has_trait(Total) or isinstance(op, ReduceOp | SoftmaxOp | CountOp)

    def smooth(self, op: Operation) -> bool:
        """Finite operands give a finite result with a finite derivative: of every Total op, of exp
        below the greatest, and of others on operands that are away from 0."""
        if op.name == "inter.exp" and _below_greatest(op.operands[0]):
            return True
        if isinstance(op, PointwiseOp) and op.SPEC.smooth_above_zero is not None:
            x = op.operands[op.SPEC.smooth_above_zero]
            return self.positive(x) and all(self.finite(y) for y in _values(op))
        return op.has_trait(Total)

    def spares_rows(self, op: ValueOp, differentiated: set[SSAValue]) -> bool:
        """Whether rows that nobody reads may do without `op`. A slope that is infinite there makes
        their gradient of 0 no number."""
        if op.results[0] not in differentiated:
            return True
        return self.smooth(op) and self.finite_units(op)

    def _is_guarded(self, op: Operation) -> bool:
        """Whether a choice takes a quotient only where its divisor, how often the condition holds,
        is 1 or more: a mean over the rows that count."""
        condition, quotient, other = op.operands
        owner = quotient.owner
        if not isinstance(owner, Operation) or owner.name != "inter.div":
            return False
        number, divisor = owner.operands
        return (
            self.finite(number)
            and self.finite(other)
            and rows(divisor).dom.set == UNIT
            and _counted(divisor) is condition
        )

    def _is_kept_low(self, op: Operation) -> bool:
        """Whether a choice takes exp(x), or finite multiples of it, only where x is at most a
        constant: the slope of elu."""
        condition, above, below = op.operands
        greater = _unshaped(condition).owner
        if not isinstance(greater, Operation) or greater.name not in ("inter.gt", "inter.ge"):
            return False
        x, most = greater.operands
        bounded = isinstance(_unshaped(most).owner, ConstOp) and self.finite(most)
        return (
            bounded
            and self.finite(condition)
            and self.finite(above)
            and self._finite_times_exp(below, x)
        )

    def _finite_times_exp(self, v: SSAValue, x: SSAValue) -> bool:
        """Whether `v` is a product of finite factors and exponentials of `x`."""
        op = _unshaped(v).owner
        if isinstance(op, Operation) and op.name == "inter.exp":
            return op.operands[0] is x
        if isinstance(op, Operation) and op.name == "inter.mul":
            return all(self.finite(y) or self._finite_times_exp(y, x) for y in op.operands)
        return False

    def _is_clamped(self, op: Operation) -> bool:
        """Whether a choice is the greater of a value and a positive one: `x < c ? c : x`."""
        condition, low, x = op.operands
        less = condition.owner
        return (
            isinstance(less, Operation)
            and less.name == "inter.lt"
            and tuple(less.operands) == (x, low)
            and self.positive(low)
        )

    def _not_negative(self, op: Operation) -> bool:
        if isinstance(op, ConstOp):
            return op.number >= 0
        if isinstance(op, CountOp | SoftmaxOp) or self.positive(op.results[0]):
            return True
        if _is_square(op):
            return True
        if isinstance(op, PointwiseOp):
            return self._sign_of(op)
        if op.name in _MOVES or isinstance(op, ReduceOp | RowReduceOp | DropoutOp):
            return all(self.not_negative(x) for x in _values(op))
        return False

    def _sign_of(self, op: PointwiseOp) -> bool:
        """What its record says of the sign of a pointwise op's result."""
        if op.SPEC.sign in ("any", "never negative"):
            return op.SPEC.sign == "never negative"
        known = [self.not_negative(x) for x in op.operands]
        return any(known) if op.SPEC.sign == "kept by one" else all(known)

    def _positive(self, op: Operation) -> bool:
        if isinstance(op, ConstOp):
            return op.number > 0
        if op.name == "inter.maximum":
            return any(self.positive(x) for x in op.operands)
        if op.name == "inter.add":
            a, b = op.operands
            return (self.positive(a) and self.not_negative(b)) or (
                self.positive(b) and self.not_negative(a)
            )
        if op.name in _MOVES or op.name in ("inter.minimum", "inter.mul", "inter.sqrt"):
            return all(self.positive(x) for x in _values(op))
        if op.name == "inter.where":
            return self._is_clamped(op) or all(self.positive(x) for x in op.operands[1:])
        if isinstance(op, RowReduceOp) and op.kind.data == "sum":
            return _has_greatest(op)
        return False


def _is_square(op: Operation) -> bool:
    """Whether an op is a square, or a sum of squares."""
    if isinstance(op, ContractOp):
        left, right, _ = op.letters()
        return left == right and op.a is op.b
    return op.name == "inter.mul" and op.operands[0] is op.operands[1]


def _below_greatest(v: SSAValue) -> bool:
    """Whether `v` is a value less the greatest of its group, or of its row: 0 or less, as in
    softmax."""
    difference = v.owner
    if not isinstance(difference, Operation) or difference.name != "inter.sub":
        return False
    x, most = difference.operands
    over, read = rows(difference.results[0]).dom, most.owner
    if isinstance(read, AtOp):
        return over.set == set_name(read.set) and _bounds(read.x, x, over, read.path.data)
    return _greatest_of_row(most, x) is not None or _bounds(most, x, over, None)


def _bounds(most: SSAValue, x: SSAValue, over: Dom, path: str | None) -> bool:
    """Whether a value of groups, read through a map or not, is at least what `x` is on each row of
    its group: the maximum, the greater of that and another one, or a choice of such. Where a group
    has rows is asked by their count (split-unions)."""
    op = most.owner
    if isinstance(op, ReduceOp):
        return op.x is x and op.kind.data == "max" and _groups(op, over, path)
    if not isinstance(op, PointwiseOp):
        return False
    if op.SPEC.name == "maximum":
        return any(_bounds(y, x, over, path) for y in op.operands)
    if op.SPEC.name != "where":
        return False
    condition, some, none = op.operands
    has_rows = _is_count_above_zero(condition, over, path)
    return _bounds(some, x, over, path) and (has_rows or _bounds(none, x, over, path))


def _groups(op: OverAlong, over: Dom, path: str | None) -> bool:
    """Whether an op makes groups of these rows, by this map, or by none or several."""
    own = len(op.along_keys) != 1 if path is None else op.along_keys == (path,)
    return own and op.over == over


def _is_count_above_zero(v: SSAValue, over: Dom, path: str | None) -> bool:
    op = _unshaped(v).owner
    if not isinstance(op, PointwiseOp) or op.SPEC.name != "gt":
        return False
    count, zero = (_unshaped(x).owner for x in op.operands)
    counts = isinstance(count, CountOp) and _groups(count, over, path)
    return counts and isinstance(zero, ConstOp) and zero.number == 0


def _unshaped(v: SSAValue) -> SSAValue:
    """What a value is, dimensions aside."""
    while isinstance(v.owner, Operation) and v.owner.name in ("inter.reshape", "inter.broadcast"):
        v = v.owner.operands[0]
    return v


def _greatest_of_row(most: SSAValue, x: SSAValue) -> RowReduceOp | None:
    """The maximum over dimensions of the row `x` that `most` is, with dimensions of 1 in their
    place, of which those in front need not be there."""
    dims = _without_front(rows(most).dims)
    while isinstance(most.owner, Operation) and most.owner.name in ("inter.stop", "inter.reshape"):
        most = most.owner.operands[0]
    op = most.owner
    if not isinstance(op, RowReduceOp) or op.kind.data != "max" or op.x is not x:
        return None
    kept = tuple(1 if i in op.axes else n for i, n in enumerate(rows(x).dims))
    return op if dims == _without_front(kept) else None


def _without_front(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions without those of 1 in front, which broadcasting adds."""
    return tuple(dropwhile(lambda n: n == 1, dims))


def _has_greatest(op: RowReduceOp) -> bool:
    """Whether a sum over dimensions of exp is 1 or more, as one of its terms is exp(0)."""
    exp = op.x.owner
    if not isinstance(exp, Operation) or exp.name != "inter.exp":
        return False
    difference = exp.operands[0].owner
    if not isinstance(difference, Operation) or difference.name != "inter.sub":
        return False
    found = _greatest_of_row(difference.operands[1], difference.operands[0])
    return found is not None and set(found.axes) <= set(op.axes)


def _counted(v: SSAValue) -> SSAValue | None:
    """The condition of which `v` is how often it holds on all rows of a set."""
    casts = ("inter.cast", "inter.reshape")
    while isinstance(v.owner, Operation) and v.owner.name in casts:
        v = v.owner.operands[0]
    op = v.owner
    if not isinstance(op, ReduceOp) or op.kind.data != "sum" or op.along_keys:
        return None
    cast = op.x.owner
    return cast.x if isinstance(cast, CastOp) else None


def _read_by(v: SSAValue) -> list[SSAValue]:
    return _values(v.owner) if isinstance(v.owner, Operation) else []


def _values(op: Operation) -> list[SSAValue]:
    """The operands that are rows, a random key aside."""
    out = [x for x in op.operands if isinstance(x.type, RowsType)]
    return out[:1] if op.name == "inter.dropout" else out
