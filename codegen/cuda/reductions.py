"""Folds and dots of rows: the lanes of a team share what is summed.

There are as many results as the row that is left has numbers. Where these are fewer than lanes,
several neighbouring lanes sum for one result and combine in a tree, else each lane has results of
its own. A thread that computes a row alone does it number by number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ...dialects.intra import rows
from ...dialects.intra.schedule import WARP
from ...dialects.intra.syntax import length, row_dims
from ..common.scalars import START, combined, ctype_of, start_text
from .indices import Index, coordinates, place
from .places import Each, Memory, Single
from .values import dense

if TYPE_CHECKING:
    from .row_code import RowCode

Term = Callable[[Sequence[Index], Sequence[Index]], str]
"""What is reduced at indices of the result's dimensions and of those that are reduced."""
MOVES = (rows.ReshapeOp, rows.BroadcastOp, rows.TransposeOp, rows.SliceOp)


def sums(op: rows.DotOp) -> bool:
    """Whether a dot sums over a dimension of more than one number."""
    _, _, out = op.letters()
    return any(n > 1 for c, n in op.sizes().items() if c not in out)


def fold(code: RowCode, op: rows.FoldOp) -> None:
    """A reduction of dimensions of a row."""
    dims, gone = row_dims(op.x.type), [d.data for d in op.dims]
    kept = [d for d in range(len(dims)) if d not in gone]
    steps = dense(dims)

    def term(into: Sequence[Index], over: Sequence[Index]) -> str:
        where = {**dict(zip(kept, into, strict=True)), **dict(zip(gone, over, strict=True))}
        at = place([where[d] for d in range(len(dims))], steps)
        return code.numbers(op.x, at, 1)[0]

    left, over = tuple(dims[d] for d in kept), tuple(dims[d] for d in gone)
    reduce(code, op.result, op.kind.data, left, over, term)


def dot(code: RowCode, op: rows.DotOp) -> None:
    """An einsum of two rows that sums."""
    a, b, out = op.letters()
    n = op.sizes()
    summed = [c for c in n if c not in out]
    for x, letters in ((op.a, a), (op.b, b)):
        again = any(c not in letters and n[c] > 1 for c in out)
        if again and not code.alone and not is_at_hand(code, x):
            code.lay(x)

    def term(into: Sequence[Index], over: Sequence[Index]) -> str:
        where = {**dict(zip(out, into, strict=True)), **dict(zip(summed, over, strict=True))}
        factors: list[str] = []
        for x, letters in ((op.a, a), (op.b, b)):
            steps = dense(tuple(n[c] for c in letters))
            at = place([where[c] for c in letters], steps)
            factors += code.numbers(x, at, 1)
        return " * ".join(factors)

    reduce(code, op.result, "sum", tuple(n[c] for c in out), tuple(n[c] for c in summed), term)


def is_at_hand(code: RowCode, v: SSAValue) -> bool:
    """Whether to read a number of the row again costs no more than a load."""
    if length(v) == 1 or v in code.places:
        return True
    op = v.owner
    if isinstance(op, MOVES):
        return is_at_hand(code, op.x)
    return isinstance(op, rows.LoadOp | rows.ConstOp) and not (
        isinstance(op, rows.LoadOp) and op.otherwise is not None
    )


def reduce(
    code: RowCode,
    result: SSAValue,
    kind: str,
    left: tuple[int, ...],
    over: tuple[int, ...],
    term: Term,
) -> None:
    """Reduce, for each number of the result, the terms of it."""
    if code.alone:
        reduce_alone(code, result, kind, left, over, term)
        return
    c, out, team = ctype_of(result), code.out, code.team
    count, terms = math.prod(left), math.prod(over)
    share = team.lanes if count == 1 else max(1, min(team.lanes, WARP) // _power_of_two(count))
    address = "" if count == 1 else code.memory.take(c, count)
    if count > 1:
        team.sync(out)  # others may still read what lay there before
    acc, o = out.name("s"), out.name("o")
    start = f"{c.name} {acc} = {start_text(START[kind], c)};"

    def summed(o: str) -> None:
        into = coordinates(Index(o, 0, 1, count), left, 1)
        q = out.name("q")
        with code.scope(f"for (int {q} = lane % {share}; {q} < {terms}; {q} += {share})"):
            text = term(into, coordinates(Index(q, 0, 1, terms), over, 1))
            out.line(f"{acc} = {combined(kind, acc, text, c)};")

    def together() -> None:
        room = code.memory.take(c, team.threads // WARP) if share > WARP else ""
        team.reduce(out, acc, c, lambda a, x: combined(kind, a, x, c), share, room)

    if count == 1:
        out.line(start)
        summed("0")
        together()
        code.places[result] = Single(acc)
        return
    if share > 1:
        out.line(start)
        out.line(f"const int {o} = lane / {share};")
        with code.scope(f"if ({o} < {count})"):
            summed(o)
        together()
        out.line(f"if (lane % {share} == 0 && {o} < {count}) {address}[{o}] = {acc};")
    else:
        with code.scope(f"for (int {o} = lane; {o} < {count}; {o} += {team.lanes})"):
            out.line(start)
            summed(o)
            out.line(f"{address}[{o}] = {acc};")
    team.sync(out)
    code.places[result] = Memory(address, count)


def reduce_alone(
    code: RowCode,
    result: SSAValue,
    kind: str,
    left: tuple[int, ...],
    over: tuple[int, ...],
    term: Term,
) -> None:
    """The same by one thread."""
    c = ctype_of(result)
    names: list[str] = []
    for o in range(math.prod(left)):
        into = coordinates(Index.at(o), left, 1)
        acc = start_text(START[kind], c)
        for q in range(math.prod(over)):
            text = term(into, coordinates(Index.at(q), over, 1))
            acc = code.bind(c, combined(kind, acc, text, c))
        names.append(acc)
    code.places[result] = Single(names[0]) if len(names) == 1 else Each(tuple(names))


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()
