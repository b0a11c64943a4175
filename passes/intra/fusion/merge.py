"""fuse-traversals, merge: two nests over the same rows become one when the second reads of the
first only its own row.

Which pair first decides which others remain possible: a gradient of a weight may go with the nest
that makes one of its factors, or with another that streams the other factor. So the pair that saves
most memory traffic a row goes first: rows that need not be read again, rows that need not be
written, because nobody else reads them, and rows that loops over the same groups gather once for
both (candidates.py).

A merged nest has a bounded number of ops and products. Of many relations that read the same rows
one nest would take all: the time of C compilers grows faster than a function, while nests of a few
relations each print the same text, which is compiled once, and still read a row once for several.
"""

from __future__ import annotations

from collections import defaultdict

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.intra.bindings import root
from ....dialects.intra.rows import LoadOp, MatmulOp, StoreOp, TraverseOp
from ....dialects.intra.steps import Step, sections, steps
from ....dialects.walks import ops_within
from ...targets import Nests
from .candidates import Candidates, Pair, Users


class Merger:
    """The steps of one function while pairs of nests are merged.

    A pair that may not be merged waits until one of the steps in its way is merged itself: before
    that nothing changes for it. `place` tells which of two steps comes first.
    """

    def __init__(self, func: FuncOp, limits: Nests) -> None:
        order = steps(func)
        self.place = {step: k for k, step in enumerate(order)}
        self.fixed = [step for step in order if not isinstance(step, TraverseOp)]
        self.users = Users()
        self.waiting: defaultdict[Step, list[Pair]] = defaultdict(list)
        for step in order:
            self.users.note(step)
        self.candidates = Candidates(self.users, self.place, sections(order), limits)
        for step in order:
            if isinstance(step, TraverseOp):
                self.candidates.add(step)

    def run(self) -> set[TraverseOp]:
        """Merge pairs while there are any; the nests that stand for several."""
        merged: set[TraverseOp] = set()
        while (pair := self.best()) is not None:
            self.merge(*pair)
            merged.add(pair[0])
            merged.discard(pair[1])
        return merged

    def best(self) -> Pair | None:
        """The legal pair that is to be merged first."""
        while (pair := self.candidates.pop()) is not None:
            if (in_the_way := self.in_the_way(*pair)) is not None:
                for step in in_the_way:
                    self.waiting[step].append(pair)
            elif self.reads_own_rows(*pair):
                return pair
        return None

    def in_the_way(self, first: TraverseOp, second: TraverseOp) -> list[Step] | None:
        """Steps because of which neither nest may be done next to the other; None where one may."""
        up = self.stops_going_up(first, second)
        down = None if up is None else self.stops(first, first, second)
        return None if up is None or down is None else [up, down]

    def stops_going_up(self, first: TraverseOp, second: TraverseOp) -> Step | None:
        """A step because of which the second may not be done next to the first. It goes up over
        nests only: a message that it is done before starts later, and it no longer hides how long
        that takes.
        """
        other = next((s for s in self.fixed if self.is_between(s, first, second)), None)
        return other or self.stops(second, first, second)

    def stops(self, moved: TraverseOp, first: TraverseOp, second: TraverseOp) -> Step | None:
        """A step between two because of which a nest may not be done before or after all of them:
        one that writes what it touches, or touches what it writes."""
        own = self.users.accesses[moved]
        touching = [self.users.writers[b] for b in own.reads | own.writes]
        touching += [self.users.readers[b] for b in own.writes]
        near = (step for found in touching for step in found)
        return next((step for step in near if self.is_between(step, first, second)), None)

    def is_between(self, step: Step, first: Step, second: Step) -> bool:
        return self.place[first] < self.place[step] < self.place[second]

    def reads_own_rows(self, first: TraverseOp, second: TraverseOp) -> bool:
        """Of what `first` stores, `second` loads its own row only, through no view, and nothing it
        totals.
        """
        made = self.users.accesses[first].writes
        if not made & self.users.accesses[second].reads:
            return True
        stored = own_stores(first)
        for op in ops_within(second):
            if isinstance(op, MatmulOp) and root(op.weight) in made:
                return False
            if isinstance(op, LoadOp) and root(op.buffer) in made:
                if op.buffer not in stored or op.row is not second.row or op.otherwise is not None:
                    return False
        return True

    def merge(self, first: TraverseOp, second: TraverseOp) -> None:
        """One nest in the place of the two; the first stands for both from here on."""
        late = self.stops_going_up(first, second) is not None
        merge(first, second, late)
        for nest in (first, second):
            self.users.forget(nest)
            self.candidates.remove(nest)
        if late:
            self.place[first] = self.place[second]
        self.users.note(first)
        self.candidates.add(first)
        for nest in (first, second):
            for pair in self.waiting.pop(nest, ()):
                self.candidates.push(*pair)


def own_stores(nest: TraverseOp) -> dict[SSAValue, SSAValue]:
    """What a nest stores at its own row, by buffer; one that visits rows in the order of groups
    stores other rows than its own.
    """
    stores = [op for op in nest.body.block.ops if isinstance(op, StoreOp)]
    return {op.buffer: op.value for op in stores if op.row is nest.row}


def merge(first: TraverseOp, second: TraverseOp, late: bool) -> None:
    """Put both bodies into one nest, at the place of the second when `late`; pass stored rows on as
    values.
    """
    stored = own_stores(first)
    second.row.replace_all_uses_with(first.row)
    for op in ops_within(second):
        if isinstance(op, LoadOp) and op.buffer in stored and op.row is first.row:
            Rewriter.replace_op(op, [], [stored[op.buffer]])
    for op in list(second.body.block.ops):
        op.detach()
        first.body.block.add_op(op)
    if late:
        first.detach()
        Rewriter.insert_op(first, InsertPoint.before(second))
    Rewriter.erase_op(second)
