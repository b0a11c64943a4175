"""Segments: the reduction of the rows of one group by a team.

Where rows are wide, the team goes through the group together and shares the numbers of each row.
Where they are short, each lane takes other rows of the group, and the lanes' results are combined
in a tree. A long group that may be reduced in pieces (`Pieces`) is: the main kernel adds up what a
kernel before it has made of the pieces, in their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from ...dialects.intra import rows
from ...dialects.intra.syntax import length
from ..common.c_types import F64
from ..common.scalars import START, combined, ctype_of, start_text
from .indices import Index
from .places import Each, Grouped, Memory, Place, Single, Spread
from .team import HELD

if TYPE_CHECKING:
    from .pieces import Pieces
    from .row_code import RowCode

SHORT = 16
"""Numbers of the longest row that a thread computes alone."""
SHORT_RESULTS = 32
"""Numbers that it reduces to, at most."""


@dataclass(frozen=True)
class Result:
    """One result of a segment."""

    value: SSAValue
    yielded: SSAValue
    kind: str

    def start(self) -> str:
        return start_text(START[self.kind], ctype_of(self.value))

    def add(self, acc: str, x: str) -> str:
        return f"{acc} = {combined(self.kind, acc, x, ctype_of(self.value))};"


def emit(code: RowCode, op: rows.SegmentOp) -> None:
    """Print a segment; its results are single numbers, registers, or rows in memory."""
    results = [
        Result(r, y, k.data)
        for r, y, k in zip(op.results, op.yielded.values, op.kinds, strict=True)
    ]
    offsets, row = code.text[op.offsets], code.text[op.row]
    begin, end = code.out.name("begin"), code.out.name("end")
    pieces = code.pieces.get(op)
    bounds = (f"{offsets}[{row}]", f"{offsets}[{row} + 1]")
    if pieces is not None and pieces.piece is not None:
        bounds = pieces.piece
    code.out.line(f"const int64_t {begin} = {bounds[0]}, {end} = {bounds[1]};")
    loop = Loop(code, op, begin, end, pieces if pieces and pieces.piece is None else None)
    if not code.alone and code.team.lanes > 1 and is_short(op) and not loop.is_ahead:
        loop.by_lanes(results)
    else:
        wide = [r for r in results if is_wide(code, r)]
        if len(wide) < len(results):
            loop.together([r for r in results if r not in wide])
        for r in wide:
            loop.in_windows(r)
    for r in results:
        if r.kind in ("max", "min"):
            loop.reset(r)


def is_short(op: rows.SegmentOp) -> bool:
    """Whether a thread computes the rows of the group alone."""
    if any(isinstance(o, rows.SegmentOp) for o in op.body.walk()):
        return False
    values = [v for o in op.body.walk() for v in (*o.operands, *o.results)]
    longest = max((length(v) for v in values if isinstance(v.type, VectorType)), default=1)
    kinds = {k.data for k in op.kinds}
    total = sum(length(r) for r in op.results)
    return longest <= SHORT and total <= SHORT_RESULTS and "last" not in kinds


def is_wide(code: RowCode, r: Result) -> bool:
    """Whether registers do not hold the result."""
    n, c = length(r.value), ctype_of(r.value)
    return n > 1 and code.team.turns(n, code.tile(n, c.bytes)) > HELD


def shares_work(r: Result, other: Result) -> bool:
    """Whether two results are made of one number that takes more than reading."""
    return bool(worked(r.yielded) & worked(other.yielded))


def worked(v: SSAValue) -> set[Operation]:
    """The ops on numbers of the segment's body that a row is made of."""
    found: set[Operation] = set()
    todo = [v.owner]
    while todo:
        op = todo.pop()
        if not isinstance(op, Operation) or op in found:
            continue
        found.add(op)
        todo += [x.owner for x in op.operands]
    return {op for op in found if isinstance(op, rows.ApplyOp | rows.FoldOp | rows.DotOp)}


