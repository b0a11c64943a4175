"""Numbers of rows that are computed where they are read: what is pointwise, and what moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra import rows
from ...dialects.intra.remote import is_remote, totals_of
from ...dialects.intra.syntax import length, row_dims
from ..common.c_types import I1, CType
from ..common.phase_host import places_name
from ..common.scalars import combined, const_value, ctype_of, number, scalar, strides
from .indices import Index, Untiled, coordinates, place

if TYPE_CHECKING:
    from .row_code import RowCode


AHEAD = 4
"""Ranks whose numbers are on their way at once, while they are added up."""


def compute(code: RowCode, op: Operation, at: Index, tile: int) -> list[str]:
    """The numbers of an op's row at an index.

    Raises:
        NeedsMemory, Untiled: they cannot be had so.
        PassFailedException: there is no CUDA C++ for the op.
    """
    match op:
        case rows.LoadOp():
            return load(code, op, at, tile)
        case rows.AwaitOp(issue=issue):  # no slot has it
            c, n, row = ctype_of(op.result), length(op.result), code.text[issue.row]
            return code.read(c, far_row(code, issue.buffer, row, op.result), n, at, tile)
        case rows.ConstOp():
            return [number(const_value(op), ctype_of(op.result))] * tile
        case rows.ReshapeOp():
            return code.numbers(op.x, at, tile)
        case rows.BroadcastOp():
            return operand(code, op.x, op.result, at, tile)
        case rows.ApplyOp():
            return apply(code, op, at, tile)
        case rows.CastOp():
            xs, c = code.numbers(op.x, at, tile), ctype_of(op.result)
            change = "({} != 0)" if c is I1 else f"(({c.name}){{}})"
            return [change.format(x) for x in xs]
        case rows.DropoutOp():
            return dropout(code, op, at, tile)
        case rows.TransposeOp():
            steps = dense(row_dims(op.x.type))
            return moved(code, op.x, op.result, at, tile, [steps[p.data] for p in op.perm])
        case rows.SliceOp():
            steps, d = dense(row_dims(op.x.type)), op.dim.data
            start = steps[d] * op.lo.data
            steps[d] *= op.step.data
            return moved(code, op.x, op.result, at, tile, steps, start)
        case rows.ConcatOp():
            return concat(code, op, at, tile)
        case rows.DotOp():
            return product(code, op, at, tile)
        case _:
            raise PassFailedException(f"{op.name} has no spelling in CUDA C++")


def dense(dims: tuple[int, ...]) -> list[int]:
    """Strides of a row in order; 0 for a dimension of 1."""
    return strides(dims, dims)


def operand(code: RowCode, x: SSAValue, result: SSAValue, at: Index, tile: int) -> list[str]:
    """The numbers of an operand that broadcasts to the result."""
    if length(x) == 1:
        return code.numbers(x, Index.at(0), 1) * tile
    if length(x) == length(result):
        return code.numbers(x, at, tile)
    dims = row_dims(result.type)
    steps = strides(row_dims(x.type), dims)
    return code.numbers(x, place(coordinates(at, dims, tile), steps), tile)


def apply(code: RowCode, op: rows.ApplyOp, at: Index, tile: int) -> list[str]:
    columns = [operand(code, x, op.result, at, tile) for x in op.xs]
    fn, c, parameters = op.fn.data, ctype_of(op.xs[-1]), op.parameters()
    out: list[str] = []
    for xs in zip(*columns, strict=True):
        known = code.bind(ctype_of(op.result), scalar(fn, list(xs), c, parameters))
        out.append(known)
        if len(set(map(tuple, zip(*columns, strict=True)))) == 1:  # the same for all
            return [known] * tile
    return out


def load(code: RowCode, op: rows.LoadOp, at: Index, tile: int) -> list[str]:
    """Numbers of a row of a buffer, or of another row where there is none."""
    c, n, row = ctype_of(op.result), length(op.result), code.text[op.row]

    def there() -> list[str]:
        name = code.text[op.buffer]
        if (totals := totals_of(op.buffer)) is not None:
            return over_ranks(code, op, totals.kind.data, at, tile)
        if is_remote(op.buffer):
            return code.read(c, far_row(code, op.buffer, row, op.result), n, at, tile)
        return code.read(c, name if row == "0" else f"{name} + {row} * {n}", n, at, tile)

    if op.otherwise is None:
        return there()
    names = declared(code, c, tile)
    with code.scope(f"if ({row} < 0)"):
        assign(code, names, code.numbers(op.otherwise, at, tile))
    with code.scope("else"):
        assign(code, names, there())
    return names


def over_ranks(code: RowCode, op: rows.LoadOp, kind: str, at: Index, tile: int) -> list[str]:
    """Numbers of a row that all ranks have, reduced in their order."""
    c, n, row = ctype_of(op.result), length(op.result), code.text[op.row]

    def of(rank: str) -> list[str]:
        start = f"(const {c.memory} *){code.text[op.buffer]}[{rank}] + {row} * {n}"
        return code.read(c, start, n, at, tile)

    names = declared(code, c, tile)
    with code.scope(""):
        assign(code, names, of("0"))
    code.out.line(f"#pragma unroll {AHEAD}")
    with code.scope("for (int64_t rank = 1; rank < ranks; ++rank)"):
        xs = of("rank")
        assign(code, names, [combined(kind, a, x, c) for a, x in zip(names, xs, strict=True)])
    return names


def far_row(code: RowCode, buffer: SSAValue, row: str, value: SSAValue) -> str:
    """A variable with the address of another rank's row."""
    kind, name = ctype_of(value).memory, code.text[buffer]
    at = code.out.name("far")
    found = f"peer_row<{kind}>({name}, {places_name(name)}, {row}, {length(value)})"
    code.out.line(f"const {kind} *const {at} = {found};")
    return at


