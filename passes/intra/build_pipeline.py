"""build-pipeline: rows of other ranks are on their way while those here are summed.

A nest that sums rows of other ranks by group, and others that lie here, gets a `pipeline`: both
groups are reduced in partitions, by teams of threads that take one of each kind in turns, and the
loads of rows of other ranks become `intra.issue` and `intra.await`. What the numbers of the
pipeline mean stands at `#intra.pipeline` (dialects/intra/schedule.py). Construction and overlap are
those of MGG (Wang et al., OSDI 2023); partial sums are added in their order, without atomics.

As many threads share a row as hold it in registers; the slots of a block lie in its shared memory:
where rows are so wide that they do not fit, there are fewer warps. Comes behind the passes that
join nests, before cut-stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ...dialects.intra.remote import AwaitOp, IssueOp, TokenType, of_one_rank
from ...dialects.intra.rows import LoadOp, LookupOp, SegmentOp, TraverseOp
from ...dialects.intra.schedule import WARP, PipelineAttr
from ...dialects.intra.steps import phases
from ...dialects.intra.syntax import element, element_bytes, length, row_bytes
from .cut_stages import uncut
from .schedule_grid import power_of_two

SLOTS = 40 * 1024
"""Bytes of shared memory that rows on their way may take."""
HELD = 8
"""Loads of a row that a thread keeps in registers, at most (codegen/cuda/team.py)."""
VECTOR = 16
"""Bytes of one."""
COPIED = 4
"""Bytes that are copied at once, at least."""


@dataclass(frozen=True)
class BuildPipelinePass(ModulePass):
    """Hides reads of other ranks' rows behind sums of those that lie here."""

    name = "build-pipeline"

    local: int = 16
    remote: int = 16
    pairs: int = 2
    warps: int = 4
    depth: int = 4

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        numbers = {k: getattr(self, k) for k in ("local", "remote", "pairs", "warps", "depth")}
        try:
            wanted = PipelineAttr.of(**numbers, lanes=1)
        except VerifyException as error:
            raise PassFailedException(f"build-pipeline: {error}") from error
        for func in phases(op):
            for nest in uncut(func, self.name):
                build(nest, wanted)


def build(nest: TraverseOp, wanted: PipelineAttr) -> None:
    """Gives a nest a pipeline, where it sums rows of other ranks."""
    own = [op for op in nest.body.block.ops if isinstance(op, SegmentOp) and op.row is nest.row]
    free = [op for op in own if not op.reads_row()]
    remote = next((op for op in free if remote_loads(op)), None)
    if remote is None:
        return
    here = next((op for op in free if not reads_others(op)), None)
    both = [op for op in (remote, here) if op is not None]
    loads = [op for op in remote_loads(remote) if may_be_issued(op, remote)]
    pipeline = fitting(wanted, both, sum(slot_bytes(op.result) for op in loads))
    if not loads or pipeline is None:
        return
    for load in loads:
        issue(load)
    for op in both:
        op.in_pieces = UnitAttr()
    nest.pipeline = pipeline


def fitting(wanted: PipelineAttr, segments: Sequence[SegmentOp], slot: int) -> PipelineAttr | None:
    """With lanes that hold what they reduce, and as many warps as there is shared memory for; None
    where rows are too wide for all."""
    numbers = wanted.numbers()
    results = [r for op in segments for r in op.results]
    lanes = max(lanes_of(r) for r in results)
    if lanes > WARP:  # a team is a whole block
        warps = max(-(-lanes // WARP), numbers["warps"])
        teams = 1
    else:
        room = SLOTS // (max(slot, 1) * numbers["depth"])
        warps = min(numbers["warps"], room // (WARP // lanes))
        teams = warps * (WARP // lanes)
    if not 1 <= warps <= WARP or slot * numbers["depth"] * teams > SLOTS:
        return None
    lanes = warps * WARP if lanes > WARP else lanes
    return PipelineAttr.of(**{**numbers, "warps": warps, "lanes": lanes})


def lanes_of(v: SSAValue) -> int:
    """Threads that share a row: one a load of 16 bytes, and no more than a warp where each holds
    the numbers of some loads."""
    n, size = length(v), element_bytes(element(v.type))
    tile = next((t for t in (4, 2) if n % t == 0 and t * size <= VECTOR), 1)
    vectors = -(-n // tile)
    if vectors <= WARP * HELD:
        return min(power_of_two(vectors), WARP)
    return power_of_two(-(-vectors // HELD))


def slot_bytes(v: SSAValue) -> int:
    """What a row takes in a slot, which is aligned for the longest copies."""
    return -(-row_bytes(v) // 16) * 16


def remote_loads(segment: SegmentOp) -> list[LoadOp]:
    """The loads of other ranks' rows in a group, but for those in groups inside of it."""
    ops = segment.body.block.ops
    return [op for op in ops if isinstance(op, LoadOp) and of_one_rank(op.buffer)]


def reads_others(segment: SegmentOp) -> bool:
    """Whether anything in a group lies with other ranks."""
    ops = segment.body.walk()
    return any(isinstance(op, LoadOp | IssueOp) and of_one_rank(op.buffer) for op in ops)


def may_be_issued(load: LoadOp, segment: SegmentOp) -> bool:
    """Whether a position alone tells which row it is, so that it is known rows ahead, and the row
    can be copied in words."""
    if load.otherwise is not None or row_bytes(load.result) % COPIED:
        return False
    row = load.row
    while isinstance(row.owner, LookupOp) and row.owner.parent is segment.body.block:
        row = row.owner.row
    return row is segment.position


def issue(load: LoadOp) -> None:
    """Two ops in the place of a load."""
    token = IssueOp.make([load.buffer, load.row], [TokenType(load.result.type)])
    row = AwaitOp.make([token.result], [load.result.type])
    row.result.name_hint = load.result.name_hint
    Rewriter.insert_op([token, row], InsertPoint.before(load))
    load.result.replace_all_uses_with(row.result)
    Rewriter.erase_op(load)
