"""C for sums, maxima and dot products over neighbouring numbers of a row: vector by vector, then
across the lanes of one vector, in an order that depends on the widths alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ..dialects.intra import rows
from ..dialects.intra.syntax import row_dims
from .array_code import result
from .c_types import F32, F64, CType, Piece, pieces
from .row_values import Registers, combine, ctype_of

if TYPE_CHECKING:
    from .row_code import RowCode

Read = Callable[[SSAValue, Piece], str]


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
        ins, into = op.spec.data.split("->")
        a, b = ins.split(",")
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

    def read(x: SSAValue, p: Piece) -> str:
        return load(c, p, f"{address[x]} + m * {inner} + {p.offset}")

    with code.out.block(f"for (int m = 0; m < {count}; ++m)"):
        code.out.line(f"{out}[m] = {across(code, op, c, inner, read)};")


def reader(code: RowCode, c: CType) -> Read:
    """A piece of a row, from registers where it lies there."""

    def read(x: SSAValue, p: Piece) -> str:
        place = code.place[x]
        if isinstance(place, Registers) and p in place.names:
            return place.names[p]
        return load(c, p, f"{code.memory(x)} + {p.offset}")

    return read


def load(c: CType, p: Piece, address: str) -> str:
    return f"({address})[0]" if p.width == 1 else f"LOAD({p.type(c)}, {address})"


def across(code: RowCode, op: rows.FoldOp | rows.DotOp, c: CType, n: int, read: Read) -> str:
    """The C expression of one result; pieces of one width are combined before their lanes are."""
    kind = op.kind.data if isinstance(op, rows.FoldOp) else "sum"
    lanes = code.lanes_bytes // c.bytes
    total = ""
    of_width: dict[int, list[Piece]] = {}
    for p in pieces(n, lanes):
        of_width.setdefault(p.width, []).append(p)
    for same in of_width.values():
        name = code.out.name("v")
        t = same[0].type(c)
        for k, p in enumerate(same):
            x = " * ".join(read(v, p) for v in op.operands)
            if k == 0:
                code.out.line(f"{t} {name} = {x};")
            else:
                code.out.line(f"{name} = {combine(kind, name, x, c, p)};")
        one = name if same[0].width == 1 else f"fold_{kind}_{t}({name})"
        total = combine(kind, total, one, c) if total else one
    return total
