"""C text of single numbers: literals, the pointwise vocabulary, and where reductions begin.

What a function is in C stands in its record (dialects/pointwise). Where C's library has none of the
name the record's text calls `exp_f32` and the like, which every target's header defines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import SSAValue

from ...dialects.intra import rows
from ...dialects.intra.bindings import MembersOp
from ...dialects.intra.syntax import element
from ...dialects.pointwise import POINTWISE
from ...dialects.pointwise.folds import FOLDS
from ...dialects.pointwise.spelling import Spelling
from .c_types import F32, CType, ctype

Params = Mapping[str, float]

START = {kind: fold.start for kind, fold in FOLDS.items()}


def number(x: float, c: CType) -> str:
    """A literal that reads back exactly."""
    if c.suffix == "i":
        return str(int(x))
    if x != x:
        return "NAN"
    if x in (float("inf"), float("-inf")):
        return "INFINITY" if x > 0 else "(-INFINITY)"
    return f"{float(x)!r}{c.suffix}" if c.suffix else repr(float(x))


def is_cleared(x: float) -> bool:
    """Whether all bits of a number are 0: those of -0.0 are not."""
    return x == 0 and math.copysign(1.0, x) > 0


def looked_up(table: SSAValue, name: str, at: str) -> str:
    """What a table has at a place. Rows that lie in the order of their groups are their own
    members: their table may be null."""
    if not isinstance(table.owner, MembersOp):
        return f"{name}[{at}]"
    return f"({name} ? (int64_t){name}[{at}] : {at})"


def start_text(value: float, c: CType) -> str:
    """`number`, and for integers the ends of their range in the place of infinities."""
    if c.suffix == "i" and value in (float("inf"), float("-inf")):
        return {4: "INT32", 8: "INT64", 1: "INT8"}[c.bytes] + ("_MAX" if value > 0 else "_MIN")
    return number(value, c)


@dataclass(frozen=True)
class Scalars(Spelling):
    """Single numbers of a type."""

    c: CType

    @property
    def is_integer(self) -> bool:
        return self.c.suffix == "i"

    @property
    def is_single(self) -> bool:
        return self.c is F32

    @property
    def is_scalar(self) -> bool:
        return True

    def number(self, x: float) -> str:
        return number(x, self.c)

    def wrapping(self, operator: str, a: str, b: str) -> str:
        t = self.c.name
        return f"(({t})((u{t}){a} {operator} (u{t}){b}))"

    def select(self, mask: str, yes: str, no: str) -> str:
        return f"({mask} ? {yes} : {no})"

    def above(self, a: str, b: str) -> str:
        return f"({a} > {b} ? {a} : {b})"

    def below(self, a: str, b: str) -> str:
        return f"({a} < {b} ? {a} : {b})"

    def math(self, fn: str, *xs: str) -> str:
        assert self.c.vector is not None, self.c
        return f"{fn}_{self.c.vector.removesuffix('x')}({', '.join(xs)})"

    def each(self, fn: str, *xs: str) -> str:
        return f"{fn}{self.c.suffix}({', '.join(xs)})"

    def both(self, a: str, b: str) -> str:
        return f"({a} && {b})"

    def either(self, a: str, b: str) -> str:
        return f"({a} || {b})"

    def negated(self, a: str) -> str:
        return f"(!{a})"


def scalar(fn: str, xs: Sequence[str], c: CType, params: Params) -> str:
    """The C expression of `fn` on scalars; `c` is the type of the operands (of the branches for
    `where`).
    """
    return POINTWISE[fn].c(Scalars(tuple(xs), params, c))


def combined(kind: str, acc: str, x: str, c: CType) -> str:
    """What a reduction is after one more number."""
    fn = FOLDS[kind].function
    return x if fn is None else scalar(fn, [acc, x], c, {})


def ctype_of(v: SSAValue) -> CType:
    """How the numbers of a row or buffer are spelled."""
    return ctype(element(v.type))


def const_value(op: rows.ConstOp) -> float | int:
    """The number that fills a row: of integers all digits, which a double has not beyond 2**53."""
    v = op.value
    assert isinstance(v, FloatAttr | IntegerAttr)
    return v.value.data


def strides(dims: tuple[int, ...], into: tuple[int, ...]) -> list[int]:
    """Stride of each dimension of `into` for a row `dims` broadcast to it (0 where it repeats)."""
    padded = (1,) * (len(into) - len(dims)) + dims
    out: list[int] = []
    step = 1
    for n in reversed(padded):
        out.append(step if n != 1 else 0)
        step *= n
    return out[::-1]
