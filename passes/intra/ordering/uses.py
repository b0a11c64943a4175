"""What the steps of a phase read, write and have to wait for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ....dialects.intra.exchange import AllReduceOp, MoveStartOp, MoveWaitOp
from ....dialects.intra.rows import MatmulOp, OuterOp, SegmentOp, TraverseOp
from ....dialects.intra.steps import Step

HEAVY = (SegmentOp, MatmulOp, OuterOp)
"""What makes a nest take long enough to hide a message."""


@dataclass
class Uses:
    """The steps of a phase, by their number, in the order in which they are written.

    Args:
        heavy: ops that make a nest take long enough to hide a message.

    Attributes:
        reads, writes: the buffers of each.
        needs: the steps that it has to follow itself.
        behind: those, and what they follow.
        waits: the waits for other ranks among these.
    """

    steps: Sequence[Step]
    heavy: tuple[type[Operation], ...] = HEAVY
    reads: list[set[SSAValue]] = field(init=False)
    writes: list[set[SSAValue]] = field(init=False)
    needs: list[set[int]] = field(init=False)
    behind: list[set[int]] = field(init=False)
    waits: list[set[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.reads = [s.reads() for s in self.steps]
        self.writes = [s.writes() for s in self.steps]
        number = range(len(self.steps))
        self.needs = [{i for i in range(j) if self._must_follow(i, j)} for j in number]
        self.behind = []
        for direct in self.needs:
            self.behind.append(direct.union(*(self.behind[i] for i in direct)))
        waits = {j for j in number if isinstance(self.steps[j], MoveWaitOp | AllReduceOp)}
        self.waits = [waits & found for found in self.behind]

    def _must_follow(self, i: int, j: int) -> bool:
        """Whether a step has to stay behind an earlier one: one of them writes what the other uses,
        or a message of a plan waits for that before it."""
        if self.writes[i] & (self.reads[j] | self.writes[j]) or self.reads[i] & self.writes[j]:
            return True
        first, then = self.steps[i], self.steps[j]
        if not isinstance(first, MoveStartOp | MoveWaitOp):
            return False
        return isinstance(then, MoveStartOp | MoveWaitOp) and first.plan == then.plan

    def readers(self, i: int) -> list[int]:
        """The steps that have to follow one."""
        return [j for j, direct in enumerate(self.needs) if i in direct]

    def read_by(self, which: Iterable[int]) -> set[SSAValue]:
        """What any of some steps reads."""
        return set[SSAValue]().union(*(self.reads[j] for j in which))

    def over_the_same_rows(self, i: int, j: int) -> bool:
        """Whether two steps are nests over the same rows."""
        one, other = self.steps[i], self.steps[j]
        if not isinstance(one, TraverseOp) or not isinstance(other, TraverseOp):
            return False
        return one.size == other.size

    def goes_row_by_row(self, i: int) -> bool:
        """Whether a step is a nest without heavy ops: loops over groups, products."""
        step = self.steps[i]
        return isinstance(step, TraverseOp) and not any(
            isinstance(x, self.heavy) for x in step.walk()
        )
