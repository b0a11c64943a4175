"""C for row-wise ops: vector registers where all rows have one length, plain loops over memory
elsewhere.

Runs of ops that treat every feature alike form a group. A group is printed once when its features
fit into registers, else as a loop over feature tiles, so a segment sum keeps its tile in registers
over all its edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra import rows
from ...dialects.intra.bindings import pitch
from ...dialects.intra.strips import strip_of
from ...dialects.intra.syntax import length
from ..common.c_types import I1, CType, Piece, Vectors, ctype
from ..common.scalars import (
    START,
    ctype_of,
    looked_up,
    scalar,
    start_text,
)
from ..common.writer import Writer
from . import lane_reductions, member_loops, memory_rows
from .lane_groups import featurewise, float_type, repeated
from .numbers import Numbers
from .register_code import Window
from .row_values import (
    Memory,
    Place,
    Registers,
    Scalar,
    cast_text,
    combine,
    load,
    splat,
    spread_text,
    store,
)
from .strips import StripCode

REGISTER_PIECES = 8
"""Pieces of one row kept in registers at a time."""
STACK_ROW_BYTES = 64 * 1024
"""A longer row lies on the heap: whole weight tensors pass through a nest as one row."""


@dataclass(frozen=True)
class HubPlan:
    """How a nest's segment treats rows with very many edges: pieces are reduced first, into
    `partials`.

    `piece` is the range of edges while the pieces are reduced, None in the rows' own stage; a
    partial is an array and its row length.
    """

    segment: rows.SegmentOp
    partials: tuple[tuple[str, int], ...]
    piece: tuple[str, str] | None = None


class RowCode:
    """Prints ops of one scope (a row stage, or the body of a segment) into a writer."""

    def __init__(
        self,
        out: Writer,
        names: dict[SSAValue, Place],
        vectors: Vectors,
        prefetch: int,
        numbers: Numbers,
        hubs: HubPlan | None = None,
        matrices: Mapping[rows.MatmulOp, str] | None = None,
        alone: bool = False,
    ) -> None:
        self.alone = alone
        """Whether the nest has one row, of which threads share loops within it."""
        self.hubs = hubs
        self.matrices = matrices or {}
        """Where the matrices of products in segments lie: rows of whole vectors."""
        self.out = out
        self.place = names
        self.vectors = vectors
        self.prefetch = prefetch
        self.numbers = numbers
        self.group: list[Operation] = []
        self.needed: set[SSAValue] = set()

    # ------------------------------------------------------------ a list of ops

    def run(self, ops: Sequence[Operation], live_out: Iterable[SSAValue] = ()) -> None:
        """Print `ops` in order; `live_out` are results read afterwards."""
        ops = list(ops)
        self.needed = set(live_out)
        for op in ops:
            if self.depends_on_group(op):
                self.close_group_unless(op)
            if self.lies_there(op):
                continue
            width = featurewise(op)
            if width is None:
                if not self.is_lookup(op):
                    self.close_group()
                self.emit(op)
            else:
                if self.group and self.tile_of(self.group[0]) != self.tile_of(op):
                    self.close_group()
                self.group.append(op)
        self.close_group()

    def lies_there(self, op: Operation) -> bool:
        """Whether nothing is to be done: another shape of a row in memory, or a store of what was
        computed in its place.
        """
        if isinstance(op, rows.ReshapeOp) and isinstance(at := self.place.get(op.x), Memory):
            self.place[op.result] = at
            return True
        return (
            isinstance(op, rows.StoreOp)
            and isinstance(at := self.place.get(op.value), Memory)
            and at.address == self.address(op.buffer, op.row)
        )

    def depends_on_group(self, op: Operation) -> bool:
        made = {r for g in self.group for r in g.results}
        return any(x in made for o in op.walk() for x in o.operands)

    def close_group_unless(self, op: Operation) -> None:
        """An op on the group's rows joins it when it is featurewise of the same width; scalars of
        it do not.
        """
        made = {r for g in self.group for r in g.results}
        scalars = any(x in made and length(x) == 1 for o in op.walk() for x in o.operands)
        if scalars or self.tile_of(op) != self.tile_of(self.group[0]):
            self.close_group()

    def is_lookup(self, op: Operation) -> bool:
        """Ops that print nothing or one scalar, and read nothing of an open group."""
        return (
            all(length(r) == 1 or isinstance(op, rows.LoadOp) for r in op.results)
            and not op.regions
        )

    # ------------------------------------------------------------ groups

    def tile_of(self, op: Operation) -> tuple[int | None, CType | None]:
        """What the ops of one group share: the row length and the type in registers."""
        return featurewise(op), float_type(op)

    def close_group(self) -> None:
        if not self.group:
            return
        ops, self.group = self.group, []
        width = featurewise(ops[0])
        assert width is not None
        c = float_type(ops[0])
        assert c is not None
        limit = REGISTER_PIECES * self.vectors.lanes(c)
        outside = self.read_outside(ops)
        for op in ops:  # before any loop, so that all of it finds them
            for x in repeated(op):
                if width > limit or not self.spreads(x, op.results[0]):
                    self.memory(x)
            for x in self.of_other_lanes(op, c):
                self.memory(x)
            if isinstance(op, rows.MatmulOp):
                self.memory(op.x)
        if width <= limit:
            Window(self, c, self.vectors.pieces(width, c), "0").run(ops)
            return
        kept = {v: self.declare_array(v) for v in outside if length(v) > 1}
        # scalars of a mixed segment are computed alike in every tile
        for v in outside:
            if length(v) == 1:
                name = self.out.name("s")
                self.out.line(f"{ctype_of(v).name} {name} = 0;")
                self.place[v] = Scalar(name)
        main = width // limit * limit
        tile = self.vectors.pieces(limit, c)
        with self.out.block(f"for (int f = 0; f < {main}; f += {limit})"):
            Window(self, c, tile, "f", kept).run(ops)
        if width > main:
            with self.out.block(""):
                rest = self.vectors.pieces(width - main, c)
                Window(self, c, rest, str(main), kept).run(ops)
        for v, name in kept.items():
            self.place[v] = Memory(name, padded=True)

    def of_other_lanes(self, op: Operation, c: CType) -> list[SSAValue]:
        """Truth values in registers that were made beside numbers of another type than `c`."""
        used = dict.fromkeys(x for o in op.walk() for x in o.operands if x in self.place)
        masks = (x for x in used if not isinstance(x.type, MemRefType | IndexType))
        places = ((x, self.place[x]) for x in masks if ctype_of(x) is I1 and length(x) > 1)
        return [x for x, p in places if isinstance(p, Registers) and p.lanes is not c]

    def spreads(self, x: SSAValue, result: SSAValue) -> bool:
        """Whether vectors of a row have all that each piece of a longer one repeats."""
        c, times, place = ctype_of(x), length(result) // length(x), self.place[x]
        if not isinstance(place, Registers):
            return False
        return all(
            any(spread_text(p, q, name, c, times) for q, name in place.names.items())
            for p in self.vectors.pieces(length(result), c)
        )

    def read_outside(self, ops: Sequence[Operation]) -> list[SSAValue]:
        inside = set(ops)

        def leaves(v: SSAValue) -> bool:
            return v in self.needed or any(
                top_in(u.operation, ops[0]) not in inside for u in v.uses
            )

        return [r for op in ops for r in op.results if leaves(r)]

    # ------------------------------------------------------------ places

    def address(self, buffer: SSAValue, row: SSAValue) -> str:
        return f"({self.text(buffer)} + {self.text(row)} * {pitch(buffer)})"

    def matrix(self, op: rows.MatmulOp) -> tuple[str, int]:
        """Where the matrix of a product lies, and numbers from one of its rows to the next."""
        lanes = self.vectors.lanes(ctype_of(op.x))
        return self.matrices[op], -(-length(op.result) // lanes) * lanes

    def text(self, v: SSAValue) -> str:
        """The C expression of a scalar, an index or a buffer pointer."""
        p = self.place[v]
        if isinstance(p, Scalar):
            return p.text
        if isinstance(p, Memory):
            return f"{p.address}[0]"
        (name,) = p.names.values()
        return name

    def memory(self, v: SSAValue) -> str:
        """The address of the row's numbers, spilled from registers if need be."""
        p = self.place[v]
        if isinstance(p, Memory):
            return p.address
        c = ctype_of(v)
        name = self.declare_array(v)
        if isinstance(p, Scalar):
            self.out.line(f"{name}[0] = {p.text};")
        else:
            for piece, var in p.names.items():
                self.out.line(store(c, piece, f"{name} + {piece.offset}", var, padded=True))
        self.place[v] = Memory(name, padded=True)
        return name

    def write(self, v: SSAValue, address: str) -> None:
        """Store a row at an address."""
        p, c = self.place[v], ctype_of(v)
        if length(v) == 1:
            self.out.line(f"{address}[0] = {self.text(v)};")
        elif isinstance(p, Registers):
            for piece, var in p.names.items():
                self.out.line(store(c, piece, f"{address} + {piece.offset}", var))
        else:
            self.out.line(f"memcpy({address}, {self.memory(v)}, sizeof({c.memory}) * {length(v)});")

    def declare_array(self, v: SSAValue) -> str:
        """The name of new memory for a row, padded."""
        name, c = self.out.name("a"), ctype_of(v)
        count = self.vectors.padded(length(v), c)
        if count * c.bytes > STACK_ROW_BYTES:
            self.out.line(f"HEAP_ROW({c.memory}, {name}, {count});")
        else:
            self.out.line(f"{c.memory} {name}[{count}] __attribute__((aligned(64)));")
        return name

    def scalar(self, v: SSAValue, text: str) -> None:
        """Bind a one-number result to a fresh variable."""
        name = self.out.name("s")
        c = ctype_of(v) if not isinstance(v.type, IndexType) else ctype(v.type)
        self.out.line(f"const {c.name} {name} = {text};")
        self.place[v] = Scalar(name)

    # ------------------------------------------------------------ ops outside groups

    def emit(self, op: Operation) -> None:
        """Print one op that is no member of a group."""
        match op:
            case rows.LookupOp():
                table = self.text(op.table)
                self.scalar(op.result, looked_up(op.table, table, self.text(op.row)))
            case rows.LengthOp():
                at = self.text(op.row)
                self.scalar(
                    op.result,
                    f"({self.text(op.offsets)}[{at} + 1] - {self.text(op.offsets)}[{at}])",
                )
            case rows.FirstOp():
                self.place[op.result] = Scalar("(int64_t)0")
            case rows.PositionOp():
                self.scalar(op.result, self.text(op.row))
            case rows.CountOp():
                self.scalar(op.result, self.text(op.size))
            case rows.LoadOp():
                self.load(op)
            case rows.StoreOp() | rows.TotalOp():
                memory_rows.store(self, op)
            case rows.SegmentOp():
                self.segment(op)
            case rows.ReshapeOp():
                self.place[op.result] = self.place[op.x]
            case rows.ConstOp() if length(op.result) == 1:
                self.place[op.result] = Scalar(self.numbers.const(op))
            case rows.ApplyOp() if length(op.result) == 1:
                xs, c = [self.text(x) for x in op.xs], ctype_of(op.xs[-1])
                self.scalar(op.result, scalar(op.fn.data, xs, c, op.parameters()))
            case rows.CastOp() if length(op.result) == 1:
                self.scalar(op.result, cast_text(op, self.text(op.x)))
            case rows.BroadcastOp() if length(op.result) == 1:
                self.place[op.result] = self.place[op.x]
            case rows.FoldOp() | rows.DotOp() if (found := lane_reductions.runs(op)) is not None:
                lane_reductions.emit(self, op, *found)
            case _:
                memory_rows.emit(self, op)

    def load(self, op: rows.LoadOp) -> None:
        c = ctype_of(op.result)
        if length(op.result) == 1:
            plain = f"{self.address(op.buffer, op.row)}[0]"
            if op.otherwise is not None:
                plain = f"({self.text(op.row)} < 0 ? {self.text(op.otherwise)} : {plain})"
            self.scalar(op.result, plain)
            return
        name = self.out.name("q")
        at = self.address(op.buffer, op.row)
        if op.otherwise is not None:
            at = f"({self.text(op.row)} < 0 ? {self.memory(op.otherwise)} : {at})"
        self.out.line(f"const {c.memory} *{name} = {at};")
        self.place[op.result] = Memory(name)

    # ------------------------------------------------------------ segments

    def strip_of(self, op: rows.SegmentOp) -> StripCode | None:
        """The code of what several members of a group share a vector for, where they do. Raises
        PassFailedException where nothing may.
        """
        if op.in_strips is None:
            return None
        if (strip := strip_of(op, self.vectors.bytes)) is None:
            raise PassFailedException(
                "a group is reduced in strips that has no numbers for lanes of a vector: let "
                "`schedule` decide it"
            )
        return StripCode(self, op, strip)

    def segment(self, op: rows.SegmentOp) -> None:
        """A segment that is not featurewise: its body is a scope of its own, accumulators by
        length.
        """
        strip = self.strip_of(op)
        accs = self.accumulators(op, strip, lambda r, start: self.accumulator(r, start))
        y = op.yielded
        with member_loops.each_member(self, op, strip, "0", lambda load: length(load.result)):
            # what the body spills to memory is known in the body only
            place = dict(self.place)
            of_nest = self.vectors, self.prefetch, self.numbers
            inner = RowCode(self.out, place, *of_nest, None, self.matrices)
            todo = [o for o in op.body.block.ops if o is not y] if strip is None else strip.rest
            inner.run(todo, y.values)
            for k, acc in accs.items():
                inner.accumulate(y.values[k], acc, op.kinds.data[k].data)
        accs |= {} if strip is None else strip.finish()
        member_loops.gather_hub(self, op, lambda k, at: self.add_partial(op, accs[k], k, at))
        for k, acc in accs.items():
            self.place[op.results[k]] = acc
        member_loops.reset_extremes(self, op, accs)

    def accumulators(
        self,
        op: rows.SegmentOp,
        strip: StripCode | None,
        declare: Callable[[OpResult, float], Place],
    ) -> dict[int, Place]:
        """Where results are added up member by member, by their number; a strip keeps its own."""
        if strip is not None:
            strip.start()
        own = [] if strip is None else strip.results
        return {
            k: declare(r, START[op.kinds.data[k].data])
            for k, r in enumerate(op.results)
            if k not in own
        }

    def add_partial(self, op: rows.SegmentOp, acc: Place, k: int, address: str) -> None:
        """Add a row in memory to an accumulator."""
        r, kind = op.results[k], op.kinds.data[k].data
        c = ctype_of(r)
        match acc:
            case Scalar(name):
                self.out.line(f"{name} = {combine(kind, name, f'({address})[0]', c)};")
            case Registers(names):
                for piece, name in names.items():
                    at = f"{address} + {piece.offset}" if piece.offset else address
                    x = load(c, piece, at)
                    self.out.line(f"{name} = {combine(kind, name, x, c, piece)};")
            case Memory(name):
                with self.out.block(f"for (int f = 0; f < {length(r)}; ++f)"):
                    self.out.line(
                        f"{name}[f] = {combine(kind, f'{name}[f]', f'({address})[f]', c)};"
                    )

    def accumulator(self, r: SSAValue, start: float) -> Place:
        c = ctype_of(r)
        if length(r) == 1:
            name = self.out.name("s")
            self.out.line(f"{c.name} {name} = {start_text(start, c)};")
            return Scalar(name)
        if c.vector is not None and length(r) <= REGISTER_PIECES * self.vectors.lanes(c):
            return self.registers(self.vectors.pieces(length(r), c), c, start)
        name = self.declare_array(r)
        with self.out.block(f"for (int f = 0; f < {length(r)}; ++f)"):
            self.out.line(f"{name}[f] = {start_text(start, c)};")
        return Memory(name, padded=True)

    def registers(self, tile: Iterable[Piece], c: CType, start: float) -> Registers:
        """A variable for each piece, filled with a number."""
        names = {piece: self.out.name("v") for piece in tile}
        for piece, name in names.items():
            self.out.line(f"{piece.type(c)} {name} = {splat(piece, c, start)};")
        return Registers(names)

    def accumulate(self, v: SSAValue, acc: Place, kind: str) -> None:
        c = ctype_of(v)
        match acc:
            case Scalar(name):
                # no FMA: GCC vectorises what is added, where it may add up number by number
                self.out.line(f"{name} = {combine(kind, name, self.text(v), c)};")
            case Registers(names):
                added = Window(self, c, list(names), "0").combined(kind, v)
                for piece, name in names.items():
                    self.out.line(f"{name} = {added(name, piece)};")
            case Memory(name):
                x = self.memory(v)
                with self.out.block(f"for (int f = 0; f < {length(v)}; ++f)"):
                    self.out.line(f"{name}[f] = {combine(kind, f'{name}[f]', f'{x}[f]', c)};")

    def reset(self, r: SSAValue, acc: Place) -> None:
        c = ctype_of(r)
        match acc:
            case Scalar(name):
                self.out.line(f"{name} = 0;")
            case Registers(names):
                for piece, name in names.items():
                    self.out.line(f"{name} = {splat(piece, c, 0.0)};")
            case Memory(name):
                self.out.line(f"memset({name}, 0, sizeof({c.memory}) * {length(r)});")


# ---------------------------------------------------------------- helpers


def top_in(op: Operation, sibling: Operation) -> Operation:
    """The op of the sibling's block that holds `op`."""
    while op.parent is not sibling.parent:
        up = op.parent_op()
        if up is None:
            return op
        op = up
    return op
