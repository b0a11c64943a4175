"""The kernel of a pipeline: rows of other ranks are on their way while those here are summed.

Both groups of a nest are cut into partitions, whose tables lie by group. A team takes `pairs` of
each kind at the same places. The rows of its remote partitions lie behind each other, and are a
stream: `depth` of them are always on their way, each in a slot of the team's shared memory. In
turns the team sums a partition of rows that lie here and one of rows that have come; what a
partition is reduced to is a row in memory, and the nest's own kernel adds these up in their order,
so that the numbers are the same in every run (MGG, Wang et al., OSDI 2023, adds them up by
atomics).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...dialects.intra import rows
from ...dialects.intra.syntax import length
from ..common.c_types import I1
from ..common.phase_host import places_name
from ..common.scalars import ctype_of
from ..common.writer import Writer
from .pieces import PieceCode
from .places import Memory
from .rooms import VECTOR, Shared, TeamMemory
from .team import Team

if TYPE_CHECKING:
    from .kernel_code import KernelCode
    from .row_code import RowCode


@dataclass
class Slots:
    """The rows of a group that are on their way, `depth` at once; `ops` are awaited."""

    segment: rows.SegmentOp
    ops: list[rows.AwaitOp]
    offsets: list[int]
    bytes: int
    depth: int

    @staticmethod
    def of(segment: rows.SegmentOp, depth: int) -> Slots:
        """All that a group awaits, laid out behind each other."""
        ops = [op for op in segment.body.block.ops if isinstance(op, rows.AwaitOp)]
        offsets: list[int] = []
        size = 0
        for op in ops:
            offsets.append(size)
            row = length(op.result) * ctype_of(op.result).bytes
            size += -(-row // VECTOR) * VECTOR
        return Slots(segment, ops, offsets, size, depth)

    def arrive(self, code: RowCode, position: str) -> None:
        """See Ahead: the rows of a position have come, and all lanes see them."""
        out = code.out
        out.line(f"rows_arrive<{self.depth - 1}>();")
        code.team.sync(out)
        slot = out.name("slot")
        turn = f"(int)(({position} - first) % {self.depth})"
        out.line(f"const char *const {slot} = slots + {turn} * {self.bytes};")
        for op, offset in zip(self.ops, self.offsets, strict=True):
            n, kind = length(op.result), ctype_of(op.result).memory
            code.places[op.result] = Memory(f"((const {kind} *)({slot} + {offset}))", n)

    def leave(self, code: RowCode) -> None:
        """See Ahead: the slot is free for the next row."""
        code.team.sync(code.out)
        self.issue(code)

    def issue(self, code: RowCode) -> None:
        """The next row of the stream, if there is one, is on its way; groups are counted as if."""
        out = code.out
        outside = dict(code.text)
        with out.block("if (issued < end)"):
            code.text[self.segment.position] = "issued"
            turn = f"(int)((issued - first) % {self.depth})"
            out.line(f"char *const slot = slots + {turn} * {self.bytes};")
            for op in addresses(self.ops):
                code.text.pop(op.result, None)  # that of the row whose turn it is
                code.op(op)
            for op, offset in zip(self.ops, self.offsets, strict=True):
                self.copy(code, op, offset)
            out.line("++issued;")
        out.line("rows_leave();")
        code.text = outside

    def copy(self, code: RowCode, op: rows.AwaitOp, offset: int) -> None:
        """Lanes copy a row together, in the longest words that divide it."""
        issue, c, n = op.issue, ctype_of(op.result), length(op.result)
        name, row = code.text[issue.buffer], code.text[issue.row]
        word = next(w for w in (16, 8, 4) if n * c.bytes % w == 0)
        far = f"peer_row<{c.memory}>({name}, {places_name(name)}, {row}, {n})"
        with code.out.block(""):
            code.out.line(f"const char *const far = (const char *){far};")
            step = code.team.lanes * word
            head = f"for (int k = lane * {word}; k < {n * c.bytes}; k += {step})"
            code.out.line(f"{head} copy_ahead<{word}>(slot + {offset} + k, far + k);")


def issues(segment: rows.SegmentOp) -> bool:
    """Whether rows of a group are issued before their turn."""
    return any(isinstance(op, rows.IssueOp) for op in segment.body.walk())


def addresses(ops: list[rows.AwaitOp]) -> list[rows.LookupOp]:
    """The look-ups that tell which rows are issued, in their order."""
    block = ops[0].parent
    assert block is not None
    needed = {op.issue.row for op in ops}
    found: list[rows.LookupOp] = []
    for op in reversed(list(block.ops)):
        if isinstance(op, rows.LookupOp) and op.result in needed:
            found.insert(0, op)
            needed.add(op.row)
    return found


@dataclass(frozen=True)
class PipelineText:
    """The body of a pipeline's kernel, its threads, shared memory, and how many blocks it wants."""

    body: str
    blocks: str
    threads: int
    shared: int


def pipeline_text(code: KernelCode) -> PipelineText:
    """The kernel of a nest with a pipeline, whose pieces have their names."""
    assert code.nest.pipeline is not None
    pipeline = code.nest.pipeline
    numbers, team = pipeline.numbers(), Team(pipeline.threads, pipeline.lanes.data)
    remote = next(p for p in code.pieces if issues(p.segment))
    local = next((p for p in code.pieces if p is not remote), None)
    slots = Slots.of(remote.segment, numbers["depth"])
    memory, pairs = TeamMemory(), numbers["pairs"]
    loop = Writer(2)
    a, b = remote.count, local.count if local else "0"
    most = f"({a} > {b} ? {a} : {b})"
    loop.line(f"const int64_t last = w + {pairs};")
    loop.line("int64_t first = 0, end = 0;")
    with loop.block(f"if (w < {remote.count})"):
        loop.line(f"first = {remote.table}[3 * w + 1];")
        until = f"(last < {remote.count} ? last : {remote.count})"
        loop.line(f"end = {remote.table}[3 * ({until} - 1) + 2];")
    loop.line("int64_t issued = first;")
    at = PieceCode(loop, team, memory, slots)
    with loop.block(f"for (int k = 0; k < {slots.depth}; ++k)"):
        slots.issue(code.row_code(remote, "w", at))
    with loop.block("for (int64_t q = w; q < last; ++q)"):
        if local:
            with loop.block(f"if (q < {local.count})"):
                code.one_piece(local, "q", PieceCode(loop, team, memory))
        with loop.block(f"if (q < {remote.count})"):
            code.one_piece(remote, "q", at)
    out, shared = Writer(1), Shared()
    rooms = shared.take(slots.bytes * slots.depth * team.count, I1)
    assert rooms is not None  # build-pipeline has seen to it
    code.declare_team_memory(out, memory, shared, team)
    mine = f"team * {slots.bytes * slots.depth}"
    out.line(f"char *const slots = (char *){rooms} + {mine};")
    out.line(f"const int64_t most = {most};")
    step = team.count * pairs
    head = f"int64_t w = ((int64_t)blockIdx.x * {team.count} + team) * {pairs}; w < most"
    out.line(f"for ({head}; w += (int64_t)gridDim.x * {step}) {{")
    out.lines += loop.lines
    out.line("}")
    blocks = f"fewer(({most} + {step - 1}) / {step}, {code.numbers['chunks']})"
    return PipelineText(out.text(), blocks, team.threads, shared.bytes)
