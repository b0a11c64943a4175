"""CUDA C++ for the row-wise ops of a nest: a team of threads computes one row.

What is pointwise, or moves numbers, is computed where it is read, for the numbers that a thread
asks for (`numbers`), and nowhere else. Reductions are computed in their order and stay in
registers, of which each thread has its own numbers; where a thread asks for those of another, the
row is laid in memory of the team before. Stores come last, those of one length in one loop, so that
a row is read before its place is written.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.intra import rows
from ...dialects.intra.bindings import root
from ...dialects.intra.syntax import buffer_dims, length
from ..common.c_types import CType
from ..common.scalars import combined, ctype_of, looked_up
from ..common.writer import Writer
from . import reductions, segments, values
from .indices import Index, Untiled
from .pieces import Ahead, Pieces
from .places import Each, Grouped, Memory, NeedsMemory, Place, Single, Spread, Tiles
from .rooms import TeamMemory
from .team import HELD, Team
from .words import WordCode

LAZY = (
    rows.ConstOp,
    rows.ApplyOp,
    rows.CastOp,
    rows.ReshapeOp,
    rows.BroadcastOp,
    rows.TransposeOp,
    rows.SliceOp,
    rows.ConcatOp,
    rows.DropoutOp,
)
"""Ops that are computed where they are read."""
POINTWISE = (rows.ConstOp, rows.ApplyOp, rows.CastOp, rows.ReshapeOp, rows.DropoutOp)


CHOSEN = 8
"""Variables of which a thread chooses one by its index: where there are more, they are laid in
memory."""


class UntiledRow(Exception):
    """A loop over rows of a length has to go number by number."""

    def __init__(self, row_length: int) -> None:
        super().__init__()
        self.row_length = row_length


@dataclass(frozen=True)
class Sink:
    """A row that is written at an address."""

    value: SSAValue
    address: str


@dataclass(frozen=True)
class TotalSink:
    """A row that is added to a total."""

    op: rows.TotalOp

    @property
    def value(self) -> SSAValue:
        return self.op.value


@dataclass(frozen=True)
class Mark:
    """What a printer of rows knows at one point, and how much it has printed."""

    lines: int
    depth: int
    places: dict[SSAValue, Place]
    memo: list[dict[tuple[SSAValue, Index, int], list[str]]]
    text: dict[SSAValue, str]
    blocks: list[Block]
    alone: bool


class RowCode(WordCode):
    """Prints the ops of one stage; `names` gives the C names of sizes, buffers and the row."""

    def __init__(
        self,
        out: Writer,
        team: Team,
        memory: TeamMemory,
        names: Mapping[SSAValue, str],
        edges: int,
        pieces: Iterable[Pieces] = (),
        ahead: Ahead | None = None,
    ) -> None:
        super().__init__(out)
        self.team, self.memory, self.edges = team, memory, edges
        self.text: dict[SSAValue, str] = dict(names)
        self.pieces = {p.segment: p for p in pieces}
        self.ahead = ahead
        self.places: dict[SSAValue, Place] = {}
        self.memo: list[dict[tuple[SSAValue, Index, int], list[str]]] = [{}]
        self.tiles: dict[str, Tiles] = {}
        self.untiled: set[int] = set()
        self.blocks: list[Block] = []
        self.alone = False
        """Whether each thread computes a row of its own."""
        self.written: set[SSAValue] = set()
        self.totals: dict[rows.TotalOp, Place] = {}

    # ------------------------------------------------------------ a stage

    def run(self, ops: Sequence[Operation], sinks: Iterable[Sink] = ()) -> None:
        """Print the ops of a stage; `sinks` are rows that it hands on."""
        if not ops:
            return
        block = ops[0].parent
        assert block is not None
        writes: list[Sink | TotalSink] = []
        with self.inside(block):
            in_place = [op for op in ops if self.reads_what_is_written(op)]
            for op in in_place:
                self.read_before(op, ops)
            for op in ops:
                match op:
                    case rows.StoreOp():
                        n = math.prod(buffer_dims(op.buffer))
                        at = f"({self.text[op.buffer]} + {self.text[op.row]} * {n})"
                        writes.append(Sink(op.value, at))
                    case rows.TotalOp():
                        writes.append(TotalSink(op))
                    case _:
                        self.op(op)
            self.flush([*writes, *sinks], bool(in_place))

    def reads_what_is_written(self, op: Operation) -> bool:
        """Whether the nest writes the rows that the op reads."""
        return isinstance(op, rows.LoadOp) and root(op.buffer) in self.written

    def read_before(self, load: Operation, ops: Sequence[Operation]) -> None:
        """Read a row that is written later, if it is not in the loop that writes it."""
        assert isinstance(load, rows.LoadOp)
        n = length(load.result)
        for op in ops:
            if op is load:
                break
            if isinstance(op, rows.LookupOp | rows.FirstOp):
                self.op(op)
        wide = [v for op in ops for v in (*op.results, *op.operands) if length_of(v) > 1]
        alike = all(isinstance(op, (*POINTWISE, rows.LoadOp, rows.StoreOp)) for op in ops)
        if n > 1 and alike and all(length_of(v) == n for v in wide):
            return
        if n == 1:
            (self.places[load.result],) = map(Single, self.numbers(load.result, Index.at(0), 1))
        else:
            self.attempt(lambda: self.lay(load.result))

    def op(self, op: Operation) -> None:
        """Print an op that is computed in its turn, or remember what it is."""
        match op:
            case rows.LookupOp() if op.result not in self.text:
                table = looked_up(op.table, self.text[op.table], self.text[op.row])
                self.text[op.result] = self.out.name("i")
                self.out.line(f"const int64_t {self.text[op.result]} = {table};")
            case rows.FirstOp():
                self.text[op.result] = "0"
            case rows.LengthOp():
                offsets, row = self.text[op.offsets], self.text[op.row]
                text = f"(int64_t)({offsets}[{row} + 1] - {offsets}[{row}])"
                self.places[op.result] = Single(text)
            case rows.PositionOp():
                self.places[op.result] = Single(f"((int64_t){self.text[op.row]})")
            case rows.CountOp():
                self.places[op.result] = Single(self.text[op.size])
            case rows.SegmentOp():
                self.out.line(said(op))
                self.attempt(lambda: segments.emit(self, op))
            case rows.FoldOp():
                self.out.line(said(op))
                self.attempt(lambda: reductions.fold(self, op))
            case rows.DotOp() if reductions.sums(op):
                self.out.line(said(op))
                self.attempt(lambda: reductions.dot(self, op))
            case _:
                known = (*LAZY, rows.LoadOp, rows.IssueOp, rows.AwaitOp, rows.LookupOp, rows.DotOp)
                assert isinstance(op, known), op.name

    def flush(self, sinks: Sequence[Sink | TotalSink], in_place: bool) -> None:
        """Write rows, those of one length together."""
        by_length: dict[int, list[Sink | TotalSink]] = defaultdict(list)
        by_group: dict[Grouped, list[Sink]] = defaultdict(list)
        for sink in sinks:
            place = self.made_of_groups(sink.value)
            if place is not None and isinstance(sink, Sink):
                by_group[place].append(sink)
            else:
                by_length[length(sink.value)].append(sink)
        if in_place and sinks:
            self.team.sync(self.out)
        for place, grouped in by_group.items():
            self.attempt(lambda place=place, grouped=grouped: self.write_groups(place, grouped))
        for n, together in sorted(by_length.items()):
            self.attempt(lambda n=n, together=together: self.write(n, together))

    def write(self, n: int, sinks: Sequence[Sink | TotalSink]) -> None:
        """Compute rows of one length, then write them."""
        if n == 1:
            texts = [self.numbers(sink.value, Index.at(0), 1)[0] for sink in sinks]
            for sink, x in zip(sinks, texts, strict=True):
                if isinstance(sink, TotalSink):
                    self.add_to_total(sink.op, [x], None)
                else:
                    one = f"{sink.address}[0] = {x};"
                    self.out.line(one if self.team.lanes == 1 else f"if (lane == 0) {one}")
            return
        tile = self.tile(n, max(ctype_of(sink.value).bytes for sink in sinks))
        with self.over(n, tile) as (tiles, at):
            found = [self.numbers(sink.value, at, tiles.tile) for sink in sinks]
            for sink, xs in zip(sinks, found, strict=True):
                if isinstance(sink, TotalSink):
                    self.add_to_total(sink.op, xs, tiles)
                else:
                    self.store(ctype_of(sink.value), sink.address, n, at, xs)

    def made_of_groups(self, v: SSAValue) -> Grouped | None:
        """The place of a row that threads have grouped, of which this one is made number by
        number."""
        match self.places.get(v):
            case Grouped() as place:
                return place
            case None if isinstance(v.owner, rows.ApplyOp | rows.CastOp | rows.ReshapeOp):
                found = (self.made_of_groups(x) for x in v.owner.operands if length_of(x) > 1)
                place = next(filter(None, found), None)
                return place if place is not None and place.length == length(v) else None
            case _:
                return None

    def write_groups(self, place: Grouped, sinks: Sequence[Sink]) -> None:
        """Write rows whose numbers threads have grouped: the first of each group does."""
        n, each = place.length, place.each
        with self.over(place.whole, place.tile) as (tiles, _):
            at = Index(f"({tiles.f} / {each})", 0, 1, n)
            with self.scope(f"if ({tiles.f} % {each} == 0)" if each > 1 else ""):
                found = [self.numbers(sink.value, at, 1) for sink in sinks]
                for sink, xs in zip(sinks, found, strict=True):
                    self.store(ctype_of(sink.value), sink.address, n, at, xs)

    def add_to_total(self, op: rows.TotalOp, xs: Sequence[str], tiles: Tiles | None) -> None:
        """Add numbers to the thread's part of a total."""
        c, kind = ctype_of(op.value), op.kind.data
        if tiles is None:
            place = self.totals.setdefault(op, Single(self.out.name("total")))
            assert isinstance(place, Single)
            names = [place.text]
        elif tiles.k is None:
            place = self.totals.setdefault(op, Memory(self.out.name("total"), 1))
            assert isinstance(place, Memory)
            names = [f"{place.address}[{tiles.f} + {j}]" for j in range(tiles.tile)]
        else:
            new = Spread(self.out.name("total"), tiles.length, tiles.tile)
            place = self.totals.setdefault(op, new)
            assert isinstance(place, Spread)
            names = [f"{place.name}[{tiles.k} * {tiles.tile} + {j}]" for j in range(tiles.tile)]
        for name, x in zip(names, xs, strict=True):
            self.out.line(f"{name} = {combined(kind, name, x, c)};")

    # ------------------------------------------------------------ numbers

    def numbers(self, v: SSAValue, at: Index, tile: int) -> list[str]:
        """Expressions of `tile` numbers of a row. Raises NeedsMemory, Untiled."""
        if at.step == 0 and tile > 1:
            return self.numbers(v, at, 1) * tile
        key = (v, at, tile)
        for scope in reversed(self.memo):
            if key in scope:
                return scope[key]
        found = self.compute(v, at, tile)
        self.memo[-1][key] = found
        return found

    def compute(self, v: SSAValue, at: Index, tile: int) -> list[str]:
        """The numbers of a row, from where it is or from what it is made of."""
        match self.places.get(v):
            case Single(text):
                return [text] * tile
            case Each(names):
                if (k := at.constant) is not None:
                    return [names[k + at.step * j] for j in range(tile)]
                if len(names) > CHOSEN:
                    raise NeedsMemory(v)
                return [self.choose(v, names, at.plus(Index.at(j * at.step))) for j in range(tile)]
            case Grouped() as place:
                loop, _, each = at.text.removeprefix("(").partition(" / ")
                tiles = self.tiles.get(loop)
                if tiles is None or not tiles.holds(place) or each != f"{place.each})":
                    raise NeedsMemory(v)
                return [f"{place.name}[{tiles.k}]"] * tile
            case Spread() as place:
                tiles = self.tiles.get(at.text)
                if tiles is None or not tiles.holds(place) or tile != tiles.tile:
                    raise NeedsMemory(v)
                return [f"{place.name}[{tiles.k} * {tile} + {j}]" for j in range(tile)]
            case Memory(address, aligned):
                return self.read(ctype_of(v), address, aligned, at, tile)
            case _:
                assert isinstance(v.owner, Operation), v
                return values.compute(self, v.owner, at, tile)

    def choose(self, v: SSAValue, names: Sequence[str], at: Index) -> str:
        """One of a few variables."""
        tests = "".join(f"{at.text} == {k} ? {x} : " for k, x in enumerate(names[:-1]))
        return self.bind(ctype_of(v), f"{tests}{names[-1]}")

    def index(self, v: SSAValue) -> str:
        """The expression of an index, or of a row of one integer."""
        if isinstance(v.type, IndexType):
            return self.text[v]
        return self.numbers(v, Index.at(0), 1)[0]

    # ------------------------------------------------------------ loops and scopes

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """While the ops of a block are printed."""
        self.blocks.append(block)
        yield
        self.blocks.pop()

    @contextmanager
    def scope(self, head: str) -> Generator[None]:
        """A block of C; what is computed in it is known in it alone."""
        text = dict(self.text)
        with self.out.block(head):
            self.memo.append({})
            yield
            self.memo.pop()
        self.text = text

    @contextmanager
    def over(self, n: int, tile: int, window: str | None = None) -> Generator[tuple[Tiles, Index]]:
        """A loop over the tiles of a row that the thread has. With `window` the row is that part of
        it, as much as registers hold, that begins there."""
        lanes, turns = self.team.lanes, self.team.turns(n, tile)
        f, k = self.out.name("f"), self.out.name("k")
        step = "" if tile == 1 else f" * {tile}"
        start = "" if window is None else f"{window} + "
        if window is not None:
            turns = HELD
        held = turns <= HELD
        if held:
            head = f"for (int {k} = 0; {k} < {turns}; ++{k})" if turns > 1 else ""
            k = k if turns > 1 else "0"
            if head:
                self.out.line("#pragma unroll")
            first = f"{start}({k} * {lanes} + lane){step}" if turns > 1 else f"{start}lane{step}"
        else:
            head = f"for (int {f} = lane{step}; {f} < {n}; {f} += {lanes * tile})"
            first = ""
        tiles = Tiles(n, tile, f, k if held else None)
        at = Index(f, int(tile > 1), tile, n)
        self.tiles[f] = tiles
        with self.scope(head):
            if held:
                self.out.line(f"const int {f} = {first};")
            whole = not held or (window is None and turns * lanes * tile == n)
            with self.in_tiles(n):
                if whole:
                    yield tiles, at
                else:
                    with self.scope(f"if ({f} < {n})"):
                        yield tiles, at

    @contextmanager
    def in_tiles(self, n: int) -> Generator[None]:
        """While tiles of a row of `n` numbers are computed. Raises UntiledRow."""
        try:
            yield
        except Untiled as error:
            raise UntiledRow(n) from error

    def tile(self, n: int, element_bytes: int) -> int:
        """Numbers that a thread takes at once of a row."""
        return 1 if n in self.untiled else self.team.tile(n, element_bytes)

    def attempt(self, emit: Callable[[], None]) -> None:
        """Print something; where it turns out to read what other threads have, lay that in memory,
        and where tiles do not fit a row, take its numbers one by one, and print it again. Raises
        NeedsMemory for rows of blocks further out."""
        while True:
            mark = self.mark()
            try:
                self.with_memory(emit)
                return
            except UntiledRow as error:
                self.back_to(mark)
                self.untiled.add(error.row_length)

    def with_memory(self, emit: Callable[[], None]) -> None:
        """The same with the tiles that there are: of a loop whose sums have theirs already. Raises
        UntiledRow too."""
        while True:
            mark = self.mark()
            try:
                emit()
                return
            except NeedsMemory as error:
                self.back_to(mark)
                owner = error.value.owner
                if isinstance(owner, Operation) and owner.parent is not self.blocks[-1]:
                    raise
                self.lay(error.value)

    def mark(self) -> Mark:
        """What is known and printed so far."""
        return Mark(
            len(self.out.lines),
            self.out.depth,
            dict(self.places),
            [dict(m) for m in self.memo],
            dict(self.text),
            list(self.blocks),
            self.alone,
        )

    def back_to(self, mark: Mark) -> None:
        """Forgets what came after a mark."""
        del self.out.lines[mark.lines :]
        self.out.depth = mark.depth
        self.places, self.memo, self.text = mark.places, mark.memo, mark.text
        self.blocks, self.alone = mark.blocks, mark.alone

    def lay(self, v: SSAValue) -> None:
        """Lay a row in the team's memory."""
        c, n = ctype_of(v), length(v)
        address = self.memory.take(c, n)
        self.team.sync(self.out)  # others may still read what lay there before
        if isinstance(place := self.places.get(v), Each):
            with self.out.block("if (lane == 0)"):
                for k, name in enumerate(place.names):
                    self.out.line(f"{address}[{k}] = {name};")
        else:
            self.attempt(lambda: self.lay_tiles(v, c, n, address))
        self.team.sync(self.out)
        self.places[v] = Memory(address, n)
        self.forget(v)

    def lay_tiles(self, v: SSAValue, c: CType, n: int, address: str) -> None:
        place = self.places.get(v)
        if isinstance(place, Grouped):
            self.write_groups(place, [Sink(v, address)])
            return
        tile = place.tile if isinstance(place, Spread) else self.tile(n, c.bytes)
        with self.over(n, tile) as (tiles, at):
            self.store(c, address, n, at, self.numbers(v, at, tiles.tile))

    def forget(self, v: SSAValue) -> None:
        """Read a row anew from its place."""
        for scope in self.memo:
            for key in [key for key in scope if key[0] is v]:
                del scope[key]


# ---------------------------------------------------------------- helpers


def said(op: Operation) -> str:
    """A comment above the text of an op: NVRTC's errors are told of it (runtime/cuda/nvrtc.py)."""
    results = ", ".join(str(r.type) for r in op.results)
    return f"/* intra: {op.name}{' : ' * bool(results)}{results} */"


def length_of(v: SSAValue) -> int:
    """Numbers of a row; 0 of what is none."""
    return 0 if isinstance(v.type, IndexType | MemRefType) else length(v)
