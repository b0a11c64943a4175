"""CUDA C++ for one nest: blocks take chunks of its rows, tiles of rows pass through the stages of a
block together, teams of threads compute the rows of a tile.

A nest is up to four kernels: sums by group begin as 0, long groups are reduced in pieces, the nest
itself, and sums of all chunks are added in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ...dialects.intra import rows
from ...dialects.intra.schedule import WARP, GridAttr
from ...dialects.intra.syntax import length
from ..common.c_types import I1
from ..common.products import Text
from ..common.scalars import ctype_of
from ..common.writer import Writer
from .pieces import PieceCode, Pieces
from .pipeline import issues, pipeline_text
from .places import Memory
from .products import GroupedSum, Operand, Products, Sum
from .rooms import Shared, TeamMemory, Workspace
from .row_code import RowCode, Sink, said
from .team import Team
from .tiles import SLAB_BYTES
from .totals import Totals

TILES = 24 * 1024
"""Bytes of shared memory for rows that stages and products hand on."""
SHARED = 8 * 1024
"""Bytes of team memory that a block has in shared memory; where teams need more they have global
memory."""


@dataclass
class Kernel:
    """One kernel: what follows the nest's name, its own parameters (type, name, what the caller
    gives), its body, and what the caller launches it with, in C."""

    suffix: str
    parameters: list[tuple[str, str, str]]
    body: str
    blocks: str
    threads: int
    resident: int = 1
    shared: int = 0


class KernelCode:
    """Prints one nest; `names` gives the C names of the buffers and sizes it uses."""

    def __init__(self, nest: rows.TraverseOp, names: dict[SSAValue, str]) -> None:
        """Raises PassFailedException for a nest that has no grid, or is not cut."""
        if not isinstance(nest.schedule, GridAttr):
            raise PassFailedException("a nest has no grid: run `schedule-grid` before printing")
        try:
            nest.check_cut()
        except VerifyException as error:
            raise PassFailedException(str(error)) from error
        self.nest, self.names = nest, names
        self.schedule = nest.schedule
        self.numbers = nest.schedule.numbers()
        self.team = Team(self.numbers["threads"], self.numbers["lanes"])
        self.rows = self.numbers["rows"]
        self.out = Writer(1)
        self.memory = TeamMemory()
        self.workspace = Workspace()
        self.shared = Shared()
        self.local: dict[SSAValue, Operand] = {}
        self.totals = Totals(self.team, self.workspace, self.numbers["chunks"])
        self.products = Products(self.team.threads, self.rows)
        self.sums: dict[rows.OuterOp, Sum] = {}
        self.kernels: list[Kernel] = []
        self.size = self.text(nest.size)
        segments = [op for op in nest.walk() if isinstance(op, rows.SegmentOp)]
        own = [op for op in segments if op.row is nest.row]
        self.offsets = own[0].offsets if own else None
        self.in_pieces = nest.in_pieces()
        self.pieces: list[Pieces] = []

    def text(self, v: SSAValue) -> str:
        return self.names[v]

    # ------------------------------------------------------------ the kernels of the nest

    def run(self) -> list[Kernel]:
        """The kernels in the order of their launches."""
        for k, op in enumerate(self.in_pieces):
            self.pieces.append(self.pieces_of(k, op))
        if self.nest.pipeline is not None:
            self.kernels.append(self.pipeline_kernel())
        else:
            self.kernels += [self.piece_kernel(found) for found in self.pieces]
        body = self.main()
        parameters = [("char *", "ws", "ws")]
        if self.offsets is not None:
            parameters.append(("const int64_t *__restrict__ ", "cuts", "cuts"))
        parameters += self.piece_parameters()
        main = Kernel(
            "",
            parameters,
            body,
            "chunks",
            self.team.threads,
            self.numbers["resident"],
            self.shared.bytes,
        )
        zero = [zero_kernel(k, *z) for k, s in enumerate(self.sums.values()) if (z := s.zero())]
        self.kernels = [*zero, *self.kernels, main]
        self.kernels += self.combine_kernels()
        return self.kernels

    def piece_parameters(self) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        for p in self.pieces:
            found.append(("const int64_t *__restrict__ ", p.table, p.table))
            found.append(("const int64_t ", p.count, p.count))
            for r, name in zip(p.segment.results, p.partials, strict=True):
                found.append((f"{ctype_of(r).memory} *", name, name))
        return found

    def piece_table(self, op: rows.SegmentOp) -> tuple[str, int]:
        """The kind of the table of a group's pieces (runtime/sets/shares.py), and their rows."""
        if (pipeline := self.nest.pipeline) is None:
            return "pieces", self.numbers["piece"]
        return "partitions", pipeline.numbers()["remote" if issues(op) else "local"]

    def pieces_of(self, k: int, op: rows.SegmentOp) -> Pieces:
        """The names of what becomes of the pieces of a group."""
        partials = tuple(f"piece_rows{k}_{r}" for r in range(len(op.results)))
        kind, rows_of_one = self.piece_table(op)
        longest = 2 * rows_of_one if kind == "pieces" else 0
        return Pieces(op, f"group_pieces{k}", f"piece_count{k}", longest, partials)

    def one_piece(self, found: Pieces, q: str, code: PieceCode) -> None:
        """Prints how piece `q` is reduced."""
        sinks = [
            Sink(r, f"({name} + {q} * {length(r)})")
            for r, name in zip(found.segment.results, found.partials, strict=True)
        ]
        self.row_code(found, q, code).run(with_makers(found.segment), sinks)

    def row_code(self, found: Pieces, q: str, code: PieceCode) -> RowCode:
        """What prints piece `q`."""
        table, edges = found.table, self.numbers["edges"]
        plan = replace(found, piece=(f"{table}[3 * {q} + 1]", f"{table}[3 * {q} + 2]"))
        names = {**self.names, self.nest.row: f"{table}[3 * {q}]"}
        row = RowCode(code.out, code.team, code.memory, names, edges, [plan], code.ahead)
        row.written = self.nest.writes()
        return row

    def piece_kernel(self, found: Pieces) -> Kernel:
        """The pieces of long groups, one a team; from then on the main kernel adds them up."""
        out, memory = Writer(1), TeamMemory()
        body = Writer(2)
        self.one_piece(found, "q", PieceCode(body, self.team, memory))
        shared = Shared()
        self.declare_team_memory(out, memory, shared)
        count, most = self.team.count, self.numbers["chunks"]
        first, step = f"(int64_t)blockIdx.x * {count} + team", f"(int64_t)gridDim.x * {count}"
        out.line(f"for (int64_t q = {first}; q < {found.count}; q += {step}) {{")
        out.lines += body.lines
        out.line("}")
        blocks = f"fewer(({found.count} + {count - 1}) / {count}, {most})"
        return Kernel(
            "_pieces",
            [("char *", "ws", "ws"), *self.piece_parameters()],
            out.text(),
            blocks,
            self.team.threads,
            self.numbers["resident"],
            shared.bytes,
        )

    def pipeline_kernel(self) -> Kernel:
        """The partitions of both groups of a pipeline."""
        text = pipeline_text(self)
        given = [("char *", "ws", "ws"), *self.piece_parameters()]
        return Kernel("_pipeline", given, text.body, text.blocks, text.threads, 1, text.shared)

    def declare_team_memory(
        self, out: Writer, memory: TeamMemory, shared: Shared, team: Team | None = None
    ) -> None:
        """The thread's place, and the memory of its team; `team` where it is not the nest's."""
        out.line("GNNC_SHARED(shared_memory);")
        out.line("(void)shared_memory, (void)ws;")
        team = team or self.team
        team.declare(out)
        if not memory.bytes:
            return
        size, count = memory.bytes, team.count
        if size * count <= SHARED and (at := shared.take(size * count, I1)) is not None:
            out.line(f"char *const team_memory = (char *){at} + team * {size};")
            return
        at = self.workspace.take(I1, size * count * self.numbers["chunks"])
        where = f"(blockIdx.x * {count} + team) * {size}"
        out.line(f"char *const team_memory = (char *){at} + (int64_t){where};")

    # ------------------------------------------------------------ the nest itself

    def main(self) -> str:
        """The body of the kernel that is the nest."""
        self.lay_tiles()
        for op in self.nest.body.block.ops:
            if isinstance(op, rows.OuterOp):
                self.sums[op] = self.sum_of(op)
        loop = Writer(1)
        self.out = loop
        barrier = Barriers(loop)
        head = f"for (int64_t i0 = lo; i0 < hi; i0 += {self.rows})"
        with loop.block(head):
            loop.line(f"const int rows = (int)(hi - i0 < {self.rows} ? hi - i0 : {self.rows});")
            for op in self.nest.body.block.ops:
                match op:
                    case rows.StageOp():
                        barrier.before(any(x in self.local for x in inputs(op)))
                        self.stage(op)
                        barrier.written = barrier.written or bool(op.results)
                    case rows.MatmulOp():
                        barrier.before(True)
                        loop.line(said(op))
                        self.matmul(op)
                        barrier.written = True
                    case rows.OuterOp():
                        barrier.before(True)
                        loop.line(said(op))
                        self.sums[op].add(loop, self.operand(op.a), self.operand(op.b))
                    case _:
                        pass  # read where it lies, by the op that it is for
            if self.local:
                loop.line("__syncthreads();")
        out = Writer(1)
        self.declare_team_memory(out, self.memory, self.shared)
        if (c := self.products.element) is not None:
            at = self.shared.take(SLAB_BYTES // c.bytes, c)
            assert at is not None
            out.line(f"{c.memory} *const slab = {at};")
        self.bounds(out)
        for operand in self.local.values():
            out.line(operand.declaration)
        self.totals.declare(out)
        for s in self.sums.values():
            s.declare(out)
        out.lines += loop.lines
        self.totals.finish(out, self.shared)
        for s in self.sums.values():
            s.finish(out)
        return out.text()

    def bounds(self, out: Writer) -> None:
        """The rows of the block."""
        size = self.size
        out.line("const int64_t chunk = blockIdx.x, chunks = gridDim.x;")
        if self.offsets is not None:
            out.line("const int64_t lo = cuts[chunk], hi = cuts[chunk + 1];")
        else:
            out.line(f"const int64_t lo = part({size}, chunk, chunks);")
            out.line(f"const int64_t hi = part({size}, chunk + 1, chunks);")
        out.line("(void)chunks;")

    def stage(self, op: rows.StageOp) -> None:
        """The row-wise ops of a stage, a row a team."""
        out, team = self.out, self.team
        head = (
            f"for (int r = team; r < rows; r += {team.count})"
            if team.count > 1
            else ("for (int r = 0; r < rows; ++r)")
        )
        with out.block(head):
            out.line("const int64_t i = i0 + r;")
            names = {**self.names, self.nest.row: "i"}
            code = RowCode(out, team, self.memory, names, self.numbers["edges"], self.pieces)
            code.written = self.nest.writes()
            code.totals = self.totals.places
            for v, operand in self.local.items():
                n = length(v)
                code.places[v] = Memory(f"{operand.name} + r * {n}", n)
            sinks = [
                Sink(x, f"({self.local[r].name} + r * {length(r)})")
                for r, x in zip(op.results, op.yielded.values, strict=True)
            ]
            code.run(list(op.body.block.ops)[:-1], sinks)

    # ------------------------------------------------------------ tiles and products

    def lay_tiles(self) -> None:
        """Memory for the rows that stages and products hand on: shared, or global where they are
        too long."""
        for op in self.nest.body.block.ops:
            if not isinstance(op, rows.StageOp | rows.MatmulOp):
                continue
            for v in op.results:
                if self.direct_output(v) is None:
                    self.local[v] = self.lay_tile(v)

    def lay_tile(self, v: SSAValue) -> Operand:
        c, n = ctype_of(v), length(v)
        name = f"tile{len(self.local)}"
        room = replace(self.shared, most=TILES)
        at = room.take(n * self.rows, c)
        if at is not None:
            self.shared.bytes = room.bytes
        else:
            at = self.workspace.take(c, n * self.rows * self.numbers["chunks"])
            at += f" + (int64_t)blockIdx.x * {n * self.rows}"
        return Operand(name, f"{c.memory} *const {name} = {at};")

    def direct_output(self, v: SSAValue) -> str | None:
        """A product that is stored in the nest itself writes the buffer."""
        store = v.get_user_of_unique_use()
        if not isinstance(store, rows.StoreOp) or store.parent is not self.nest.body.block:
            return None
        return f"({self.text(store.buffer)} + i0 * {length(v)})"

    def operand(self, v: SSAValue) -> str:
        """Where a product finds its rows. Raises PassFailedException where they lie in none."""
        if v in self.local:
            return self.local[v].name
        if isinstance(op := v.owner, rows.LoadOp):
            return f"({self.text(op.buffer)} + i0 * {length(v)})"
        raise PassFailedException(
            "a product reads rows that lie in no memory of the block: run `cut-stages`"
        )

    def matmul(self, op: rows.MatmulOp) -> None:
        into = self.direct_output(op.result) or self.local[op.result].name
        self.products.matmul(self.out, op, self.operand(op.x), into, self.text, self.nest.row)

    def sum_of(self, op: rows.OuterOp) -> Sum:
        kind = Sum if op.index is None else GroupedSum
        text: Text = self.text
        return kind(op, self.products, self.workspace, text, self.nest.row, self.numbers["chunks"])

    # ------------------------------------------------------------ sums of all chunks

    def combine_kernels(self) -> list[Kernel]:
        """The kernel that adds up what chunks have summed, and those of sums by group."""
        out = Writer(1)
        columns = [*self.totals.combine(out, self.text, self.size)]
        threads = max(self.team.threads, WARP)
        for s in self.sums.values():
            columns += s.combine(out)
        found: list[Kernel] = []
        if columns:
            head = Writer(1)
            head.line("GNNC_SHARED(shared_memory);")
            head.line("(void)shared_memory, (void)ws, (void)chunks;")
            blocks = -(-max(columns) // WARP)
            found.append(
                Kernel(
                    "_combine",
                    [("char *", "ws", "ws"), ("const int64_t ", "chunks", "chunks")],
                    head.text() + out.text(),
                    str(blocks),
                    threads,
                    shared=threads * 8,
                )
            )
        return found


def joined(codes: Sequence[KernelCode]) -> Kernel:
    """One kernel for nests of a single row: its block computes one after the other.

    Raises:
        PassFailedException: a nest needs further kernels, or other threads than the first.
    """
    out = Writer(1)
    for k, code in enumerate(codes):
        kernels = code.run()
        if len(kernels) > 1 or code.team != codes[0].team or code.offsets is not None:
            raise PassFailedException("a nest cannot join the launch before it: run `gang-small`")
        if k:
            out.line("__syncthreads();")
        out.line("{")
        out.lines += ["    " + line for line in kernels[0].body.splitlines()]
        out.line("}")
    shared = max(code.shared.bytes for code in codes)
    resident = codes[0].numbers["resident"]
    given = [("char *", "ws", "ws")]
    return Kernel("_gang", given, out.text(), "chunks", codes[0].team.threads, resident, shared)


def zero_kernel(k: int, buffer: str, numbers: str, count: str) -> Kernel:
    """A kernel that clears the rows of a buffer, of which a nest writes some only."""
    out = Writer(1)
    start, step = "(int64_t)blockIdx.x * 256 + threadIdx.x", "(int64_t)gridDim.x * 256"
    head = f"for (int64_t e = {start}; e < {count} * {numbers}; e += {step})"
    out.line(f"{head} {buffer}[e] = 0;")
    blocks = f"fewer(({count} * {numbers} + 255) / 256, 1056)"
    return Kernel(f"_zero{k}", [], out.text(), blocks, 256)


@dataclass
class Barriers:
    """Barriers between what threads write to tiles and what others read of them."""

    out: Writer
    written: bool = field(default=False)

    def before(self, reads: bool) -> None:
        """In front of something that reads tiles."""
        if reads and self.written:
            self.out.line("__syncthreads();")
            self.written = False


def inputs(op: rows.StageOp) -> Sequence[SSAValue]:
    """What a stage reads from outside."""
    inner = {r for o in op.body.walk() for r in o.results}
    return [x for o in op.body.walk() for x in o.operands if x not in inner]


def with_makers(segment: rows.SegmentOp) -> list[Operation]:
    """A segment with the ops of its stage that it reads in front of it."""
    before: list[Operation] = [segment]
    op = segment.prev_op
    while op is not None:
        reads = (x for o in before for inner in o.walk() for x in inner.operands)
        if any(isinstance(x, OpResult) and x.op is op for x in reads):
            before.insert(0, op)
        op = op.prev_op
    return before
