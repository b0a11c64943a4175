"""The pointwise vocabulary in C, for scalars and for vector pieces.

What a function is in C stands in its record (dialects/pointwise); here is what differs between
single numbers and vectors, and between types. Exponentials and their kin are those of
vector_math.h, which give a number the same bits in a scalar and in a lane, as does `pow` of f32
(vector_power.h). That of f64, `sin` and `cos` go lane by lane through C's library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...dialects.pointwise import POINTWISE
from ...dialects.pointwise.spelling import Spelling
from ..common.c_types import F32, CType, Piece

Params = Mapping[str, float]


def number(x: float, c: CType) -> str:
    """A literal that reads back exactly."""
    if c.suffix == "i":
        return str(int(x))
    if x != x:
        return "NAN"
    if x in (float("inf"), float("-inf")):
        return "INFINITY" if x > 0 else "(-INFINITY)"
    return f"{float(x)!r}{c.suffix}" if c.suffix else repr(float(x))


def math(fn: str, x: str, c: CType, width: int = 1) -> str:
    """A call of vector_math.h on a piece of `width` numbers of a floating type; `x` are the
    arguments."""
    assert c.vector is not None, c
    lanes = c.vector.removesuffix("x") if width == 1 else f"{c.vector}{width}"
    return f"{fn}_{lanes}({x})"


@dataclass(frozen=True)
class _Scalar(Spelling):
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

    def math(self, fn: str, *xs: str) -> str:
        return math(fn, ", ".join(xs), self.c)

    def each(self, fn: str, *xs: str) -> str:
        return f"{fn}{self.c.suffix}({', '.join(xs)})"

    def both(self, a: str, b: str) -> str:
        return f"({a} && {b})"

    def either(self, a: str, b: str) -> str:
        return f"({a} || {b})"

    def negated(self, a: str) -> str:
        return f"(!{a})"


@dataclass(frozen=True)
class _Vector(_Scalar):
    """Vector pieces; truth values are integer vectors of the operands' lane width."""

    piece: Piece

    @property
    def is_scalar(self) -> bool:
        return False

    def number(self, x: float) -> str:
        t = self.piece.type(self.c)
        return f"SPLAT({t}, {number(x, self.c)})" if x else f"({t}){{0}}"

    def select(self, mask: str, yes: str, no: str) -> str:
        return f"SELECT({self.piece.type(self.c)}, {self.piece.mask(self.c)}, {mask}, {yes}, {no})"

    def math(self, fn: str, *xs: str) -> str:
        return math(fn, ", ".join(xs), self.c, self.piece.width)

    def each(self, fn: str, *xs: str) -> str:
        loop = "LANES" if len(xs) == 1 else "LANES2"
        return f"{loop}({self.piece.type(self.c)}, {', '.join(xs)}, {fn}{self.c.suffix})"

    def both(self, a: str, b: str) -> str:
        return f"({a} & {b})"

    def either(self, a: str, b: str) -> str:
        return f"({a} | {b})"

    def negated(self, a: str) -> str:
        return f"(~{a})"


def scalar(fn: str, xs: Sequence[str], c: CType, params: Params) -> str:
    """The C expression of `fn` on scalars; `c` is the type of the operands (of the branches for
    `where`).
    """
    return POINTWISE[fn].c(_Scalar(tuple(xs), params, c))


def vector(fn: str, xs: Sequence[str], c: CType, piece: Piece, params: Params) -> str:
    """The same on vector pieces; masks are integer vectors of the operands' lane width."""
    if piece.width == 1:
        return scalar(fn, xs, c, params)
    return POINTWISE[fn].c(_Vector(tuple(xs), params, c, piece))
