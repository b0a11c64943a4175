"""Folds and dots of rows: the lanes of a team share what is summed.

Where the last dimensions are summed, each lane sums the tiles that it has of the row, and the
lanes whose tiles belong to one result combine in a tree: the results stay in registers. Else, where
results are fewer than lanes, several neighbouring lanes sum for one result, by numbers that lie
apart, and combine in a tree; where they are more, each lane has results of its own. A thread that
computes a row alone does it number by number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ...dialects.intra import rows
from ...dialects.intra.schedule import WARP
from ...dialects.intra.syntax import length, row_dims
from ..common.scalars import START, combined, ctype_of, start_text
from .indices import Index, coordinates, place
from .places import Each, Grouped, Memory, Single
from .team import HELD
from .values import dense

if TYPE_CHECKING:
    from .row_code import RowCode

Terms = Callable[[Sequence[Index], Sequence[Index], int], list[str]]
"""What is reduced at indices of the result's dimensions and of those that are reduced: a tile."""
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

    def terms(into: Sequence[Index], over: Sequence[Index], tile: int) -> list[str]:
        where = {**dict(zip(kept, into, strict=True)), **dict(zip(gone, over, strict=True))}
        at = place([where[d] for d in range(len(dims))], steps)
        return code.numbers(op.x, at, tile)

    left, over = tuple(dims[d] for d in kept), tuple(dims[d] for d in gone)
    Reduction(code, op.result, op.kind.data, left, over, terms).run(ctype_of(op.x).bytes)


def dot(code: RowCode, op: rows.DotOp) -> None:
    """An einsum of two rows that sums."""
    a, b, out = op.letters()
    n = op.sizes()
    summed = [c for c in n if c not in out]

    def terms(into: Sequence[Index], over: Sequence[Index], tile: int) -> list[str]:
        where = {**dict(zip(out, into, strict=True)), **dict(zip(summed, over, strict=True))}
        columns: list[list[str]] = []
        for x, letters in ((op.a, a), (op.b, b)):
            steps = dense(tuple(n[c] for c in letters))
            columns.append(code.numbers(x, place([where[c] for c in letters], steps), tile))
        return [f"{x} * {y}" for x, y in zip(*columns, strict=True)]

    left, over = tuple(n[c] for c in out), tuple(n[c] for c in summed)
    found = Reduction(code, op.result, "sum", left, over, terms)
    if not code.alone and not found.in_tiles(ctype_of(op.a).bytes):
        for x, letters in ((op.a, a), (op.b, b)):
            again = any(c not in letters and n[c] > 1 for c in out)
            if again and not is_at_hand(code, x):
                code.lay(x)
    found.run(ctype_of(op.a).bytes)


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


