"""Ops that move the numbers of a row and compute nothing."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.irdl import operand_def, prop_def, var_operand_def

from ..assembly import op_definition
from .arithmetic import broadcast_dims
from .syntax import RowOp, need, need_row, one_element, row_dims


class ShapeOp(RowOp):
    """Moves the numbers of one row."""

    x = operand_def()

    def check(self, want: tuple[int, ...]) -> None:
        """Raises VerifyException unless the result has the shape `want` and the operand's type."""
        need_row(self.x.type, "the operand")
        have = row_dims(self.result.type)
        need(have == want, f"the result is a row of shape {want}, not {have}")
        one_element([self.x.type, self.result.type])


@op_definition
class ReshapeOp(ShapeOp):
    """The same numbers in another row shape."""

    name = "intra.reshape"

    def verify_(self) -> None:
        a, b = row_dims(self.x.type), row_dims(self.result.type)
        n = math.prod(a)
        need(n == math.prod(b), f"a row of {n} numbers cannot be reshaped to {b}")
        self.check(b)


@op_definition
class BroadcastOp(ShapeOp):
    """Repeat along new or size-1 dimensions, aligned right."""

    name = "intra.broadcast"

    def verify_(self) -> None:
        a, b = row_dims(self.x.type), row_dims(self.result.type)
        need(broadcast_dims([a, b]) == b, f"a row {a} does not broadcast to {b}")
        self.check(b)


@op_definition
class TransposeOp(ShapeOp):
    """Permute row dimensions."""

    name = "intra.transpose"
    perm = prop_def(ArrayAttr[IntAttr])

    def verify_(self) -> None:
        a = row_dims(self.x.type)
        perm = [p.data for p in self.perm]
        same = sorted(perm) == list(range(len(a)))
        need(same, f"{perm} is no permutation of {len(a)} dimensions")
        self.check(tuple(a[p] for p in perm))


@op_definition
class SliceOp(ShapeOp):
    """`[lo, hi)` of one row dimension with a step."""

    name = "intra.slice"
    dim = prop_def(IntAttr)
    lo = prop_def(IntAttr)
    hi = prop_def(IntAttr)
    step = prop_def(IntAttr)

    def verify_(self) -> None:
        a, dim = list(row_dims(self.x.type)), self.dim.data
        need(0 <= dim < len(a), f"dim {dim} is none of the {len(a)} row dimensions")
        lo, hi, step = self.lo.data, self.hi.data, self.step.data
        fits = 0 <= lo < hi <= a[dim] and step > 0
        need(fits, f"[{lo}, {hi}) by {step} is no slice of {a[dim]} numbers: 0 <= lo < hi <= size")
        a[dim] = len(range(lo, hi, step))
        self.check(tuple(a))


@op_definition
class ConcatOp(RowOp):
    """Rows side by side along one row dimension."""

    name = "intra.concat"
    xs = var_operand_def()
    dim = prop_def(IntAttr)

    def verify_(self) -> None:
        need(len(self.xs) > 0, "concat needs a row")
        shapes, dim = [row_dims(x.type) for x in self.xs], self.dim.data
        first = shapes[0]
        need(0 <= dim < len(first), f"dim {dim} is none of the {len(first)} row dimensions")
        rest = {(len(s), s[:dim], s[dim + 1 :]) for s in shapes}
        text = ", ".join(map(str, shapes))
        need(len(rest) == 1, f"rows {text} differ in another dimension than {dim}: reshape them")
        want = (*first[:dim], sum(s[dim] for s in shapes), *first[dim + 1 :])
        have = row_dims(self.result.type)
        need(have == want, f"the result is a row of shape {want}, not {have}")
        one_element([*(x.type for x in self.xs), self.result.type])
