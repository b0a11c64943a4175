"""C for the single numbers of several members of a group at a time, as lanes of one vector.

A loop over a group takes a strip of members in a step: what they read is laid side by side, what
follows from it is computed for all lanes, and sums are kept for each lane until the group is done.
What rows of several numbers need of it is handed to them member by member. Lanes beyond the last
member hold the numbers of an earlier strip; nothing reduced sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from ...dialects.intra import rows
from ...dialects.intra.strips import Strip
from ..common.c_types import I1, I64, CType, Piece, ctype
from ..common.scalars import START, ctype_of
from .register_code import Window
from .row_values import Place, Scalar, combine, load, load_mask, splat, store

if TYPE_CHECKING:
    from .row_code import RowCode


class Lanes(Window):
    """Ops on the rows of a strip: a value that is made for a member lies in lanes of its own."""

    def piece_of(self, v: SSAValue) -> Callable[[Piece], str]:
        known = self.here.get(v)
        return super().piece_of(v) if known is None else known.__getitem__


class StripCode:
    """Prints the narrow part of one segment."""

    def __init__(self, code: RowCode, op: rows.SegmentOp, strip: Strip) -> None:
        self.code, self.out, self.op, self.strip = code, code.out, op, strip
        self.c: CType = ctype(strip.element)
        self.piece = Piece(0, strip.members)
        self.window = Lanes(code, self.c, [self.piece], "0")
        self.count, self.lane = self.out.name("n"), self.out.name("l")
        self.arrays: dict[SSAValue, str] = {}
        self.loads = [o for o in strip.narrow if isinstance(o, rows.LoadOp)]
        self.dropouts = [o for o in strip.narrow if isinstance(o, rows.DropoutOp)]
        self.drawn = dict.fromkeys(o.row for o in self.dropouts)
        self.rest = rest_of(op, strip)
        read = {x for o in self.rest for x in inner_operands(o)}
        body = op.body.block
        self.results = [k for k, v in enumerate(op.yielded.values) if strip.holds(v, body)]
        self.handed = [r for o in strip.narrow for r in o.results if r in read]

    @property
    def type(self) -> str:
        """Of the vector."""
        return self.piece.type(self.c)

    # ------------------------------------------------------------ before the loop

    def start(self) -> None:
        """Declare what lasts for the whole group."""
        for o in self.loads:
            self.arrays[o.result] = self.array(ctype_of(o.result), " = {0}")
        for v in self.drawn:
            self.arrays[v] = self.array(I64, " = {0}")
        for v in self.handed:
            if v not in self.arrays:
                self.arrays[v] = self.array(ctype_of(v))
        self.accs = [self.accumulator(self.op.kinds.data[k].data) for k in self.results]

    def array(self, c: CType, start: str = "") -> str:
        name = self.out.name("a")
        aligned = "__attribute__((aligned(64)))"
        self.out.line(f"{c.memory} {name}[{self.strip.members}] {aligned}{start};")
        return name

    def accumulator(self, kind: str) -> str:
        name = self.out.name("v")
        self.out.line(f"{self.type} {name} = {splat(self.piece, self.c, START[kind])};")
        return name

    # ------------------------------------------------------------ in the loop

    @contextmanager
    def loop(self, p: str, begin: str, end: str, guard: str) -> Generator[None]:
        """The loop over strips; what it is entered for is done for each member, at position `p`."""
        first, members = f"{p}_first", self.strip.members
        head = f"for (int64_t {first} = {begin}; {first} < {end}; {first} += {members})"
        with self.out.block(guard + head):
            self.out.line(f"const int {self.count} = (int)min64({members}, {end} - {first});")
            with self.each(p):
                self.gather()
            self.compute()
            if not self.rest:
                yield
                return
            with self.each(p):
                self.hand_on()
                yield

    @contextmanager
    def each(self, p: str) -> Generator[None]:
        """A loop over the members of a strip."""
        lane = self.lane
        with self.out.block(f"for (int {lane} = 0; {lane} < {self.count}; ++{lane})"):
            self.out.line(f"const int64_t {p} = {p}_first + {lane};")
            yield

    def gather(self) -> None:
        """Lay what a member reads beside what others read."""
        for o in needed_lookups(self.op, [*self.loads, *self.dropouts]):
            self.code.emit(o)
        for o in self.loads:
            at = self.code.address(o.buffer, o.row)
            self.out.line(f"{self.arrays[o.result]}[{self.lane}] = {at}[0];")
        for v in self.drawn:
            self.out.line(f"{self.arrays[v]}[{self.lane}] = {self.code.text(v)};")

    def compute(self) -> None:
        """All lanes of a strip that was gathered."""
        for o in self.strip.narrow:
            if isinstance(o, rows.LoadOp):
                self.bind_load(o)
            elif isinstance(o, rows.DropoutOp):
                self.dropout(o)
            else:
                self.window.emit(o)
        self.reduce()
        for v in self.handed:
            if not isinstance(v.owner, rows.LoadOp):
                text = self.window.here[v][self.piece]
                self.out.line(store(ctype_of(v), self.piece, self.arrays[v], text))

    def bind_load(self, op: rows.LoadOp) -> None:
        at = self.arrays[op.result]
        is_mask = ctype_of(op.result) is I1
        text = load_mask(self.c, self.piece, at) if is_mask else load(self.c, self.piece, at)
        self.window.bind(op.result, {self.piece: text})

    def dropout(self, op: rows.DropoutOp) -> None:
        x, site, p = self.window.piece_of(op.x), self.code.numbers.site(op), op.p.value.data
        drawn = f"{self.arrays[op.row]}, {self.code.text(op.key)}, {site}, {float(p)!r}"
        self.window.bind(op.result, {self.piece: f"dropout_{self.type}({x(self.piece)}, {drawn})"})

    def reduce(self) -> None:
        """Add the lanes of the members that there are to what was before."""
        if not self.results:
            return
        live, mask = self.out.name("v"), self.piece.mask(self.c)
        self.out.line(f"const {mask} {live} = FIRST({mask}, {self.piece.width}, {self.count});")
        for k, acc in zip(self.results, self.accs, strict=True):
            kind, v = self.op.kinds.data[k].data, self.op.yielded.values[k]
            start = splat(self.piece, self.c, START[kind])
            x = self.window.piece_of(v)(self.piece)
            kept = f"SELECT({self.type}, {mask}, {live}, {x}, {start})"
            self.out.line(f"{acc} = {combine(kind, acc, kept, self.c, self.piece)};")

    def hand_on(self) -> None:
        """Bind what the rest of a member reads of the strip."""
        for v in self.handed:
            self.code.place[v] = Scalar(f"{self.arrays[v]}[{self.lane}]")

    # ------------------------------------------------------------ after the loop

    def finish(self) -> dict[int, Place]:
        """The reduced numbers, by the number of the result."""
        found: dict[int, Place] = {}
        for k, acc in zip(self.results, self.accs, strict=True):
            name, kind = self.out.name("s"), self.op.kinds.data[k].data
            self.out.line(f"{self.c.name} {name} = fold_{kind}_{self.type}({acc});")
            found[k] = Scalar(name)
        return found


# ---------------------------------------------------------------- helpers


def inner_operands(op: Operation) -> list[SSAValue]:
    """All that an op and its body read."""
    return [x for o in op.walk() for x in o.operands]


def rest_of(op: rows.SegmentOp, strip: Strip) -> list[Operation]:
    """The ops of the body that remain to be done member by member."""
    narrow, y, body = set(strip.narrow), op.yielded, op.body.block
    read = {v for v in y.values if not strip.holds(v, body)}
    found: list[Operation] = []
    for o in reversed(list(body.ops)):
        if o is y or o in narrow:
            continue
        if not isinstance(o, rows.LookupOp) or any(r in read for r in o.results):
            found.insert(0, o)
            read |= set(inner_operands(o))
    return found


def needed_lookups(
    op: rows.SegmentOp, readers: list[rows.LoadOp | rows.DropoutOp]
) -> list[Operation]:
    """The look-ups that lead to the rows of loads and dropouts, in order."""
    read = {o.row for o in readers}
    found: list[Operation] = []
    for o in reversed(list(op.body.block.ops)):
        if isinstance(o, rows.LookupOp) and o.result in read:
            found.insert(0, o)
            read.add(o.row)
    return found