@dataclass(frozen=True)
class Reduction:
    """Reduces, for each number of the result, whose dimensions are `left`, its terms."""

    code: RowCode
    result: SSAValue
    kind: str
    left: tuple[int, ...]
    over: tuple[int, ...]
    terms: Terms

    @property
    def count(self) -> int:
        """Numbers of the result."""
        return math.prod(self.left)

    @property
    def each(self) -> int:
        """Terms of one of them."""
        return math.prod(self.over)

    def run(self, element_bytes: int) -> None:
        """Print it; the terms are made of numbers of so many bytes."""
        if self.code.alone:
            self.alone()
        elif self.in_tiles(element_bytes):
            self.by_tiles(element_bytes)
        else:
            self.by_numbers()

    def start(self) -> str:
        """What a reduction begins with."""
        return start_text(START[self.kind], ctype_of(self.result))

    def add(self, acc: str, x: str) -> str:
        """The expression of a reduction with one more number."""
        return combined(self.kind, acc, x, ctype_of(self.result))

    # ------------------------------------------------------------ rows in the lanes

    def in_tiles(self, element_bytes: int) -> bool:
        """Whether each lane sums its tiles of the row of all terms: those of one result are in
        one lane, or in neighbours whose number is a power of two."""
        code, n = self.code, self.count * self.each
        if self.count == 1:
            return True
        tile = code.tile(n, element_bytes)
        if code.team.turns(n, tile) > HELD:
            return False
        lanes = self.each // tile
        near = lanes > 0 and lanes & (lanes - 1) == 0 and lanes <= min(code.team.lanes, WARP)
        return self.each % tile == 0 and near

    def by_tiles(self, element_bytes: int) -> None:
        """Each lane sums its tiles."""
        code, c, n = self.code, ctype_of(self.result), self.count * self.each
        tile = code.tile(n, element_bytes)
        turns = code.team.turns(n, tile) if self.count > 1 else 1
        acc = code.out.name("s")
        size = f"[{turns}]" if self.count > 1 else ""
        start = f"{{{', '.join([self.start()] * turns)}}}" if size else self.start()
        code.out.line(f"{c.name} {acc}{size} = {start};")
        with code.over(n, tile) as (tiles, at):
            where = coordinates(at, (*self.left, *self.over), tile)
            k = len(self.left)
            name = f"{acc}[{tiles.k}]" if size else acc
            for x in self.terms(where[:k], where[k:], tile):
                code.out.line(f"{name} = {self.add(name, x)};")
        if size:
            for k in range(turns):
                code.team.reduce(code.out, f"{acc}[{k}]", c, self.add, self.each // tile, "")
            code.places[self.result] = Grouped(acc, self.count, n, tile)
        else:
            self.together(acc, code.team.lanes)
            code.places[self.result] = Single(acc)

    def together(self, acc: str, lanes: int) -> None:
        """Combine what so many neighbouring lanes have."""
        code, c = self.code, ctype_of(self.result)
        room = code.memory.take(c, code.team.threads // WARP) if lanes > WARP else ""
        code.team.reduce(code.out, acc, c, self.add, lanes, room)

    # ------------------------------------------------------------ number by number

    def by_numbers(self) -> None:
        """Lanes take terms that lie apart."""
        code, c, count = self.code, ctype_of(self.result), self.count
        out, team = code.out, code.team
        share = max(1, min(team.lanes, WARP) // _power_of_two(count)) if count > 1 else team.lanes
        address = "" if count == 1 else code.memory.take(c, count)
        if count > 1:
            team.sync(out)  # others may still read what lay there before
        acc, o = out.name("s"), out.name("o")
        start = f"{c.name} {acc} = {self.start()};"
        if count == 1:
            out.line(start)
            self.share_of("0", acc, share)
            self.together(acc, share)
            code.places[self.result] = Single(acc)
            return
        if share > 1:
            out.line(start)
            out.line(f"const int {o} = lane / {share};")
            with code.scope(f"if ({o} < {count})"):
                self.share_of(o, acc, share)
            self.together(acc, share)
            out.line(f"if (lane % {share} == 0 && {o} < {count}) {address}[{o}] = {acc};")
        else:
            with code.scope(f"for (int {o} = lane; {o} < {count}; {o} += {team.lanes})"):
                out.line(start)
                self.share_of(o, acc, share)
                out.line(f"{address}[{o}] = {acc};")
        team.sync(out)
        code.places[self.result] = Memory(address, count)

    def share_of(self, o: str, acc: str, share: int) -> None:
        """A lane's terms of number `o`."""
        out, each = self.code.out, self.each
        into = coordinates(Index(o, 0, 1, self.count), self.left, 1)
        q = out.name("q")
        with self.code.scope(f"for (int {q} = lane % {share}; {q} < {each}; {q} += {share})"):
            (x,) = self.terms(into, coordinates(Index(q, 0, 1, each), self.over, 1), 1)
            out.line(f"{acc} = {self.add(acc, x)};")

    def alone(self) -> None:
        """The same by one thread."""
        c = ctype_of(self.result)
        names: list[str] = []
        for o in range(self.count):
            into = coordinates(Index.at(o), self.left, 1)
            acc = self.start()
            for q in range(self.each):
                (x,) = self.terms(into, coordinates(Index.at(q), self.over, 1), 1)
                acc = self.code.bind(c, self.add(acc, x))
            names.append(acc)
        found = Single(names[0]) if len(names) == 1 else Each(tuple(names))
        self.code.places[self.result] = found


def _power_of_two(n: int) -> int:
    """The least power of two that is `n` or more; 1 for 0."""
    return 1 << max(n - 1, 0).bit_length()
