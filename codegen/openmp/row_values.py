"""How a row lives in C: a scalar, a list of vector pieces in registers, or numbers in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.intra import rows
from ...dialects.intra.syntax import length, row_dims
from ...dialects.pointwise.folds import FOLDS
from ..common.c_types import F32, F64, I1, CType, Piece
from ..common.scalars import ctype_of, is_cleared, scalar, start_text
from .c_functions import math as called
from .c_functions import vector


@dataclass
class Scalar:
    """A C expression without side effects: a row of one number, or an index."""

    text: str


@dataclass
class Registers:
    """One C variable for each piece of the row. Truth values are as wide as the numbers of `lanes`,
    beside which they were made."""

    names: dict[Piece, str]
    lanes: CType | None = None


@dataclass
class Memory:
    """The address of the row's first number; the numbers are contiguous. In `padded` memory the
    last vector is read and written as a whole, so that what was stored is read again at once.
    """

    address: str
    padded: bool = False


Place = Scalar | Registers | Memory


def combine(kind: str, acc: str, x: str, c: CType, piece: Piece | None = None) -> str:
    """The C expression that adds `x` to an accumulator."""
    fn = FOLDS[kind].function
    if fn is None:
        return x
    if piece is None or piece.width == 1:
        return scalar(fn, [acc, x], c, {})
    return vector(fn, [acc, x], c, piece, {})


def factors(kind: str, v: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """The factors of a product of floats that goes into a sum, each as long as the product, one
    number, or of numbers that stand for several neighbours; None for whatever else is combined.
    """
    op = v.owner
    if kind != "sum" or not isinstance(op, rows.ApplyOp) or op.fn.data != "mul":
        return None
    a, b = op.xs
    into = row_dims(v.type)
    fit = all(length(x) == length(v) or repeats(row_dims(x.type), into) for x in (a, b))
    return (a, b) if fit and ctype_of(v) in (F32, F64) else None


def add_product(a: str, b: str, acc: str, c: CType, width: int = 1) -> str:
    """The C expression a * b + acc, rounded once where the machine can. Floats only."""
    return called("muladd", f"{a}, {b}, {acc}", c, width)


def load(c: CType, piece: Piece, address: str, padded: bool = False) -> str:
    """The C expression of a piece in memory."""
    if piece.width == 1:
        return f"({address})[0]"
    if piece.dead and not padded:
        return f"LOAD_SOME({piece.type(c)}, {piece.count}, {address})"
    return f"LOAD({piece.type(c)}, {address})"


def load_mask(c: CType, piece: Piece, address: str, padded: bool = False) -> str:
    """The same for truth values beside numbers of `c`."""
    if piece.width == 1:
        return f"({address})[0]"
    if piece.dead and not padded:
        return f"LOAD_SOME_MASK({piece.mask(c)}, u8x{piece.width}, {piece.count}, {address})"
    return f"LOAD_MASK({piece.mask(c)}, u8x{piece.width}, {address})"


def store(c: CType, piece: Piece, address: str, x: str, padded: bool = False) -> str:
    """The C statement that stores a piece, of numbers or of truth values."""
    if piece.width == 1:
        return f"({address})[0] = {x};"
    what, lanes = ("_MASK", f"u8x{piece.width}") if c is I1 else ("", piece.type(c))
    if piece.dead and not padded:
        return f"STORE_SOME{what}({lanes}, {piece.count}, {address}, {x});"
    return f"STORE{what}({lanes}, {address}, {x});"


def splat(piece: Piece, c: CType, value: float) -> str:
    """The C expression of a number in every lane."""
    if piece.width > 1 and is_cleared(value):
        return f"({piece.type(c)}){{0}}"
    return in_lanes(piece, c, start_text(value, c))


def in_lanes(piece: Piece, c: CType, text: str) -> str:
    """The C expression of what is one in every lane."""
    return text if piece.width == 1 else f"SPLAT({piece.type(c)}, {text})"


def spread_text(p: Piece, q: Piece, x: str, c: CType, times: int) -> str | None:
    """The C expression of a piece `p` in which each number of a row stands `times` times side by
    side, from `x`, the piece `q` of that row; None where it has not all of them. Lanes behind the
    end hold some number of the row."""
    lanes = [(p.offset + min(k, p.count - 1)) // times - q.offset for k in range(p.width)]
    if q.width == 1 or lanes[0] < 0 or lanes[-1] >= q.count or p.width > 4 * q.width:
        return None
    if p.width == 4 * q.width:
        twice = ", ".join(map(str, [*range(q.width)] * 2))
        x = f"SPREAD({c.vector}{2 * q.width}, {x}, {twice})"
    return f"SPREAD({p.type(c)}, {x}, {', '.join(map(str, lanes))})"


def keep(c: CType, piece: Piece, x: str, other: str) -> str:
    """The C expression of `x` in the lanes of a piece that hold numbers, of `other` in the rest."""
    if not piece.dead:
        return x
    t, m = piece.type(c), piece.mask(c)
    return f"SELECT({t}, {m}, FIRST({m}, {piece.width}, {piece.count}), {x}, {other})"


def cast_text(op: rows.CastOp, x: str) -> str:
    c = ctype_of(op.result)
    return f"({x} != 0)" if c is I1 else f"(({c.name}){x})"


def repeats(dims: tuple[int, ...], into: tuple[int, ...]) -> int | None:
    """How often each number of a row of shape `dims` stands side by side when it is broadcast to
    `into`: 8 for 4x1 into 4x8, 1 where nothing is repeated. None where whole runs are repeated.
    """
    aligned = (1,) * (len(into) - len(dims)) + dims
    k = len(into)
    while k and aligned[k - 1] == 1:
        k -= 1
    return math.prod(into[k:]) if aligned[:k] == into[:k] else None
