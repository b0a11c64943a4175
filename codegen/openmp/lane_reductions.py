"""C for sums, maxima and dot products over neighbouring numbers of a row: vector by vector, then
across the lanes of one vector, in an order that depends on the widths alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ...dialects.intra import rows
from ...dialects.intra.syntax import row_dims
from ..common.c_types import F32, F64, CType, Piece
from ..common.scalars import START, ctype_of
from .memory_rows import result
from .row_values import Memory, Registers, add_product, combine, keep, load, splat

if TYPE_CHECKING:
    from .row_code import RowCode

Read = Callable[[SSAValue, Piece, str], str]
"""The C text of a piece of a row; the string is one more offset, " + q", of a loop."""
UNROLLED = 256
"""Vectors of a row that are combined in straight code; more are in a loop, in the same order."""


def runs(op: rows.FoldOp | rows.DotOp) -> tuple[int, int] | None:
    """(results, numbers for each), where each result is made of neighbouring floats; else None."""
    x = op.x if isinstance(op, rows.FoldOp) else op.a
    dims = row_dims(x.type)
    if ctype_of(x) not in (F32, F64):
        return None
    if isinstance(op, rows.FoldOp):
        kept = len(dims) - len(op.dims)
        if sorted(d.data for d in op.dims) != list(range(kept, len(dims))):
            return None
    else:
        a, b, into = op.letters()
        if a != b or not a.startswith(into):
            return None
        kept = len(into)
    inner = math.prod(dims[kept:])
    return (math.prod(dims[:kept]), inner) if inner > 1 else None


def emit(code: RowCode, op: rows.FoldOp | rows.DotOp, count: int, inner: int) -> None:
    """Print an op that `runs` accepts."""
    c = ctype_of(op.result)
    if count == 1:
        code.scalar(op.result, across(code, op, c, inner, reader(code, c)))
        return
    address = {x: code.memory(x) for x in op.operands}
    out = result(code, op.result)

    def read(x: SSAValue, p: Piece, further: str) -> str:
        return load(c, p, f"{address[x]} + m * {inner} + {p.offset}{further}")

    with code.out.block(f"for (int m = 0; m < {count}; ++m)"):
        code.out.line(f"{out}[m] = {across(code, op, c, inner, read)};")


def reader(code: RowCode, c: CType) -> Read:
    """A piece of a row, from registers where it lies there."""

    def read(x: SSAValue, p: Piece, further: str) -> str:
        place = code.place[x]
        if isinstance(place, Registers) and p in place.names and not further:
            return place.names[p]
        address, place = code.memory(x), code.place[x]
        padded = isinstance(place, Memory) and place.padded
        return load(c, p, f"{address} + {p.offset}{further}", padded)

    return read


def across(code: RowCode, op: rows.FoldOp | rows.DotOp, c: CType, n: int, read: Read) -> str:
    """The C expression of one result; pieces of one width are combined before their lanes are.
    Lanes behind the end of the row change nothing.
    """
    kind = op.kind.data if isinstance(op, rows.FoldOp) else "sum"
    lanes = code.vectors.lanes(c)
    whole = n // lanes if n // lanes > UNROLLED else 0
    of_width: dict[int, list[Piece]] = {lanes: [Piece(0, lanes)]} if whole else {}
    for p in code.vectors.pieces(n - whole * lanes, c, whole * lanes):
        of_width.setdefault(p.width, []).append(p)

    def term(p: Piece, further: str = "") -> str:
        return " * ".join(read(v, p, further) for v in op.operands)

    def added(acc: str, p: Piece, further: str = "") -> str:
        if isinstance(op, rows.DotOp):
            a, b = (read(v, p, further) for v in op.operands)
            return add_product(a, b, acc, c, p.width)
        return combine(kind, acc, term(p, further), c, p)

    total = ""
    for same in of_width.values():
        first, *more = same
        name, t = code.out.name("v"), first.type(c)
        code.out.line(f"{t} {name} = {keep(c, first, term(first), splat(first, c, START[kind]))};")
        for p in more:
            code.out.line(f"{name} = {keep(c, p, added(name, p), name)};")
        if whole and first.offset == 0:
            q = code.out.name("q")
            with code.out.block(f"for (int {q} = {lanes}; {q} < {whole * lanes}; {q} += {lanes})"):
                code.out.line(f"{name} = {added(name, first, f' + {q}')};")
        one = name if first.width == 1 else f"fold_{kind}_{t}({name})"
        total = combine(kind, total, one, c) if total else one
    return total