class Loop:
    """The loop over the rows of a group, from `begin` to `end`; with `pieces` a long group is added
    up from its pieces."""

    def __init__(
        self, code: RowCode, op: rows.SegmentOp, begin: str, end: str, pieces: Pieces | None
    ) -> None:
        self.code, self.op, self.begin, self.end, self.pieces = code, op, begin, end, pieces

    @property
    def is_ahead(self) -> bool:
        """Whether rows of the group are on their way before their turn."""
        return self.code.ahead is not None and self.code.ahead.segment is self.op

    # ------------------------------------------------------------ wide rows

    def together(self, results: Sequence[Result]) -> None:
        """All lanes go through the group, each with its numbers of the rows."""
        code = self.code
        by_length: dict[int, list[Result]] = defaultdict(list)
        beside: dict[Result, Result] = {}
        for r in sorted(results, key=lambda r: -length(r.value)):
            whole = self.beside(r, [other for other in results if other not in beside])
            if whole is not None:
                beside[r] = whole
        for r in results:
            by_length[length(beside.get(r, r).value)].append(r)
        places: dict[SSAValue, Place] = {}
        for n, group in sorted(by_length.items()):
            own = [r for r in group if r not in beside]
            tile = code.tile(n, max(ctype_of(r.value).bytes for r in own)) if n > 1 else 1
            for r in group:
                places[r.value] = self.accumulator(r, n, tile)

        def add(body: Callable[[Result, Index, int], list[str]]) -> None:
            for n, group in sorted(by_length.items()):
                self.add(n, group, places, body)

        self.over_rows(lambda: add(lambda r, at, tile: code.numbers(r.yielded, at, tile)))
        self.add_pieces(add)
        code.places.update(places)

    def beside(self, r: Result, results: Sequence[Result]) -> Result | None:
        """The longest result [H, D] beside a result [H], where each thread's numbers of a tile have
        one number of [H]: that may be reduced in the same loop, by all threads who have some.
        """
        n, c = length(r.value), ctype_of(r.value)
        found: list[Result] = []
        for other in results:
            whole = length(other.value)
            tile = self.code.tile(whole, ctype_of(other.value).bytes)
            fits = whole > n > 1 and whole % n == 0 and whole // n % tile == 0
            if fits and ctype_of(other.value).bytes == c.bytes and shares_work(r, other):
                found.append(other)
        return max(found, key=lambda other: length(other.value), default=None)

    def accumulator(self, r: Result, whole: int, tile: int, turns: int | None = None) -> Place:
        """Registers that begin as the reduction does, for tiles of a row of `whole` numbers."""
        code, c, n = self.code, ctype_of(r.value), length(r.value)
        name = code.out.name("acc")
        if n == 1:
            code.out.line(f"{c.name} {name} = {r.start()};")
            return Single(name)
        count = (turns or code.team.turns(whole, tile)) * (tile if whole == n else 1)
        code.out.line(f"{c.name} {name}[{count}];")
        code.out.line("#pragma unroll")
        code.out.line(f"for (int k = 0; k < {count}; ++k) {name}[k] = {r.start()};")
        return Spread(name, n, tile) if whole == n else Grouped(name, n, whole, tile)

    def add(
        self,
        n: int,
        group: Sequence[Result],
        places: dict[SSAValue, Place],
        body: Callable[[Result, Index, int], list[str]],
        window: str | None = None,
    ) -> None:
        """Add a row to results of one length."""
        code = self.code
        if n == 1:
            found = [body(r, Index.at(0), 1)[0] for r in group]
            for r, x in zip(group, found, strict=True):
                place = places[r.value]
                assert isinstance(place, Single)
                code.out.line(r.add(place.text, x))
            return
        first = places[group[0].value]
        assert isinstance(first, Spread | Grouped)
        with code.over(n, first.tile, window) as (tiles, at):
            columns: list[list[str]] = []
            for r in group:
                place = places[r.value]
                if isinstance(place, Grouped):
                    one = Index(f"({tiles.f} / {place.each})", 0, 1, place.length)
                    columns.append(body(r, one, 1))
                else:
                    columns.append(body(r, at, tiles.tile))
            for r, xs in zip(group, columns, strict=True):
                place = places[r.value]
                assert isinstance(place, Spread | Grouped)
                one = f"{place.name}[{tiles.k}]"
                names = [f"{place.name}[{tiles.k} * {tiles.tile} + {j}]" for j in range(tiles.tile)]
                for name, x in zip([one] if isinstance(place, Grouped) else names, xs, strict=True):
                    code.out.line(r.add(name, x))

    def over_rows(self, add: Callable[[], None], step: str = "") -> None:
        """The loop itself, with the ops of the body in their turn."""
        if self.pieces is not None and not self.pieces.longest:
            return  # every group that has rows is in pieces
        code, op = self.code, self.op
        p = code.out.name("p")
        code.text[op.position] = p
        start, stride = (self.begin, f"++{p}")
        if step:
            start, stride = f"{self.begin} + lane", f"{p} += {step}"
        head = f"for (int64_t {p} = {start}; {p} < {self.end}; {stride})"
        short = f"if ({self.length} <= {self.pieces.longest})" if self.pieces else ""
        with code.scope(short):
            if code.edges > 1 and not self.is_ahead:
                code.out.line(f"#pragma unroll {code.edges}")
            self.rows(head, add)

    def rows(self, head: str, add: Callable[[], None]) -> None:
        code, op = self.code, self.op
        outside = dict(code.text), dict(code.places)
        ahead = code.ahead if self.is_ahead else None
        with code.scope(head), code.inside(op.body.block):
            for o in list(op.body.block.ops)[:-1]:
                code.op(o)
            if ahead is not None:
                ahead.arrive(code, code.text[op.position])
            code.with_memory(add)
            if ahead is not None:
                ahead.leave(code)
        code.text, code.places = outside

    @property
    def length(self) -> str:
        return f"{self.end} - {self.begin}"

    def add_pieces(self, add: Callable[[Callable[[Result, Index, int], list[str]]], None]) -> None:
        """Where the group is long, add up its pieces in order."""
        if self.pieces is None:
            return
        code, found = self.code, self.pieces
        partial: dict[SSAValue, str] = dict(zip(self.op.results, found.partials, strict=True))
        q, row = code.out.name("q"), code.text[self.op.row]
        with code.scope(f"if ({self.length} > {found.longest})"):
            first = f"first_piece({found.table}, {found.count}, {row})"
            same = f"{q} < {found.count} && {found.table}[3 * {q}] == {row}"
            with code.scope(f"for (int64_t {q} = {first}; {same}; ++{q})"):

                def piece(r: Result, at: Index, tile: int) -> list[str]:
                    n, c = length(r.value), ctype_of(r.value)
                    return code.read(c, f"{partial[r.value]} + {q} * {n}", n, at, tile)

                add(piece)

    # ------------------------------------------------------------ rows that registers do not hold

    def in_windows(self, r: Result) -> None:
        """As much of a row as registers hold, one part after the other."""
        code, n, c = self.code, length(r.value), ctype_of(r.value)
        tile = code.tile(n, c.bytes)
        address = code.memory.take(c, n)
        code.team.sync(code.out)
        w = code.out.name("w")
        with code.scope(f"for (int {w} = 0; {w} < {n}; {w} += {HELD * tile * code.team.lanes})"):
            places: dict[SSAValue, Place] = {r.value: self.accumulator(r, n, tile, HELD)}

            def add(body: Callable[[Result, Index, int], list[str]]) -> None:
                self.add(n, [r], places, body, w)

            self.over_rows(lambda: add(lambda r, at, tile: code.numbers(r.yielded, at, tile)))
            self.add_pieces(add)
            place = places[r.value]
            assert isinstance(place, Spread)
            with code.over(n, tile, w) as (tiles, at):
                xs = [f"{place.name}[{tiles.k} * {tile} + {j}]" for j in range(tile)]
                code.store(c, address, n, at, xs)
        code.team.sync(code.out)
        code.places[r.value] = Memory(address, n)

    # ------------------------------------------------------------ short rows

    def by_lanes(self, results: Sequence[Result]) -> None:
        """Each lane takes other rows of the group."""
        code = self.code
        accs: dict[SSAValue, list[str]] = {}
        for r in results:
            accs[r.value] = [code.out.name("acc") for _ in range(length(r.value))]
            names = ", ".join(f"{x} = {r.start()}" for x in accs[r.value])
            code.out.line(f"{ctype_of(r.value).name} {names};")

        def add() -> None:
            found: list[tuple[Result, list[str]]] = []
            for r in results:
                n = length(r.value)
                tile = 1 if n in code.untiled else next(t for t in (4, 2, 1) if n % t == 0)
                xs: list[str] = []
                with code.in_tiles(n):
                    for k in range(0, n, tile):
                        at = Index(str(k), int(tile > 1), k, k + tile)
                        xs += code.numbers(r.yielded, at, tile)
                found.append((r, xs))
            for r, xs in found:
                for acc, x in zip(accs[r.value], xs, strict=True):
                    code.out.line(r.add(acc, x))

        code.alone = True
        self.over_rows(add, str(code.team.lanes))
        code.alone = False
        room = code.memory.take(F64, code.team.threads // 32) if code.team.whole else ""
        for r in results:
            c = ctype_of(r.value)
            here = f"(({c.name} *){room})" if room else ""
            for acc in accs[r.value]:
                code.team.reduce(
                    code.out,
                    acc,
                    c,
                    lambda a, x, r=r, c=c: combined(r.kind, a, x, c),
                    code.team.lanes,
                    here,
                )
        self.add_pieces(lambda body: self.add_short(results, accs, body))
        for r in results:
            names = tuple(accs[r.value])
            code.places[r.value] = Single(names[0]) if len(names) == 1 else Each(names)

    def add_short(
        self,
        results: Sequence[Result],
        accs: dict[SSAValue, list[str]],
        body: Callable[[Result, Index, int], list[str]],
    ) -> None:
        for r in results:
            for k, acc in enumerate(accs[r.value]):
                self.code.out.line(r.add(acc, body(r, Index.at(k), 1)[0]))

    # ------------------------------------------------------------ empty groups

    def reset(self, r: Result) -> None:
        """Of no rows, the greatest and the least are 0."""
        code, c = self.code, ctype_of(r.value)
        with code.scope(f"if ({self.begin} == {self.end})"):
            match code.places[r.value]:
                case Single(name):
                    code.out.line(f"{name} = 0;")
                case Each(names):
                    code.out.line(f"{' = '.join(names)} = 0;")
                case Spread(name, n, tile) | Grouped(name, _, n, tile) as place:
                    count = code.team.turns(n, tile) * (tile if isinstance(place, Spread) else 1)
                    code.out.line("#pragma unroll")
                    code.out.line(f"for (int k = 0; k < {count}; ++k) {name}[k] = 0;")
                case Memory():
                    self.reset_memory(r.value, c.memory)

    def reset_memory(self, v: SSAValue, kind: str) -> None:
        code = self.code
        place = code.places[v]
        assert isinstance(place, Memory)
        n, lanes = length(v), code.team.lanes
        code.out.line(
            f"for (int k = lane; k < {n}; k += {lanes}) (({kind} *){place.address})[k] = 0;"
        )
        code.team.sync(code.out)
