"""overlap-exchanges: messages start as early as they can and are awaited as late.

The steps of a phase are put in another order that their buffers allow. Before: a move is awaited
where it starts. After: the nests that a message is made of come first, what can be computed without
it lies between its start and its wait, and what needs it comes last. Reductions over ranks, which
hold a phase up, wait for all that can be done before them; those of one kind that can be done then
become one message.

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

from ...dialects.intra.exchange import AllReduceOp, MoveStartOp, MoveWaitOp
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
    rank = ranks(before, needs)
    left = dict(enumerate(needs))
    out: list[Step] = []
    while left:
        ready = [j for j, missing in left.items() if not missing & left.keys()]
        chosen = min(ready, key=lambda j: (rank[j], j))
        for j in (k for k in ready if k == chosen or joins(before[chosen], before[k])):
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
