"""overlap-exchanges: messages start as early as they can and are awaited as late.

The steps of a phase are put in another order that their buffers allow. Before: a move is awaited
where it starts. After: the nests that a message is made of come first, what can be computed without
it lies between its start and its wait, and what needs it comes last. A sum of what follows from the
same values as another one, of the same rows, that comes before the start is done with it.
Reductions over ranks, which hold a phase up, wait for all that can be done before them; those of
one kind that can be done then become one message.

Comes before fuse-traversals, which computes nothing across a wait. Which nests a message overlaps
with are those of the local edges: the split in local and remote ones is that of MGG (Wang et al.,
OSDI 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.intra.bindings import OffsetsOp, SizeOp
from ...dialects.intra.exchange import AllReduceOp, MoveStartOp, MoveWaitOp
from ...dialects.intra.rows import SegmentOp, TraverseOp
from ...dialects.intra.steps import Step, phases, steps
from ...dialects.signature import return_of

FIRST, NEEDED, OTHER, AWAITED, REDUCED = range(5)
"""What is done first of what can be done: starts of messages, what starts need, all else, and
last what waits for other ranks, for a message or for all of them."""


def overlap(func: FuncOp) -> bool:
    """Puts the steps of a phase in order; whether it exchanges anything. The time is that of
    comparing each two steps."""
    before = steps(func)
    if not any(isinstance(s, MoveStartOp | AllReduceOp) for s in before):
        return False
    end = return_of(func)
    for step in ordered(before):
        step.detach()
        Rewriter.insert_op(step, InsertPoint.before(end))
    join_reductions(steps(func))
    return True


def ordered(before: Sequence[Step]) -> list[Step]:
    """The steps in an order in which each finds what it found before."""
    uses = [Uses(step, step.reads(), step.writes()) for step in before]
    needs = [{i for i in range(j) if must_follow(uses[i], uses[j])} for j in range(len(uses))]
    rank, beside = ranks(before, needs), Beside(before, needs)
    left = dict(enumerate(needs))
    out: list[Step] = []
    while left:
        ready = [j for j, missing in left.items() if not missing & left.keys()]
        chosen = min(ready, key=lambda j: (rank[j], j))
        together = [k for k in ready if k == chosen or joins(before[chosen], before[k])]
        for j in (*together, *beside.chosen(chosen, left.keys() - {*together})):
            del left[j]
            out.append(before[j])
    return out


def joins(one: Step, other: Step) -> bool:
    """Whether two reductions over ranks can be one message."""
    return (
        isinstance(one, AllReduceOp) and isinstance(other, AllReduceOp) and one.kind == other.kind
    )


class Uses(NamedTuple):
    """A step and its buffers."""

    step: Step
    reads: set[SSAValue]
    writes: set[SSAValue]


def must_follow(first: Uses, then: Uses) -> bool:
    """Whether a step has to stay behind an earlier one: one of them writes what the other uses, or
    a message of a plan waits for that before it."""
    if first.writes & then.reads or first.writes & then.writes or first.reads & then.writes:
        return True
    if not isinstance(first.step, MoveStartOp | MoveWaitOp):
        return False
    return isinstance(then.step, MoveStartOp | MoveWaitOp) and first.step.plan == then.step.plan


def ranks(before: Sequence[Step], needs: Sequence[set[int]]) -> list[int]:
    """How early each step is wanted."""
    waits = ((MoveWaitOp, AWAITED), (AllReduceOp, REDUCED))
    out = [next((r for kind, r in waits if isinstance(s, kind)), OTHER) for s in before]
    for j in reversed(range(len(before))):
        if isinstance(before[j], MoveStartOp):
            out[j] = FIRST
        if out[j] in (FIRST, NEEDED):
            for i in needs[j]:
                if out[i] == OTHER:
                    out[i] = NEEDED
    return out


class Beside:
    """Sums that cost little beside others: for the same groups, of what follows from the same
    values. Apart, rows would be read, and what follows from them computed, twice."""

    def __init__(self, before: Sequence[Step], needs: Sequence[set[int]]) -> None:
        self.behind = closed(needs)
        self.groups = [groups(step) for step in before]
        self.work = [rows_for(j, before, needs) for j in range(len(before))]
        self.reads = [inputs([before[k] for k in (j, *w)]) for j, w in enumerate(self.work)]

    def chosen(self, i: int, left: set[int]) -> list[int]:
        """What is done next to a step, of those that are left, in order."""
        out: set[int] = set()
        for j in sorted(left) if self.groups[i] else ():
            missing = (self.behind[j] & left) - out
            follows = self.reads[j] <= self.reads[i] and missing <= self.work[j]
            if follows and self.groups[i] & self.groups[j]:
                out |= {j, *missing}
        return sorted(out)


def closed(needs: Sequence[set[int]]) -> list[set[int]]:
    """All that must come before each step."""
    out: list[set[int]] = []
    for direct in needs:
        out.append(direct.union(*(out[i] for i in direct)))
    return out


def inputs(together: Sequence[Step]) -> set[SSAValue]:
    """What steps read that none of them computes."""
    every = set[SSAValue]().union(*(s.reads() for s in together))
    return every.difference(*(s.writes() for s in together))


def groups(step: Step) -> set[tuple[object, object]]:
    """The groups whose rows a nest sums up: their domain, and what they agree on."""
    if not isinstance(step, TraverseOp):
        return set()
    made = (op.offsets.owner for op in step.body.block.ops if isinstance(op, SegmentOp))
    return {(op.domain, op.along) for op in made if isinstance(op, OffsetsOp)}


def rows_for(j: int, before: Sequence[Step], needs: Sequence[set[int]]) -> set[int]:
    """The nests that compute, row by row, what a nest sums up in groups."""
    domains = {domain for domain, _ in groups(before[j])}
    found: set[int] = set()
    todo = [j]
    while todo:
        k = todo.pop()
        made = {i for i in needs[k] if before[i].writes() & before[k].reads()} - found
        todo += [i for i in made if domain_of(before[i]) in domains]
        found |= {*todo}
    return found


def domain_of(step: Step) -> object:
    """The rows that a nest computes one by one; None for one with loops over groups."""
    if not isinstance(step, TraverseOp) or groups(step):
        return None
    size = step.size.owner
    return size.domain if isinstance(size, SizeOp) else None


def join_reductions(order: Sequence[Step]) -> None:
    """Makes one message of reductions of one kind that lie behind each other."""
    last: AllReduceOp | None = None
    for step in order:
        if not isinstance(step, AllReduceOp):
            last = None
        elif last is not None and joins(last, step):
            both = AllReduceOp.make([*last.buffers, *step.buffers], [], kind=step.kind)
            Rewriter.insert_op(both, InsertPoint.before(step))
            Rewriter.erase_op(last)
            Rewriter.erase_op(step)
            last = both
        else:
            last = step


@dataclass(frozen=True)
class OverlapExchangesPass(ModulePass):
    """Starts messages early, awaits them late, and joins reductions over ranks."""

    name = "overlap-exchanges"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            overlap(func)
