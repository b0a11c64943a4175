"""C for row ops that mix features: plain loops over numbers in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra import rows
from ...dialects.intra.syntax import length, row_dims
from ..common.c_types import F32, F64, I1
from ..common.scalars import START, ctype_of, scalar, start_text, strides
from .large_dots import SMALL_DOT, TINY_DOT, LoopOrder, team
from .row_values import Memory, Scalar, add_product, combine

if TYPE_CHECKING:
    from .row_code import RowCode


def loops(code: RowCode, dims: Sequence[int], letters: Sequence[str]) -> ExitStack:
    """Open one loop for each dimension."""
    stack = ExitStack()
    for n, d in zip(dims, letters, strict=True):
        stack.enter_context(code.out.block(f"for (int {d} = 0; {d} < {n}; ++{d})"))
    return stack


def offset(letters: Sequence[str], steps: Sequence[int]) -> str:
    terms = [d if s == 1 else f"{d} * {s}" for d, s in zip(letters, steps, strict=True) if s]
    return " + ".join(terms) or "0"


def dense(dims: Sequence[int]) -> list[int]:
    """Strides of a contiguous row."""
    return [math.prod(dims[i + 1 :]) for i in range(len(dims))]


def joined(dims: Sequence[int], steps: Sequence[int]) -> tuple[list[int], list[int]]:
    """As few dimensions as visit the same numbers in the same order: C compilers unroll short loops
    within each other, which takes them long."""
    found: list[tuple[int, int]] = []
    for n, step in zip(dims, steps, strict=True):
        if n == 1:
            continue
        if found and found[-1][1] == step * n:
            n *= found.pop()[0]
        found.append((n, step))
    return [n for n, _ in found], [step for _, step in found]


def names(rank: int) -> list[str]:
    return [f"i{k}" for k in range(rank)]


def read(code: RowCode, v: SSAValue, where: str) -> str:
    """One number of a row."""
    return code.text(v) if length(v) == 1 else f"{code.memory(v)}[{where}]"


def store(code: RowCode, op: rows.StoreOp | rows.TotalOp) -> None:
    """Write a row, or add it to a total."""
    if isinstance(op, rows.StoreOp):
        code.write(op.value, code.address(op.buffer, op.row))
        return
    total = code.text(op.buffer)
    c = ctype_of(op.value)
    with loops(code, [length(op.value)], ["i0"]):
        x = read(code, op.value, "i0")
        code.out.line(f"{total}[i0] = {combine(op.kind.data, f'{total}[i0]', x, c)};")


def emit(code: RowCode, op: Operation) -> None:
    """Print an op by loops; its result lies in memory (or is a scalar)."""
    match op:
        case rows.ApplyOp():
            apply(code, op)
        case rows.ConstOp():
            fill(code, op.result, code.numbers.const(op))
        case rows.CastOp():
            cast(code, op)
        case rows.BroadcastOp():
            dims = row_dims(op.result.type)
            copy(code, op.result, op.x, dims, strides(row_dims(op.x.type), dims))
        case rows.TransposeOp():
            steps = dense(row_dims(op.x.type))
            copy(code, op.result, op.x, row_dims(op.result.type), [steps[p.data] for p in op.perm])
        case rows.SliceOp():
            slice_(code, op)
        case rows.ConcatOp():
            concat(code, op)
        case rows.FoldOp():
            fold(code, op)
        case rows.DotOp():
            dot(code, op)
        case rows.MatmulOp():
            product(code, op)
        case rows.DropoutOp():
            dropout(code, op)
        case _:
            raise PassFailedException(f"{op.name} has no C spelling in a row stage")


def result(code: RowCode, v: SSAValue) -> str:
    name = code.declare_array(v)
    code.place[v] = Memory(name, padded=True)
    return name


def destination(code: RowCode, v: SSAValue) -> str:
    """The memory of a large result: the buffer, where it is only stored there."""
    value = v
    while isinstance(user := value.get_user_of_unique_use(), rows.ReshapeOp):
        value = user.result
    if not isinstance(user, rows.StoreOp) or user.row not in code.place:
        return result(code, v)
    if user.parent is not v.owner.parent:
        return result(code, v)
    address = code.address(user.buffer, user.row)
    code.place[v] = Memory(address)
    return address


def apply(code: RowCode, op: rows.ApplyOp) -> None:
    dims = row_dims(op.result.type)
    at = names(len(dims))
    for x in op.xs:  # spills happen before the loops
        if length(x) > 1:
            code.memory(x)
    out = result(code, op.result)
    with loops(code, dims, at):
        xs = [read(code, x, offset(at, strides(row_dims(x.type), dims))) for x in op.xs]
        c = ctype_of(op.xs[-1])
        code.out.line(
            f"{out}[{offset(at, dense(dims))}] = {scalar(op.fn.data, xs, c, op.parameters())};"
        )


def fill(code: RowCode, v: SSAValue, text: str) -> str:
    """One number everywhere; where it lies."""
    out = result(code, v)
    with loops(code, [length(v)], ["i0"]):
        code.out.line(f"{out}[i0] = {text};")
    return out


def cast(code: RowCode, op: rows.CastOp) -> None:
    x, c = code.memory(op.x), ctype_of(op.result)
    out = result(code, op.result)
    with loops(code, [length(op.result)], ["i0"]):
        code.out.line(f"{out}[i0] = {f'{x}[i0] != 0' if c is I1 else f'({c.name}){x}[i0]'};")
    if c is F32 and ctype_of(op.x) is F64:
        # GCC 12 takes vectors of doubles to floats and back for the doubles themselves
        code.out.line(f'__asm__("" : "+m"(*({c.name} (*)[{length(op.result)}]){out}));')


def copy(
    code: RowCode,
    v: SSAValue,
    x: SSAValue,
    dims: Sequence[int],
    steps: Sequence[int],
    start: int = 0,
) -> None:
    """A row of the numbers of another that lie `steps` apart, from `start` on."""
    if length(x) > 1:
        code.memory(x)
    out = result(code, v)
    dims, steps = joined(dims, steps)
    at = names(len(dims))
    with loops(code, dims, at):
        code.out.line(
            f"{out}[{offset(at, dense(dims))}] = {read(code, x, f'{start} + {offset(at, steps)}')};"
        )


def slice_(code: RowCode, op: rows.SliceOp) -> None:
    steps = dense(row_dims(op.x.type))
    d = op.dim.data
    start = steps[d] * op.lo.data
    if op.dim.data == 0 and op.step.data == 1:  # a slice of the leading dimension is a view
        x = code.memory(op.x)
        if length(op.result) == 1:
            code.place[op.result] = Scalar(f"{x}[{start}]")
        else:
            code.place[op.result] = Memory(f"({x} + {start})")
        return
    steps[d] *= op.step.data
    copy(code, op.result, op.x, row_dims(op.result.type), steps, start)


def concat(code: RowCode, op: rows.ConcatOp) -> None:
    """Rows side by side: what is behind the dimension lies together in both, and is copied at once.
    Number by number, compilers unroll the loops of many rows, and take half a minute for it."""
    d, dims = op.dim.data, row_dims(op.result.type)
    for x in op.xs:
        if length(x) > 1:
            code.memory(x)
    out = result(code, op.result)
    times, whole, start = math.prod(dims[:d]), math.prod(dims[d:]), 0
    for x in op.xs:
        run = math.prod(row_dims(x.type)[d:])
        with loops(code, [times], ["i0"]):
            into, since = f"i0 * {whole} + {start}", f"i0 * {run}"
            if run == 1:
                code.out.line(f"{out}[{into}] = {read(code, x, since)};")
            else:
                size = f"sizeof({ctype_of(op.result).memory}) * {run}"
                code.out.line(f"memcpy({out} + {into}, {code.memory(x)} + {since}, {size});")
        start += run


def fold(code: RowCode, op: rows.FoldOp) -> None:
    dims = row_dims(op.x.type)
    gone = {d.data for d in op.dims}
    c = ctype_of(op.result)
    at = names(len(dims))
    steps = dense(row_dims(op.result.type))
    kept_steps = iter(steps)
    into = [0 if i in gone else next(kept_steps) for i in range(len(dims))]
    if length(op.x) > 1:
        code.memory(op.x)
    out = fill(code, op.result, start_text(START[op.kind.data], c))
    with loops(code, dims, at):
        cell = f"{out}[{offset(at, into)}]"
        code.out.line(
            f"{cell} = {combine(op.kind.data, cell, read(code, op.x, offset(at, dense(dims))), c)};"
        )
    if length(op.result) == 1:
        code.scalar(op.result, f"{out}[0]")


def dot(code: RowCode, op: rows.DotOp) -> None:
    la, lb, into = op.letters()
    size = op.sizes()
    summed = [x for x in dict.fromkeys(la + lb) if x not in into]
    for x in (op.a, op.b):
        if length(x) > 1:
            code.memory(x)
    c, count = ctype_of(op.result), math.prod(size.values())
    large = LoopOrder.of(la, lb, into, size) if count > SMALL_DOT else None
    out = destination(code, op.result) if large else result(code, op.result)

    def where(letters: str) -> str:
        return offset([f"i_{x}" for x in letters], dense([size[x] for x in letters]))

    # a short innermost loop runs over the output, so that it vectorises without reassociation
    order = [*summed, *into]
    last = large.last if large else (order or [""])[-1]

    def number(x: SSAValue, letters: str) -> str:
        if length(x) == 1 or last not in letters or letters[-1] == last or count <= TINY_DOT:
            return read(code, x, where(letters))
        turned, copied = letters.replace(last, "") + last, code.declare_array(x)
        with team(code.out) if large and code.alone else nullcontext():
            with loops(code, [size[d] for d in turned], [f"i_{d}" for d in turned]):
                code.out.line(f"{copied}[{where(turned)}] = {read(code, x, where(letters))};")
        return f"{copied}[{where(turned)}]"

    a, b = number(op.a, la), number(op.b, lb)
    with loops(code, [length(op.result)], ["i0"]):
        code.out.line(f"{out}[i0] = 0;")
    target = f"{out}[{where(into)}]"
    if large:
        large.emit(code.out, c, a, b, target, shared=code.alone)
    else:
        with loops(code, [size[x] for x in order], [f"i_{x}" for x in order]):
            code.out.line(f"{target} = {add_product(a, b, target, c)};")
    if length(op.result) == 1:
        code.scalar(op.result, f"({c.name}){out}[0]")


def product(code: RowCode, op: rows.MatmulOp) -> None:
    """A row that is alone times a matrix."""
    if length(op.x) > 1:
        code.memory(op.x)
    matrix, apart = code.matrix(op)
    out = fill(code, op.result, "0")
    with loops(code, [length(op.x), length(op.result)], ["i0", "i1"]):
        line = add_product(
            read(code, op.x, "i0"), f"{matrix}[i0 * {apart} + i1]", f"{out}[i1]", ctype_of(op.x)
        )
        code.out.line(f"{out}[i1] = {line};")
    if length(op.result) == 1:
        code.scalar(op.result, f"{out}[0]")


def dropout(code: RowCode, op: rows.DropoutOp) -> None:
    n, c = length(op.result), ctype_of(op.result)
    if op.column is not None:
        x, key, row, column = map(code.text, (op.x, op.key, op.row, op.column))
        site = f"{code.numbers.site(op)}, {row}, {column}, {float(op.p.value.data)!r}"
        code.scalar(op.result, f"dropout_at{c.suffix}({x}, {key}, {site})")
        return
    x = code.memory(op.x)
    out = result(code, op.result)
    p = float(op.p.value.data)
    code.out.line(
        f"dropout{c.suffix}({out}, {x}, {n}, {code.text(op.key)}, {code.numbers.site(op)}, "
        f"{code.text(op.row)}, {p!r});"
    )
    if n == 1:
        code.scalar(op.result, f"{out}[0]")
