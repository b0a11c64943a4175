"""C for one nest: chunks of rows shared among threads, blocks of rows within a chunk, stages within
a block.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra import rows
from ...dialects.intra.bindings import OffsetsOp, SizeOp, root
from ...dialects.intra.syntax import length, row_dims
from ..common.c_types import F32, F64, I64, CType
from ..common.products import table_of
from ..common.scalars import ctype_of
from ..common.scratch import CHUNKS, RESERVED, ROWS, SUMS, Chunks, Scratch
from ..common.writer import Writer
from .asked_ahead import NextBlock, prefetch_gathers
from .grouped_products import GroupedMatmul, GroupedOuter
from .numbers import Numbers
from .partial_sums import PartialSums
from .products import Operand, ProductCode, apart
from .row_code import HubPlan, RowCode
from .row_values import Memory, Place, Scalar
from .stages import Schedule, Stage, stages_of

LOOKUPS = (rows.LookupOp, rows.LoadOp)
"""What stands in a nest beside stages and products."""
BLOCK_BYTES = 32 * 1024
"""Rows of a block that are fetched ahead; more would push out what is in use."""
SHARED_BLOCK = 48
"""Rows of a round that a thread adds to its columns of a sum at a time: with these they stay in the
near caches."""


class KernelCode:
    """Prints one nest as a static function; `names` gives the C names of the buffers and sizes it
    uses, `scratch` is the memory and `numbers` the numbers that it is given beside them. One that
    `polls` does so between blocks of rows, for messages that are under way.
    """

    def __init__(
        self, nest: rows.TraverseOp, names: dict[SSAValue, str], *, polls: bool = False
    ) -> None:
        self.nest, self.polls = nest, polls
        self.schedule = Schedule(nest)
        self.stages = stages_of(nest)
        self.numbers = Numbers(nest)
        self.place: dict[SSAValue, Place] = {v: Scalar(n) for v, n in names.items()}
        self.out = Writer(1)
        self.scratch: list[Scratch] = []
        self.packed: dict[rows.MatmulOp, str] = {}
        self.grouped: dict[rows.MatmulOp, GroupedMatmul] = {}
        self.sums: dict[rows.OuterOp, GroupedOuter] = {}
        self.partial = PartialSums(self.out, self.text, self.products)
        self.shared: list[rows.OuterOp] = []
        """Products whose sums threads share by columns, while rounds are printed."""
        self.local: dict[SSAValue, Operand] = {}
        self.of_rounds: dict[SSAValue, Operand] = {}
        """Rows that rounds keep."""
        # the group offsets that carry the rows' work: of the first segment
        offsets = next((op.offsets for op in self.segments()), None)
        self.offsets = None if offsets is None else self.text(offsets)
        s = self.schedule
        cut = (s.row_cost, s.grain, s.chunks, s.block, s.round)
        self.chunks = Chunks(table_of_groups(offsets), *cut)
        self.hubs: HubPlan | None = None
        self.coming = NextBlock.of(nest, s)

    # ------------------------------------------------------------ the kernel

    def body(self) -> str:
        """The statements of the kernel."""
        out, s = self.out, self.schedule
        out.line(f"const int64_t size = {self.text(self.nest.size)};")
        self.prepare_products()
        segment = self.hub_segment()
        partials = [] if segment is None else self.hub_partials(segment)
        totals = self.offsets or "NULL"
        count = f"chunk_count({totals}, size, {s.row_cost}, {s.grain}, {s.chunks})"
        if any(room.kind != ROWS and room.chunks is not None for room in self.scratch):
            count = f"min64({count}, {RESERVED[CHUNKS]})"
        out.line(f"const int64_t chunks = {count};")
        for name in dict.fromkeys(self.text(op.offsets) for op in self.segments()):
            out.line(f"const int64_t {name}_total = {name}[size];")
            out.line(f"(void){name}_total;")
        if segment is not None:
            self.plan_hubs(segment, partials)
        if not self.is_of_one_row():
            out.line("#pragma omp parallel num_threads(threads) if (chunks > 1 && threads > 1)")
        with out.block(""):
            out.line("ENTER_KERNEL;")
            self.declare_locals()
            self.reduce_hub_pieces()
            if s.round:
                with out.block(f"if ({RESERVED[ROWS]} == 0)"):
                    self.all_chunks(totals)
                with out.block("else"):
                    self.all_rounds()
            else:
                self.all_chunks(totals)
            out.line("LEAVE_KERNEL;")
        return out.text()

    def is_of_one_row(self) -> bool:
        """Whether nothing but loops within the row can be shared among threads, which need no team
        around them: one that is formed within another team, of one thread too, has new threads each
        time."""
        size = self.nest.size.owner
        return isinstance(size, SizeOp) and size.domain is None

    def all_chunks(self, offsets: str) -> None:
        """Chunks of rows, each with partial sums of its own, which are added up in the end."""
        out, cost = self.out, self.schedule.row_cost
        out.line("#pragma omp for schedule(dynamic, 1)")
        with out.block("for (int64_t c = 0; c < chunks; ++c)"):
            out.line(f"const int64_t lo = cut({offsets}, size, {cost}, c, chunks);")
            out.line(f"const int64_t hi = cut({offsets}, size, {cost}, c + 1, chunks);")
            self.start_partials()
            for sums in self.sums.values():
                sums.start(out)
            with self.blocks():
                self.block()
            for sums in self.sums.values():
                sums.finish(out)
        self.partial.combine("chunks")
        for sums in self.sums.values():
            sums.combine(out)

    def all_rounds(self) -> None:
        """Rounds of blocks; after each, threads share the columns of the sums that its rows are
        added to. Who has no more of these goes on to the next round, whose rows lie elsewhere: all
        threads wait for each other only where blocks end. The first round is there without a row
        too, for sums of none."""
        out, s = self.out, self.schedule
        local, self.local = self.local, self.local | self.of_rounds
        self.shared = self.outers()
        rows_of_round = s.block * s.round
        with out.block(f"for (int64_t lo = 0; lo == 0 || lo < size; lo += {rows_of_round})"):
            out.line(f"const int64_t hi = min64(lo + {rows_of_round}, size);")
            out.line("#pragma omp for schedule(dynamic, 1)")
            with self.blocks():
                if self.partial.of(self.shared):
                    out.line(f"const int64_t c = (i0 - lo) / {s.block};")
                self.start_partials("lo == 0")
                self.block()
            for op in self.shared:
                code, a, b = self.operands(op)
                code.outer_shared(out, op, a, b, self.text(op.buffer), SHARED_BLOCK)
        out.line("#pragma omp barrier")
        blocks = f"min64((size + {s.block - 1}) / {s.block}, {s.round})"
        self.partial.combine(blocks, self.shared)
        self.local, self.shared = local, []

    def outers(self) -> list[rows.OuterOp]:
        """The sums of outer products, but for those by group."""
        products = (op for stage in self.stages for op in stage.products)
        return [op for op in products if isinstance(op, rows.OuterOp) and op.index is None]

    def start_partials(self, condition: str = "") -> None:
        """Begin part `c`."""
        added = self.partial.start(self.shared, condition)
        self.place |= {buffer: Scalar(name) for buffer, name in added.items()}

    @contextmanager
    def blocks(self) -> Generator[None]:
        """A loop over the blocks of the rows from `lo` to `hi`."""
        block = self.schedule.block
        with self.out.block(f"for (int64_t i0 = lo; i0 < hi; i0 += {block})"):
            self.out.line(f"const int rows = (int)min64({block}, hi - i0);")
            if self.coming is not None:  # which block comes next in a round, threads decide
                self.coming.start(self.out, self.text, known=not self.shared)
            yield

    def block(self) -> None:
        """The stages of one block."""
        for stage in self.stages:
            self.stage(stage)
        if self.polls:
            self.out.line("poll_comm(comm);")

    def text(self, v: SSAValue) -> str:
        p = self.place[v]
        assert isinstance(p, Scalar)
        return p.text

    def segments(self) -> list[rows.SegmentOp]:
        """The segments over the group of the nest's own row."""
        found = (op for stage in self.stages for op in stage.ops)
        return [op for op in found if isinstance(op, rows.SegmentOp) and op.row is self.nest.row]

    # ------------------------------------------------------------ hubs

    def hub_segment(self) -> rows.SegmentOp | None:
        """Where rows that span chunks may have their group reduced in pieces."""
        return next((op for op in self.segments() if op.in_pieces is not None), None)

    def hub_partials(self, segment: rows.SegmentOp) -> list[tuple[str, int]]:
        """Memory for what pieces are reduced to, and the numbers of each."""
        partials: list[tuple[str, int]] = []
        for r in segment.results:
            name = self.out.name("hub_rows")
            # a hub's edges make whole pieces and a rest: fewer than two pieces a chunk in all
            self.for_each_chunk(ctype_of(r), name, 2 * length(r))
            partials.append((name, length(r)))
        return partials

    def plan_hubs(self, segment: rows.SegmentOp, partials: list[tuple[str, int]]) -> None:
        """Find rows that span chunks."""
        out, s = self.out, self.schedule
        offsets = self.text(segment.offsets)
        out.line(f"hub hubs[{s.chunks}];")
        out.line(f"const int64_t piece = ({offsets}[size] + {s.row_cost} * size) / chunks + 1;")
        found = f"find_hubs({offsets}, size, {s.row_cost}, chunks, piece, hubs)"
        out.line(f"const int found = {found};")
        out.line(
            "const int64_t pieces = found ? hubs[found - 1].first + hubs[found - 1].count : 0;"
        )
        self.hubs = HubPlan(segment, tuple(partials))

    def reduce_hub_pieces(self) -> None:
        """The pieces of all hubs, shared among threads."""
        if self.hubs is None:
            return
        out, segment = self.out, self.hubs.segment
        offsets = self.text(segment.offsets)
        out.line("#pragma omp for schedule(dynamic, 1)")
        with out.block("for (int64_t q = 0; q < pieces; ++q)"):
            out.line("int h = 0;")
            out.line("while (q >= hubs[h].first + hubs[h].count) ++h;")
            out.line(f"const int64_t begin = {offsets}[hubs[h].row] + (q - hubs[h].first) * piece;")
            out.line(f"const int64_t end = min64(begin + piece, {offsets}[hubs[h].row + 1]);")
            place = dict(self.place)
            place[self.nest.row] = Scalar("hubs[h].row")
            plan = replace(self.hubs, piece=("begin", "end"))
            code = self.row_code(place, plan)
            code.run(with_makers(segment), segment.results)
            for r, (name, width) in zip(segment.results, self.hubs.partials, strict=True):
                if width == 1:
                    out.line(f"{name}[q] = {code.text(r)};")
                else:
                    code.write(r, f"({name} + q * {width})")

    # ------------------------------------------------------------ products and totals

    def products(self, c: CType) -> ProductCode:
        meanwhile = "(void)0" if self.coming is None else self.coming.meanwhile(self.text)
        return ProductCode(c, self.schedule.vector_bytes, self.schedule.panel, meanwhile)

    def prepare_products(self) -> None:
        for stage in self.stages:
            for op in stage.products:
                if op.index is not None:
                    self.prepare_grouped(op)
                elif isinstance(op, rows.MatmulOp):
                    self.packed[op] = self.pack(op)
                else:
                    kind = SUMS if self.schedule.round else CHUNKS
                    self.for_each_chunk(ctype_of(op.a), *self.partial.add(op), kind)
            for op in stage.ops:
                if isinstance(op, rows.TotalOp):
                    self.for_each_chunk(ctype_of(op.value), *self.partial.add(op))
                for product in op.walk():
                    if isinstance(product, rows.MatmulOp):
                        self.packed[product] = self.pack_whole(product)
        shared = self.outers() if self.schedule.round else []
        for v in dict.fromkeys(v for op in shared for v in (op.a, op.b)):
            if self.made_by_stages(v):
                self.of_rounds[v] = self.declare_for_round(v)

    def for_each_chunk(self, c: CType, name: str, count: int, kind: str = CHUNKS) -> None:
        """Scratch memory of so many numbers a chunk, or a block of a round."""
        self.scratch.append(Scratch(name, c, count, self.chunks, kind))

    def pack_whole(self, op: rows.MatmulOp) -> str:
        """Where the matrix of a product lies as a row that is alone reads it: in one panel."""
        c, size = ctype_of(op.x), self.schedule.vector_bytes
        vectors = -(-length(op.result) * c.bytes // size)
        return self.packed_by(ProductCode(c, size, vectors), op)

    def pack(self, op: rows.MatmulOp) -> str:
        """Where the matrix of a product lies as tiles read it."""
        if op.packed is None:
            return self.text(op.weight)
        return self.packed_by(self.products(ctype_of(op.x)), op)

    def packed_by(self, code: ProductCode, op: rows.MatmulOp) -> str:
        """Scratch with the matrix of a product in panels, which is filled here."""
        c, weight = ctype_of(op.x), self.text(op.weight)
        name = self.out.name("packed")
        self.scratch.append(Scratch(name, c, code.padded_size(op)))
        code.pack(self.out, op, weight, name)
        return name

    def prepare_grouped(self, op: rows.MatmulOp | rows.OuterOp) -> None:
        out, row = self.out, self.nest.row
        if isinstance(op, rows.MatmulOp):
            assert op.index is not None
            table, weight = table_of(op.index, row, self.text), self.text(op.weight)
            code = self.products(ctype_of(op.x))
            self.grouped[op] = GroupedMatmul(op, code, table, weight, out.name("packed"))
            return
        self.sums[op] = GroupedOuter(op, self.products(ctype_of(op.a)), self.text, row)
        self.sums[op].prepare(out, self.for_each_chunk, I64)

    # ------------------------------------------------------------ block-local buffers

    def declare_locals(self) -> None:
        for code in (*self.grouped.values(), *self.sums.values()):
            code.declare(self.out)
        for stage in self.stages:
            for op in (stage.cut, *stage.products):
                for v in op.results if op is not None else ():
                    if self.direct_output(v) is None:
                        self.local[v] = self.declare_local(v)

    def declare_local(self, v: SSAValue) -> Operand:
        """Rows of a block, of one thread."""
        c, name = ctype_of(v), self.out.name("local")
        pitch, count = self.numbers_of(v, self.schedule.block)
        self.out.line(f"{c.memory} {name}[{count}] __attribute__((aligned(64)));")
        if pitch != length(v):
            self.out.line(f"memset({name}, 0, sizeof({name}));")
        return Operand(name, pitch)

    def declare_for_round(self, v: SSAValue) -> Operand:
        """Rows of two rounds, of all threads; fewer where there are not so many. The two are a
        vector apart: the last load of one must not read what others write in the other.
        """
        c, name, kept = ctype_of(v), self.out.name("round"), RESERVED[ROWS]
        rows = self.schedule.block * self.schedule.round
        apart = self.schedule.vector_bytes // c.bytes
        pitch, _ = self.numbers_of(v, 1)
        self.scratch.append(Scratch(name, c, pitch, self.chunks, ROWS))
        if pitch != length(v):
            self.out.line(f"memset({name}, 0, sizeof({c.name}) * {pitch} * {kept});")
        at = f"{name} + i0 % {2 * rows} * {pitch} + i0 / {rows} % 2 * {apart}"
        return Operand(f"({at})", pitch)

    def numbers_of(self, v: SSAValue, count: int) -> tuple[int, int]:
        """Numbers from one row to the next, and of so many rows."""
        c, n = ctype_of(v), length(v)
        lanes = self.schedule.vector_bytes // max(c.bytes, 1)
        padded = len(row_dims(v.type)) == 1 and c in (F32, F64) and n > 1
        pitch = apart(-(-n // lanes) * lanes, lanes, c) if padded else n
        # one vector more than the rows need: the last load of an outer product may run past the row
        return pitch, count * pitch + lanes

    def made_by_stages(self, v: SSAValue) -> bool:
        """Whether a stage or a product has made it, and nothing but the block holds it."""
        return isinstance(v.owner, rows.StageOp | rows.MatmulOp) and self.direct_output(v) is None

    def in_place(self, v: SSAValue) -> Operand | None:
        """The nest's own rows, which lie in a buffer ready for a product."""
        if not isinstance(op := v.owner, rows.LoadOp):
            return None
        n = length(v)
        return Operand(f"({self.text(op.buffer)} + i0 * {n})", n)

    def direct_output(self, v: SSAValue) -> Operand | None:
        """A product that is stored in the nest itself writes the buffer."""
        store = v.get_user_of_unique_use()
        if not isinstance(store, rows.StoreOp) or store.parent is not self.nest.body.block:
            return None
        n = length(v)
        return Operand(f"({self.text(store.buffer)} + i0 * {n})", n)

    def operand(self, v: SSAValue, padded: bool = False) -> Operand:
        """Where a product finds its rows. Raises PassFailedException where it would leave them."""
        if v in self.local:
            return self.local[v]
        at = self.in_place(v)
        lanes = self.schedule.vector_bytes // ctype_of(v).bytes
        if at is None or (padded and (row_dims(v.type) or (1,))[-1] % lanes):
            raise PassFailedException(
                "a product reads rows that lie in no memory of the block: run `cut-stages`"
            )
        return at

    # ------------------------------------------------------------ stages

    def stage(self, stage: Stage) -> None:
        gathers = any(isinstance(op, rows.SegmentOp) for op in stage.ops)
        if stage.cut is not None:
            with self.out.block("for (int r = 0; r < rows; ++r)"):
                self.out.line("const int64_t i = i0 + r;")
                for at, size in self.streamed(stage):  # meanwhile, what products read in place
                    self.out.line(f"PREFETCH_ROW({at.address} + r * {at.pitch}, {size}, 3);")
                self.row_stage(stage.cut, stage.ops)
        for op in stage.products:
            if isinstance(op, rows.MatmulOp):
                y = self.direct_output(op.result) or self.local[op.result]
                code = self.products(ctype_of(op.x))
                stream = op.x not in self.local and not gathers
                if op in self.grouped:
                    self.grouped[op].run(self.out, self.operand(op.x), y, stream)
                    continue
                code.matmul(self.out, op, self.operand(op.x), y, self.packed[op], "rows", stream)
            elif op not in self.shared:
                code, a, b = self.operands(op)
                stream = op.a not in self.local
                if op in self.sums:
                    self.sums[op].run(self.out, a, b, stream)
                    continue
                code.outer(self.out, op, a, b, f"{self.partial.names[op]}_c", "rows", stream)

    def operands(self, op: rows.OuterOp) -> tuple[ProductCode, Operand, Operand]:
        """How a sum of outer products is printed, and of what rows."""
        code = self.products(ctype_of(op.a))
        return code, self.operand(op.a), self.operand(op.b, padded=True)

    def streamed(self, stage: Stage) -> list[tuple[Operand, int]]:
        """Rows that the stage's products read straight from a buffer, with their bytes."""
        found: dict[str, tuple[Operand, int]] = {}
        for op in stage.products:
            if op in self.shared:  # a round later, and in another order
                continue
            for v in (op.x,) if isinstance(op, rows.MatmulOp) else (op.b,):
                if v in self.local or (at := self.in_place(v)) is None:
                    continue
                if self.fetched(at, v):
                    found[at.address] = at, at.pitch * ctype_of(v).bytes
        return list(found.values())

    def fetched(self, at: Operand, v: SSAValue) -> bool:
        """Whether a block of the rows is small enough to be fetched ahead as a whole."""
        return at.pitch * ctype_of(v).bytes * self.schedule.block <= BLOCK_BYTES

    def row_stage(self, cut: rows.StageOp, ops: list[Operation]) -> None:
        place = dict(self.place)
        place[self.nest.row] = Scalar("i")
        for v, at in self.local.items():
            address = f"({at.address} + r * {at.pitch})"
            place[v] = Scalar(f"{address}[0]") if length(v) == 1 else Memory(address)
        if self.hubs is not None and self.hubs.segment in ops:
            offsets = self.text(self.hubs.segment.offsets)
            long_row = f"found && {offsets}[i + 1] - {offsets}[i] >= piece"
            self.out.line(f"const int hub = {long_row} ? hub_of(hubs, found, i) : -1;")
        code = self.row_code(place, self.hubs)
        prefetch_gathers(code, self.nest, ops)
        yielded = cut.yielded.values
        code.run([*self.read_in(cut), *ops], yielded)
        for v, r in zip(yielded, cut.results, strict=True):
            at = self.local[r]
            code.write(v, f"({at.address} + r * {at.pitch})")

    def row_code(self, place: dict[SSAValue, Place], hubs: HubPlan | None) -> RowCode:
        s = self.schedule
        alone = self.is_of_one_row()
        of_nest = s.vectors, s.prefetch, self.numbers
        return RowCode(self.out, place, *of_nest, hubs, self.packed, alone)

    def read_in(self, cut: rows.StageOp) -> list[Operation]:
        """The look-ups of the nest itself that a stage reads, and so makes again."""
        shared = (op for op in self.nest.body.block.ops if isinstance(op, LOOKUPS))
        uses = ((op, u.operation) for op in shared for u in op.result.uses)
        return list(dict.fromkeys(op for op, user in uses if cut.is_ancestor(user)))


def table_of_groups(offsets: SSAValue | None) -> OffsetsOp | None:
    """What makes the table of where groups begin."""
    op = None if offsets is None else root(offsets).owner
    assert op is None or isinstance(op, OffsetsOp)
    return op


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
