"""Sums that are done beside others, of the same rows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ....dialects.intra.bindings import OffsetsOp, SizeOp
from ....dialects.intra.rows import SegmentOp, TraverseOp
from ....dialects.intra.steps import Step
from .uses import Uses


class Beside:
    """Sums that cost little beside others: for the same groups, of what follows from the same
    values. Apart, rows would be read, and what follows from them computed, twice."""

    def __init__(self, uses: Uses) -> None:
        before, needs = uses.steps, uses.needs
        self.behind = uses.behind
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
