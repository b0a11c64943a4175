"""Whether cotangents are finite: a slope may be infinite at numbers that have finite functions.

What leaves a sum, or is done behind it, gets its gradient from the groups of the sum and no more
from their members. At an empty group the gradient is 0 times the cotangent there: no number where
that is infinite, as behind the root of a sum over nothing, or a mean. In the order of the program
nobody reads that cotangent.
"""

from __future__ import annotations

from collections.abc import Container

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from ...dialects.inter.base import ValueOp
from ...dialects.inter.pointwise import PointwiseOp
from ...dialects.inter.reduce import CountOp, ReduceOp
from ...dialects.inter.types import RowsType, is_float, rows, set_name
from ...dialects.inter.values import CastOp, SizeOp, StopOp
from .value_facts import Facts

_GROWING = frozenset({"inter.exp", "inter.exp2", "inter.expm1"})


class Slopes(Facts):
    """The facts of numbers that do not overflow, and of sets that have rows, and some for which a
    condition holds, but for `empty`, the set that a sum is over. (What a set without rows makes
    infinite comes back through its rows.)"""

    def __init__(self, empty: str) -> None:
        super().__init__()
        self.empty = empty

    def _finite(self, op: Operation) -> bool:
        grows = op.name in _GROWING and self.finite(op.operands[0])
        return grows or super()._finite(op)

    def _positive(self, op: Operation) -> bool:
        counted = _counted(op)
        return counted != self.empty if counted is not None else super()._positive(op)

    def finite_cotangent(self, v: SSAValue, behind: Container[SSAValue]) -> bool:
        """Whether the cotangent of `v` is finite where those of the function's results are, which
        are made of the values `behind` them."""
        todo, seen = [v], {v}
        while todo:
            for use in todo.pop().uses:
                op = use.operation
                if not isinstance(op, ValueOp) or isinstance(op, StopOp):
                    continue
                y = op.results[0]
                if y in seen or y not in behind or not is_float(op.type.elem):
                    continue
                if not self._is_smooth(op):
                    return False
                seen.add(y)
                todo.append(y)
        return True

    def _is_smooth(self, op: ValueOp) -> bool:
        if op.name in _GROWING:
            return True
        if not self.smooth(op):
            return False
        several = isinstance(op, PointwiseOp) or len(op.operands) > 1
        return not several or all(self.finite(x) for x in op.operands if _is_of_floats(x))


def _counted(op: Operation) -> str | None:
    """The set of which an op gives how many rows it has, or how many of them a condition holds
    for."""
    while isinstance(op, CastOp) and isinstance(op.x.owner, Operation):
        op = op.x.owner
    if isinstance(op, SizeOp):
        return set_name(op.set)
    if not isinstance(op, CountOp | ReduceOp) or op.along_keys:
        return None
    if isinstance(op, CountOp):
        return op.over.set
    holds = op.x.owner
    of_truth = isinstance(holds, CastOp) and rows(holds.x).elem == i1
    return op.over.set if of_truth and op.kind.data == "sum" else None


def _is_of_floats(x: SSAValue) -> bool:
    return isinstance(x.type, RowsType) and is_float(rows(x).elem)
