"""C for the narrow rows of several members of a group at a time, as lanes of one vector.

A loop over a group takes a strip of members in a step: what they read is laid side by side, what
follows from it is computed for all lanes, and sums are kept for each lane until the group is done.
What wide rows need of it is handed to them member by member. Lanes beyond the last member hold the
numbers of some other member; nothing reduced sees them.

Single numbers are laid side by side in memory, by as many steps as there are members. Rows of
several are joined in registers: a vector that is read right after its parts were written waits for
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.intra import rows
from ...dialects.intra.strips import Strip
from ...dialects.intra.syntax import length
from ..common.c_types import I1, CType, Piece, ctype
from ..common.scalars import START, ctype_of
from .register_code import Window, splat, store_piece
from .row_values import Memory, Place, Registers, Scalar, combine, load

if TYPE_CHECKING:
    from .row_code import RowCode


class Lanes(Window):
    """Ops on the rows of a strip: a value that is made for a member lies in lanes of its own."""

    def piece_of(self, v: SSAValue) -> Callable[[Piece], str]:
        known = self.here.get(v)
        return super().piece_of(v) if known is None else known.__getitem__


class StripCode:
    """Prints the narrow part of one segment; `here` are rows in registers that `code` does not know
    of."""

    def __init__(
        self,
        code: RowCode,
        op: rows.SegmentOp,
        strip: Strip,
        here: Mapping[SSAValue, dict[Piece, str]],
    ) -> None:
        self.code, self.out, self.op, self.strip, self.outer = code, code.out, op, strip, here
        self.c: CType = ctype(strip.element)
        self.piece = Piece(0, strip.lanes)
        self.window = Lanes(code, self.c, [self.piece], "0")
        self.count, self.lane = self.out.name("n"), self.out.name("l")
        self.arrays: dict[SSAValue, str] = {}
        self.rest = rest_of(op, strip)
        read = {x for o in self.rest for x in inner_operands(o)}
        body = op.body.block
        self.results = [k for k, v in enumerate(op.yielded.values) if strip.holds(v, body)]
        self.handed = [r for o in strip.narrow for r in o.results if r in read]

    @property
    def type(self) -> str:
        return self.piece.type(self.c)

    # ------------------------------------------------------------ before the loop

    def start(self) -> None:
        """Declare what lasts for the whole group."""
        for o in self.strip.narrow:
            if isinstance(o, rows.LoadOp) and self.strip.width == 1:
                self.arrays[o.result] = self.array(ctype_of(o.result), " = {0}")
        for v in self.handed:
            if v not in self.arrays:
                self.arrays[v] = self.array(ctype_of(v))
        for v in self.outer_rows():
            self.window.here[v] = {self.piece: self.side_by_side(v)}
        self.accs = [self.accumulator(self.op.kinds.data[k].data) for k in self.results]

    def array(self, c: CType, start: str = "") -> str:
        name = self.out.name("a")
        aligned = "__attribute__((aligned(64)))"
        self.out.line(f"{c.memory} {name}[{self.strip.lanes}] {aligned}{start};")
        return name

    def outer_rows(self) -> list[SSAValue]:
        """Rows of several numbers that are the same for all members."""
        applied = (o for o in self.strip.narrow if isinstance(o, rows.ApplyOp))
        reduced = (self.op.yielded.values[k] for k in self.results)
        read = [*(x for o in applied for x in o.xs), *reduced]
        inside = set(self.strip.narrow)
        return list(dict.fromkeys(x for x in read if length(x) > 1 and x.owner not in inside))

    def side_by_side(self, v: SSAValue) -> str:
        """A vector with a row once for each member."""
        row = Piece(0, self.strip.width)
        place = self.code.place.get(v)
        names = place.names if isinstance(place, Registers) else self.outer.get(v, {})
        x = names.get(row) or load(self.c, row, self.code.memory(v))
        return self.joined([x] * self.strip.members)

    def joined(self, parts: list[str]) -> str:
        """A vector made of as many rows as there are members."""
        width = self.strip.width
        while len(parts) > 1:
            width *= 2
            t = Piece(0, width).type(self.c)
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [f"join_{t}({a}, {b})" for a, b in pairs]
        name = self.out.name("v")
        self.out.line(f"const {self.type} {name} = {parts[0]};")
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
            if self.strip.width == 1:
                with self.each(p):
                    self.gather()
            else:
                self.gather_rows(p, end)
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

    def compute(self) -> None:
        """All lanes of a strip that was gathered."""
        for o in self.strip.narrow:
            if not isinstance(o, rows.LoadOp):
                self.window.emit(o)
            elif self.strip.width == 1:
                self.bind_load(o)
        self.reduce()
        for v in self.handed:
            if v in self.window.here and not (self.strip.width == 1 and is_loaded(v)):
                text = self.window.here[v][self.piece]
                self.out.line(store_piece(ctype_of(v), self.piece, self.arrays[v], text))

    def gather(self) -> None:
        """Lay the numbers that a member reads beside those of others."""
        for o in needed_lookups(self.op, self.strip.narrow):
            self.code.emit(o)
        for o in self.loads():
            at = self.code.address(o.buffer, o.row)
            self.out.line(f"{self.arrays[o.result]}[{self.lane}] = {at}[0];")

    def loads(self) -> list[rows.LoadOp]:
        return [o for o in self.strip.narrow if isinstance(o, rows.LoadOp)]

    def bind_load(self, op: rows.LoadOp) -> None:
        at = self.arrays[op.result]
        is_mask = ctype_of(op.result) is I1
        text = self.window.load_mask(at, self.piece) if is_mask else load(self.c, self.piece, at)
        self.window.bind(op.result, {self.piece: text})

    def gather_rows(self, p: str, end: str) -> None:
        """Join the rows that the members read; those beyond the last are its own once more."""
        parts: dict[rows.LoadOp, list[str]] = {o: [] for o in self.loads()}
        for k in range(self.strip.members):
            at = f"{p}_{k}"
            position = f"min64({p}_first + {k}, {end} - 1)" if k else f"{p}_first"
            self.out.line(f"const int64_t {at} = {position};")
            self.code.place[self.op.position] = Scalar(at)
            if not self.rest:
                later = f"({at} + {p}_ahead)"
                self.code.prefetch_rows(self.op, later, "0", lambda o: length(o.result))
            for o in needed_lookups(self.op, self.strip.narrow):
                self.code.emit(o)
            for o in parts:
                parts[o].append(self.row_of(o))
        self.code.place[self.op.position] = Scalar(p)
        for o, found in parts.items():
            self.window.here[o.result] = {self.piece: self.joined(found)}

    def row_of(self, op: rows.LoadOp) -> str:
        """What one member reads, as wide as all others' rows."""
        row, at = Piece(0, self.strip.width), self.code.address(op.buffer, op.row)
        if length(op.result) > 1:
            return load(self.c, row, at)
        return f"SPLAT({row.type(self.c)}, {at}[0])"

    def reduce(self) -> None:
        """Add the lanes of the members that there are to what was before."""
        if not self.results:
            return
        live, mask = self.out.name("v"), self.piece.mask(self.c)
        numbers = self.count if self.strip.width == 1 else f"{self.count} * {self.strip.width}"
        self.out.line(f"const {mask} {live} = first_{mask}({numbers});")
        for k, acc in zip(self.results, self.accs, strict=True):
            kind, v = self.op.kinds.data[k].data, self.op.yielded.values[k]
            start = splat(self.piece, self.c, START[kind])
            x = self.window.piece_of(v)(self.piece)
            kept = f"SELECT({self.type}, {mask}, {live}, {x}, {start})"
            self.out.line(f"{acc} = {combine(kind, acc, kept, self.c, self.piece)};")

    def hand_on(self) -> None:
        """Bind what a member's wide rows read of the strip."""
        width = self.strip.width
        for v in self.handed:
            at = f"{self.arrays[v]} + {self.lane} * {width}"
            self.code.place[v] = Scalar(f"({at})[0]") if length(v) == 1 else Memory(f"({at})")

    # ------------------------------------------------------------ after the loop

    def finish(self) -> dict[int, Place]:
        """The reduced narrow rows, by the number of the result."""
        return {
            k: self.folded(self.op.results[k], acc, self.op.kinds.data[k].data)
            for k, acc in zip(self.results, self.accs, strict=True)
        }

    def folded(self, r: OpResult, acc: str, kind: str) -> Place:
        c, width = self.c, length(r)
        if self.strip.width == 1:
            name = self.out.name("s")
            self.out.line(f"{c.name} {name} = fold_{kind}_{self.type}({acc});")
            return Scalar(name)
        kept, parts = Piece(0, self.strip.width), [acc]
        lanes = self.strip.lanes
        while lanes > self.strip.width:
            t, lanes = Piece(0, lanes).type(c), lanes // 2
            parts = [f"{half}_{t}({x})" for x in parts for half in ("low", "high")]
        name = self.out.name("v")
        self.out.line(f"{kept.type(c)} {name} = {parts[0]};")
        for x in parts[1:]:
            self.out.line(f"{name} = {combine(kind, name, x, c, kept)};")
        return Scalar(f"{name}[0]") if width == 1 else Registers({kept: name})


# ---------------------------------------------------------------- helpers


def is_loaded(v: SSAValue) -> bool:
    return isinstance(v.owner, rows.LoadOp)


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


def needed_lookups(op: rows.SegmentOp, narrow: tuple[Operation, ...]) -> list[Operation]:
    """The look-ups that lead to the rows that a strip loads, in order."""
    read = {o.row for o in narrow if isinstance(o, rows.LoadOp)}
    found: list[Operation] = []
    for o in reversed(list(op.body.block.ops)):
        if isinstance(o, rows.LookupOp) and o.result in read:
            found.insert(0, o)
            read.add(o.row)
    return found