def declared(code: RowCode, c: CType, count: int) -> list[str]:
    """Variables that are assigned afterwards."""
    names = [code.out.name("v") for _ in range(count)]
    code.out.line(f"{c.name} {', '.join(names)};")
    return names


def assign(code: RowCode, names: list[str], xs: list[str]) -> None:
    for name, x in zip(names, xs, strict=True):
        code.out.line(f"{name} = {x};")


def dropout(code: RowCode, op: rows.DropoutOp, at: Index, tile: int) -> list[str]:
    """One block of four words decides over four neighbouring columns: a tile makes it once."""
    c, p = ctype_of(op.result), f"{float(op.p.value.data)!r}"
    key = f"{code.index(op.row)}, {op.site.value.data}, {code.index(op.key)}"
    xs = code.numbers(op.x, at, tile)
    if op.column is not None or tile not in (2, 4) or at.step != 1 or at.multiple % tile:
        columns = [at.plus(Index.at(j * at.step)).text for j in range(tile)]
        if op.column is not None:
            columns = [code.index(op.column)] * tile
        names = [f"dropout{c.suffix}({{}}, {column}, {key}, {p})" for column in columns]
    else:
        words = code.out.name("w")
        code.out.line(
            f"const PhiloxWords {words} = philox_words((uint32_t)({at.text} / 4), {key});"
        )
        found = [f"{words}.w{j}" for j in range(4)]
        if tile == 2 and at.multiple % 4:
            found = [f"({at.text} % 4 ? {words}.w{j + 2} : {words}.w{j})" for j in range(2)]
        names = [f"dropout_by{c.suffix}({{}}, {word}, {p})" for word in found[:tile]]
    return [code.bind(c, text.format(x)) for text, x in zip(names, xs, strict=True)]


def moved(
    code: RowCode,
    x: SSAValue,
    result: SSAValue,
    at: Index,
    tile: int,
    steps: list[int],
    start: int = 0,
) -> list[str]:
    """The numbers of a row that lie `steps` apart."""
    where = place(coordinates(at, row_dims(result.type), tile), steps)
    return code.numbers(x, where.plus(Index.at(start)), tile)


def concat(code: RowCode, op: rows.ConcatOp, at: Index, tile: int) -> list[str]:
    """Numbers of one of several rows, which the index says."""
    dims, d, c = row_dims(op.result.type), op.dim.data, ctype_of(op.result)
    where = coordinates(at, dims, tile)
    names = declared(code, c, tile)
    start = 0
    for k, x in enumerate(op.xs):
        part = row_dims(x.type)
        end = start + part[d]
        if where[d].step and (start % tile or end % tile):
            raise Untiled
        last = k == len(op.xs) - 1
        head = "" if last else f"if ({where[d].text} < {end})"
        with code.scope(f"{'else ' * (k > 0)}{head}".strip()):
            inner = list(where)
            own = where[d].plus(Index.at(-start)) if start else where[d]
            inner[d] = Index(own.text, where[d].step, own.multiple, part[d])
            assign(code, names, code.numbers(x, place(inner, dense(part)), tile))
        start = end
    return names


def product(code: RowCode, op: rows.DotOp, at: Index, tile: int) -> list[str]:
    """Numbers of a product of two rows in which nothing is summed."""
    a, b, out = op.letters()
    n = op.sizes()
    where = dict(zip(out, coordinates(at, row_dims(op.result.type), tile), strict=True))
    columns: list[list[str]] = []
    for x, letters in ((op.a, a), (op.b, b)):
        steps = dense(tuple(n[c] for c in letters))
        columns.append(
            code.numbers(x, place([where.get(c, Index.at(0)) for c in letters], steps), tile)
        )
    c = ctype_of(op.result)
    return [code.bind(c, f"{x} * {y}") for x, y in zip(*columns, strict=True)]
