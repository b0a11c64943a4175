"""The pointwise vocabulary in C, for vector pieces.

What a function is in C stands in its record (dialects/pointwise); here is what differs from single
numbers (codegen/common/scalars.py). Exponentials and their kin are those of
vector_math.h, which give a number the same bits in a scalar and in a lane, as does `pow` of f32
(vector_power.h). That of f64, `sin` and `cos` go lane by lane through C's library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.pointwise import POINTWISE
from ..common.c_types import CType, Piece
from ..common.scalars import Params, Scalars, is_cleared, number, scalar


def math(fn: str, x: str, c: CType, width: int = 1) -> str:
    """A call of vector_math.h on a piece of `width` numbers of a floating type; `x` are the
    arguments."""
    assert c.vector is not None, c
    lanes = c.vector.removesuffix("x") if width == 1 else f"{c.vector}{width}"
    return f"{fn}_{lanes}({x})"


@dataclass(frozen=True)
class _Vector(Scalars):
    """Vector pieces; truth values are integer vectors of the operands' lane width."""

    piece: Piece

    @property
    def is_scalar(self) -> bool:
        return False

    def number(self, x: float) -> str:
        t = self.piece.type(self.c)
        return f"({t}){{0}}" if is_cleared(x) else f"SPLAT({t}, {number(x, self.c)})"

    def select(self, mask: str, yes: str, no: str) -> str:
        return f"SELECT({self.piece.type(self.c)}, {self.piece.mask(self.c)}, {mask}, {yes}, {no})"

    def above(self, a: str, b: str) -> str:
        return f"above_{self.piece.type(self.c)}({a}, {b})"

    def below(self, a: str, b: str) -> str:
        return f"below_{self.piece.type(self.c)}({a}, {b})"

    def math(self, fn: str, *xs: str) -> str:
        return math(fn, ", ".join(xs), self.c, self.piece.width)

    def each(self, fn: str, *xs: str) -> str:
        loop, piece = "LANES" if len(xs) == 1 else "LANES2", self.piece
        return f"{loop}({piece.type(self.c)}, {piece.count}, {', '.join(xs)}, {fn}{self.c.suffix})"

    def both(self, a: str, b: str) -> str:
        return f"({a} & {b})"

    def either(self, a: str, b: str) -> str:
        return f"({a} | {b})"

    def negated(self, a: str) -> str:
        return f"(~{a})"


def vector(fn: str, xs: Sequence[str], c: CType, piece: Piece, params: Params) -> str:
    """The same on vector pieces; masks are integer vectors of the operands' lane width."""
    if piece.width == 1:
        return scalar(fn, xs, c, params)
    return POINTWISE[fn].c(_Vector(tuple(xs), params, c, piece))
