"""C for one tile of features: ops on rows of one length, printed vector by vector in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.intra import rows
from ...dialects.intra.syntax import length
from ..common.c_types import I1, CType, Piece
from ..common.scalars import ctype_of, start_text
from . import member_loops
from .c_functions import vector
from .row_values import (
    Memory,
    Place,
    Registers,
    Scalar,
    add_product,
    combine,
    factors,
    in_lanes,
    load,
    load_mask,
    splat,
    spread_text,
    store,
)

if TYPE_CHECKING:
    from .row_code import RowCode


class Window:
    """One tile of features: prints a group's ops piece by piece."""

    def __init__(
        self,
        rows_: RowCode,
        c: CType,
        tile: list[Piece],
        base: str,
        kept: dict[SSAValue, str] | None = None,
    ) -> None:
        self.rows = rows_
        self.out = rows_.out
        self.c = c
        self.tile = tile
        self.base = base
        self.kept = kept or {}
        self.looped = kept is not None
        self.here: dict[SSAValue, dict[Piece, str]] = {}

    def at(self, address: str, piece: Piece) -> str:
        parts = [address, *(x for x in (self.base, str(piece.offset)) if x != "0")]
        return " + ".join(parts)

    def run(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            self.emit(op)
        for v, names in self.here.items():
            if v in self.kept:
                for piece, name in names.items():
                    at = self.at(self.kept[v], piece)
                    self.out.line(store(ctype_of(v), piece, at, name, padded=True))
            elif not self.looped:
                self.rows.place[v] = Registers(names, self.c)

    def piece_of(self, v: SSAValue) -> Callable[[Piece], str]:
        """A function from a piece to the C expression of `v` there."""
        c = ctype_of(v)
        if length(v) == 1:
            return self.repeated(v)
        place = self.here.get(v) or self.rows.place[v]
        if isinstance(place, dict):
            return place.__getitem__
        if isinstance(place, Registers):
            return place.names.__getitem__
        assert isinstance(place, Memory)
        address, padded = place.address, place.padded
        if c is I1:
            return lambda p: load_mask(self.c, p, self.at(address, p), padded)
        return lambda p: load(c, p, self.at(address, p), padded)

    def operand(self, x: SSAValue, result: SSAValue) -> Callable[[Piece], str]:
        """The same of an operand, where one of its numbers may stand for several of the result."""
        times = length(result) // length(x)
        return self.expanded(x, times) if 1 < length(x) < length(result) else self.piece_of(x)

    def combined(self, kind: str, v: SSAValue) -> Callable[[str, Piece], str]:
        """A function from an accumulator and a piece to the C expression of both together."""
        of = factors(kind, v)  # those of an earlier group's tiles may not be kept
        if of is not None and all(x in self.here or x in self.rows.place for x in of):
            a, b = (self.operand(x, v) for x in of)
            return lambda acc, p: add_product(a(p), b(p), acc, self.c, p.width)
        x = self.piece_of(v)
        return lambda acc, p: combine(kind, acc, x(p), self.c, p)

    def repeated(self, v: SSAValue) -> Callable[[Piece], str]:
        """One number in every lane."""
        c, text = ctype_of(v), self.rows.text(v)

        def spread(p: Piece) -> str:
            if p.width == 1:
                return text
            if c is I1:
                return f"(({p.mask(self.c)}){{0}} - ({text} != 0))"
            return f"SPLAT({p.type(c)}, {text})"

        return spread

    def expanded(self, v: SSAValue, times: int) -> Callable[[Piece], str]:
        """Each number of a row `times` times side by side: of vectors of the row where one of them
        has all that a piece needs, else from memory: one or two of the numbers, or all by
        themselves."""
        c, vectors = ctype_of(v), self.vectors_of(v)

        def number(lane: int) -> str:
            first = str(lane) if self.base == "0" else f"({self.base} + {lane})"
            return f"{self.rows.memory(v)}[{first} / {times}]"

        def either(p: Piece) -> str:
            t, m, first = p.type(c), p.mask(c), f"({self.base} + {p.offset})"
            kept = f"FIRST({m}, {p.width}, (int)({times} - {first} % {times}))"
            sides = (number(p.offset), number(p.offset + p.count - 1))
            return f"SELECT({t}, {m}, {kept}, {', '.join(f'SPLAT({t}, {x})' for x in sides)})"

        def spread(p: Piece) -> str:
            # tiles of wide rows begin at whole pieces, so a base changes nothing here
            if p.width == 1:
                return number(p.offset)
            for q, text in vectors.items():
                if found := spread_text(p, q, text, c, times):
                    return found
            if p.offset % times + p.count <= times and (self.base == "0" or times % p.width == 0):
                return f"SPLAT({p.type(c)}, {number(p.offset)})"
            if p.width <= times:  # of two neighbours at most
                return either(p)
            lanes = ", ".join(number(p.offset + k) for k in range(p.count))
            return f"(({p.type(c)}){{{lanes}}})"

        return spread

    def vectors_of(self, v: SSAValue) -> dict[Piece, str]:
        """The vectors of a row by their places in it: those in registers, or where it lies in
        memory those that can be read whole. None within a loop over tiles."""
        c, place = ctype_of(v), self.here.get(v) or self.rows.place[v]
        if self.base != "0":
            return {}
        if isinstance(place, Memory):
            whole = (p for p in self.rows.vectors.pieces(length(v), c) if not p.dead)
            return {p: load(c, p, self.at(place.address, p)) for p in whole}
        names = place.names if isinstance(place, Registers) else place
        return dict(names) if isinstance(names, dict) else {}

    def bind(self, v: SSAValue, texts: dict[Piece, str]) -> None:
        c = ctype_of(v)
        names: dict[Piece, str] = {}
        for piece, text in texts.items():
            names[piece] = self.out.name("v")
            t = piece.mask(self.c) if c is I1 else piece.type(c)
            self.out.line(f"{t} {names[piece]} = {text};")
        self.here[v] = names

    def emit(self, op: Operation) -> None:
        match op:
            case rows.ApplyOp():
                xs = [self.operand(x, op.result) for x in op.xs]
                fn, params = op.fn.data, op.parameters()
                self.bind(
                    op.result,
                    {p: vector(fn, [x(p) for x in xs], self.c, p, params) for p in self.tile},
                )
            case rows.ConstOp():
                x = self.rows.numbers.const(op)
                self.bind(op.result, {p: in_lanes(p, self.c, x) for p in self.tile})
            case rows.ReshapeOp() | rows.BroadcastOp():
                x = self.piece_of(op.x)
                self.here[op.result] = {p: x(p) for p in self.tile}
            case rows.StoreOp():
                x = self.piece_of(op.value)
                address = self.rows.address(op.buffer, op.row)
                for p in self.tile:
                    self.out.line(store(ctype_of(op.value), p, self.at(address, p), x(p)))
            case rows.TotalOp():
                added = self.combined(op.kind.data, op.value)
                address = self.rows.text(op.buffer)
                for p in self.tile:  # a chunk's own, padded (kernel_code.py)
                    at = self.at(address, p)
                    total = added(load(self.c, p, at, padded=True), p)
                    self.out.line(store(self.c, p, at, total, padded=True))
            case rows.SegmentOp():
                self.segment(op)
            case rows.MatmulOp():
                self.product(op)
            case _:
                raise AssertionError(f"{op.name} is not featurewise")

    def product(self, op: rows.MatmulOp) -> None:
        """A row times a matrix, a row of the matrix after the other."""
        x, count = self.rows.memory(op.x), length(op.x)
        matrix, apart = self.rows.matrix(op)
        self.bind(op.result, {p: splat(p, self.c, 0.0) for p in self.tile})
        self.out.line("UNROLL")
        with self.out.block(f"for (int k = 0; k < {count}; ++k)"):
            for p, name in self.here[op.result].items():
                number = f"{x}[k]" if p.width == 1 else f"SPLAT({p.type(self.c)}, {x}[k])"
                row = load(self.c, p, self.at(f"{matrix} + k * {apart}", p), padded=True)
                self.out.line(f"{name} = {add_product(number, row, name, self.c, p.width)};")

    def segment(self, op: rows.SegmentOp) -> None:
        y = op.yielded
        strip = self.rows.strip_of(op)
        accs = self.rows.accumulators(op, strip, self.start)
        inner = Window(self.rows, self.c, self.tile, self.base)
        inner.here = dict(self.here)
        tile = sum(x.count for x in self.tile)
        with member_loops.each_member(self.rows, op, strip, self.base, lambda _: tile):
            todo = op.body.block.ops if strip is None else strip.rest
            for o in todo:
                if o is y:
                    continue
                if any(length(v) > 1 for v in o.results) and not isinstance(o, rows.LoadOp):
                    inner.emit(o)
                else:
                    self.rows.emit(o)
            for k, acc in accs.items():
                kind, v = op.kinds.data[k].data, y.values[k]
                if not isinstance(acc, Registers):
                    self.rows.accumulate(v, acc, kind)
                    continue
                added = inner.combined(kind, v)
                for piece, name in acc.names.items():
                    self.out.line(f"{name} = {added(name, piece)};")
        for k, acc in ({} if strip is None else strip.finish()).items():
            accs[k] = self.kept_scalar(op.results[k], acc)

        def add(k: int, address: str) -> None:
            wide = isinstance(accs[k], Registers) and self.base != "0"
            at = f"{address} + {self.base}" if wide else address
            self.rows.add_partial(op, accs[k], k, at)

        member_loops.gather_hub(self.rows, op, add)
        for k, acc in accs.items():
            if isinstance(acc, Registers):
                self.here[op.results[k]] = acc.names
            else:
                self.rows.place[op.results[k]] = acc
        member_loops.reset_extremes(self.rows, op, accs)

    def kept_scalar(self, r: OpResult, found: Place) -> Place:
        """Where a finished number is kept: with tiles, where all of them leave it."""
        known = self.rows.place.get(r)
        if not self.looped or not isinstance(known, Scalar) or not isinstance(found, Scalar):
            return found
        self.out.line(f"{known.text} = {found.text};")
        return known

    def start(self, r: OpResult, value: float) -> Place:
        """An accumulator; that of a single number is the same in every tile."""
        if length(r) > 1:
            return self.rows.registers(self.tile, ctype_of(r), value)
        known = self.rows.place.get(r)
        if not self.looped or not isinstance(known, Scalar):
            return self.rows.accumulator(r, value)
        self.out.line(f"{known.text} = {start_text(value, ctype_of(r))};")
        return known
