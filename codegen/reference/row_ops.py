"""C for ops on rows: a loop over the numbers of the result, or over those that are summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra import rows
from ...dialects.intra.syntax import length, row_dims
from ..common.c_types import I1
from ..common.scalars import (
    START,
    combined,
    const_value,
    ctype_of,
    number,
    scalar,
    start_text,
    strides,
)

if TYPE_CHECKING:
    from .nest_code import NestCode

Element = Callable[[str], str]
"""One number of a row, given its offset."""


def offset(letters: Sequence[str], steps: Sequence[int], start: int = 0) -> str:
    """Where the number at some indices lies."""
    pairs = [(d, s) for d, s in zip(letters, steps, strict=True) if d and s]
    terms = [d if s == 1 else f"{d} * {s}" for d, s in pairs]
    return " + ".join([str(start)] * (start > 0) + terms) or "0"


def dense(dims: tuple[int, ...]) -> list[int]:
    """Strides of a row in order; 0 for a dimension of 1."""
    return strides(dims, dims)


def indices(dims: Sequence[int]) -> list[str]:
    """A loop variable for each dimension, none for those of 1."""
    names = [f"k{d}" for d in range(len(dims))] if len(dims) > 1 else ["f"]
    return [d if n > 1 else "" for d, n in zip(names, dims, strict=False)]


def emit(code: NestCode, op: Operation) -> None:
    """Print an op that computes a row from rows.

    Raises:
        PassFailedException: there is no C for the op.
    """
    match op:
        case rows.ReshapeOp():
            code.text[op.result] = code.text[op.x]
        case rows.ConstOp():
            value = number(const_value(op), ctype_of(op.result))
            each(code, op.result, [], lambda _, at: value)
        case rows.ApplyOp():
            fn, c, parameters = op.fn.data, ctype_of(op.xs[-1]), op.parameters()
            each(code, op.result, op.xs, lambda xs, at: scalar(fn, xs, c, parameters))
        case rows.CastOp():
            c = ctype_of(op.result)
            change = "{} != 0" if c is I1 else f"({c.name}){{}}"
            each(code, op.result, [op.x], lambda xs, at: change.format(*xs))
        case rows.BroadcastOp():
            each(code, op.result, [op.x], lambda xs, at: xs[0])
        case rows.DropoutOp():
            dropout(code, op)
        case rows.TransposeOp():
            steps = dense(row_dims(op.x.type))
            moved(code, op.result, op.x, [steps[p.data] for p in op.perm])
        case rows.SliceOp():
            steps, d = dense(row_dims(op.x.type)), op.dim.data
            start, steps[d] = steps[d] * op.lo.data, steps[d] * op.step.data
            moved(code, op.result, op.x, steps, start)
        case rows.ConcatOp():
            concat(code, op)
        case rows.FoldOp():
            fold(code, op)
        case rows.DotOp():
            code.declare(op.result)
            clear(code, op.result)
            y, a, b = (code.element(v) for v in (op.result, op.a, op.b))
            add_products(code, op.spec.data, op.sizes(), y, a, b)
        case _:
            raise PassFailedException(f"{op.name} has no spelling in plain C")


def each(
    code: NestCode,
    result: SSAValue,
    xs: Sequence[SSAValue],
    text: Callable[[list[str], str], str],
) -> None:
    """Every number of a row from those of others at its place, and from the place itself."""
    dims, shapes = row_dims(result.type), [row_dims(x.type) for x in xs]
    if all(length(x) in (1, length(result)) for x in xs):  # one loop over all
        dims, shapes = (length(result),), [(length(x),) for x in xs]
    at = indices(dims)
    read = [code.element(x)(offset(at, strides(s, dims))) for x, s in zip(xs, shapes, strict=True)]
    place = offset(at, dense(dims))
    code.declare(result)
    code.loop(dims, at, f"{code.element(result)(place)} = {text(read, place)};")


def dropout(code: NestCode, op: rows.DropoutOp) -> None:
    c, p = ctype_of(op.result), float(op.p.value.data)
    key = f"{code.text[op.row]}, {op.site.value.data}, {code.text[op.key]}, {p!r}"
    place = None if op.column is None else code.text[op.column]
    each(
        code,
        op.result,
        [op.x],
        lambda xs, at: f"dropout{c.suffix}({xs[0]}, {place or at}, {key})",
    )


def moved(
    code: NestCode, result: SSAValue, x: SSAValue, steps: Sequence[int], start: int = 0
) -> None:
    """The numbers of a row that lie `steps` apart."""
    dims = row_dims(result.type)
    at = indices(dims)
    code.declare(result)
    to, source = offset(at, dense(dims)), offset(at, steps, start)
    code.loop(dims, at, f"{code.element(result)(to)} = {code.element(x)(source)};")


def concat(code: NestCode, op: rows.ConcatOp) -> None:
    code.declare(op.result)
    steps = dense(row_dims(op.result.type))
    start = 0
    for x in op.xs:
        dims = row_dims(x.type)
        at = indices(dims)
        to = offset(at, steps, start)
        source = code.element(x)(offset(at, dense(dims)))
        code.loop(dims, at, f"{code.element(op.result)(to)} = {source};")
        start += dims[op.dim.data] * steps[op.dim.data]


def clear(code: NestCode, v: SSAValue, kind: str = "sum") -> None:
    """What a reduction begins with."""
    start = start_text(START[kind], ctype_of(v))
    code.loop([length(v)], ["f"], f"{code.element(v)('f')} = {start};")


def fold(code: NestCode, op: rows.FoldOp) -> None:
    dims, kind = row_dims(op.x.type), op.kind.data
    gone = {d.data for d in op.dims}
    steps = iter(dense(row_dims(op.result.type)))
    into = [0 if d in gone else next(steps) for d in range(len(dims))]
    at = indices(dims)
    code.declare(op.result)
    clear(code, op.result, kind)
    acc = code.element(op.result)(offset(at, into))
    x = code.element(op.x)(offset(at, dense(dims)))
    code.loop(dims, at, f"{acc} = {combined(kind, acc, x, ctype_of(op.result))};")


def add_products(
    code: NestCode, spec: str, sizes: dict[str, int], y: Element, a: Element, b: Element
) -> None:
    """An einsum of two rows, added to a third; the letters are the loop variables."""
    terms, out = spec.split("->")
    first, second = terms.split(",")

    def at(letters: str) -> str:
        return offset([f"i_{x}" for x in letters], dense(tuple(sizes[x] for x in letters)))

    order = [*out, *(x for x in dict.fromkeys(first + second) if x not in out)]
    product = f"{a(at(first))} * {b(at(second))}"
    code.loop([sizes[x] for x in order], [f"i_{x}" for x in order], f"{y(at(out))} += {product};")
