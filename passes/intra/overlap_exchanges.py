"""overlap-exchanges: messages start as early as they can and are awaited as late.

The steps of a phase are put in another order that their buffers allow. Before: a move is awaited
where it starts. After: the nests that a message is made of come first, what can be computed without
it lies between its start and its wait, and what needs it comes last. A sum of what follows from the
same values as another one, of the same rows, that comes before the start is done with it.
Reductions over ranks, which hold a phase up, wait for all that can be done before them; those of
one kind that can be done then become one message.

With `hide=false` messages are awaited where they start: between ranks of one machine they are
copies, which nothing hides, and what is summed on both sides of a wait is stored in between, or
computed twice (maxima before sums of the same edges).

Comes before fuse-traversals, which computes nothing across a wait. Which nests a message overlaps
with are those of the local edges: the split in local and remote ones is that of MGG (Wang et al.,
OSDI 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.intra.exchange import AllReduceOp, MoveStartOp, MoveWaitOp
from ...dialects.intra.rows import SegmentOp, TraverseOp
from ...dialects.intra.steps import Step, phases, steps
from ...dialects.signature import return_of
from .ordering.beside import Beside
from .ordering.light import part_of_readers, part_of_what_it_reads
from .ordering.uses import HEAVY, Uses

FIRST, NEEDED, OTHER, AWAITED, REDUCED = range(5)
"""What is done first of what can be done: starts of messages, what starts need, all else, and
last what waits for other ranks, for a message or for all of them."""


def overlap(func: FuncOp, hide: bool = True) -> bool:
    """Puts the steps of a phase in order; whether it exchanges anything. Messages hide behind other
    work, or are awaited where they start. The time is that of comparing each two steps."""
    before = steps(func)
    if not any(isinstance(s, MoveStartOp | AllReduceOp) for s in before):
        return False
    end = return_of(func)
    for step in ordered(before, LATE if hide else AT_ONCE):
        step.detach()
        Rewriter.insert_op(step, InsertPoint.before(end))
    join_reductions(steps(func))
    return True


@dataclass(frozen=True)
class Waits:
    """When waits come, and which nests are not worth hiding a message behind: those without ops of
    some kinds, which go with what they read."""

    rank: int
    heavy: tuple[type[Operation], ...]


LATE = Waits(AWAITED, HEAVY)
AT_ONCE = Waits(FIRST, (SegmentOp,))


def ordered(before: Sequence[Step], waits: Waits = LATE) -> list[Step]:
    """The steps in an order in which each finds what it found before."""
    order = _Order(Uses(before, waits.heavy), waits)
    while order.left:
        order.go_on()
    return [before[j] for j in order.out]


class _Order:
    """The numbers of steps in their new order, and of those that are left."""

    def __init__(self, uses: Uses, waits: Waits) -> None:
        self.uses, self.rank, self.beside = uses, ranks(uses, waits), Beside(uses)
        self.waiting = part_of_readers(uses)
        self.left, self.out = set(range(len(uses.steps))), list[int]()
        self.since = 0
        """Where the nests behind the last exchange begin."""

    def go_on(self) -> None:
        """Does what is wanted first, and what goes with it."""
        steps, ready = self.uses.steps, self._ready()
        chosen = min(ready, key=lambda j: (self.rank[j], j))
        for j in ready:
            if j == chosen or joins(steps[chosen], steps[j]):
                self._do(j)
        for j in self.beside.chosen(chosen, self.left):
            self._do(j)
        while more := [j for j in self._ready() if self._goes_with_the_last(j)]:
            self._do(more[0])

    def _ready(self) -> list[int]:
        """What can be done, with those that become part of it."""
        others = self.left - self.waiting
        return [j for j in sorted(others) if self.uses.behind[j].isdisjoint(others)]

    def _goes_with_the_last(self, j: int) -> bool:
        return part_of_what_it_reads(self.uses, j, self._missing(j), self.out[self.since :])

    def _missing(self, j: int) -> set[int]:
        """What becomes part of a step that can be done."""
        return self.uses.behind[j] & self.waiting & self.left

    def _do(self, j: int) -> None:
        if j in self.left:
            missing = self._missing(j)
            self.out += sorted({j, *missing})
            self.left -= {j, *missing}
            if not isinstance(self.uses.steps[j], TraverseOp):
                self.since = len(self.out)


def joins(one: Step, other: Step) -> bool:
    """Whether two reductions over ranks can be one message."""
    return (
        isinstance(one, AllReduceOp) and isinstance(other, AllReduceOp) and one.kind == other.kind
    )


def ranks(uses: Uses, waits: Waits) -> list[tuple[int, int]]:
    """How early each step is wanted. Of what starts need, that for the first one comes first: else
    a nest that only a later one needs would be done before a message, and not hide it."""
    held_up = ((MoveWaitOp, waits.rank), (AllReduceOp, REDUCED))
    kinds = [next((r for kind, r in held_up if isinstance(s, kind)), OTHER) for s in uses.steps]
    out = [(kind, 0) for kind in kinds]
    for j, step in enumerate(uses.steps):
        if isinstance(step, MoveStartOp):
            out[j] = FIRST, 0
            for i in uses.behind[j]:
                if out[i] == (OTHER, 0):
                    out[i] = NEEDED, j
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
    """Starts messages early, awaits them late, or with `hide=false` at once, and joins reductions
    over ranks."""

    name = "overlap-exchanges"
    hide: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            overlap(func, self.hide)
