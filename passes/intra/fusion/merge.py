"""fuse-traversals, merge: two nests over the same rows become one when the second reads of the
first only its own row.

Which pair first decides which others remain possible: a gradient of a weight may go with the nest
that makes one of its factors, or with another that streams the other factor. So the pair that saves
most memory traffic a row goes first: rows that need not be read again, rows that need not be
written, because nobody else reads them, and rows that loops over the same groups gather once for
both.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.intra.bindings import root
from ....dialects.intra.rows import LoadOp, LookupOp, MatmulOp, SegmentOp, StoreOp, TraverseOp
from ....dialects.intra.steps import Step, sections, steps
from ....dialects.intra.syntax import row_bytes
from ...analysis.costs import DEGREE
from .simplify import identity


@dataclass
class Accesses:
    """What a step does to memory: roots of the buffers it reads and writes; of a nest also bytes a
    row by root of what it loads and stores at its own row, and by group, table and root of what it
    gathers for the rows of its group.
    """

    reads: set[SSAValue]
    writes: set[SSAValue]
    loaded: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    stored: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    gathered: dict[object, int] = field(default_factory=dict[object, int])

    @staticmethod
    def of(step: Step) -> Accesses:
        found = Accesses(step.reads(), step.writes())
        if isinstance(step, TraverseOp):
            for op in step.walk():
                if isinstance(op, LoadOp) and op.row is step.row:
                    found.loaded[root(op.buffer)] = row_bytes(op.result)
                elif isinstance(op, StoreOp) and op.row is step.row:
                    found.stored[root(op.buffer)] = row_bytes(op.value)
            found.gathered = gathers(step)
        return found

    def may_change_places(self, other: Accesses) -> bool:
        """Whether two steps do the same in either order: neither writes what the other touches."""
        return (
            self.writes.isdisjoint(other.reads)
            and self.writes.isdisjoint(other.writes)
            and self.reads.isdisjoint(other.writes)
        )


def gathers(nest: TraverseOp) -> dict[object, int]:
    """What the groups of the nest's own rows look up through tables, in bytes a row."""
    found: dict[object, int] = {}
    for segment in nest.body.block.ops:
        if not isinstance(segment, SegmentOp) or segment.row is not nest.row:
            continue
        for op in segment.body.block.ops:
            if isinstance(op, LoadOp) and isinstance(lookup := op.row.owner, LookupOp):
                key = segment.offsets, identity(lookup.table), root(op.buffer)
                found[key] = round(DEGREE * row_bytes(op.result))
    return found


class Merger:
    """The steps of one function while pairs of nests are merged."""

    def __init__(self, func: FuncOp) -> None:
        self.order = steps(func)
        self.section = sections(self.order)
        self.accesses: dict[Step, Accesses] = {}
        self.readers: defaultdict[SSAValue, set[Step]] = defaultdict(set)
        self.touching: defaultdict[SSAValue, set[TraverseOp]] = defaultdict(set)
        self.gains: dict[TraverseOp, dict[TraverseOp, int]] = {}
        for step in self.order:
            self.note(step)
        for step in self.order:
            if isinstance(step, TraverseOp):
                self.consider_all(step)

    def run(self) -> set[TraverseOp]:
        """Merge pairs while there are any; the nests that stand for several."""
        merged: set[TraverseOp] = set()
        while (pair := self.best()) is not None:
            self.merge(*pair)
            merged.add(pair[0])
            merged.discard(pair[1])
        return merged

    def best(self) -> tuple[TraverseOp, TraverseOp] | None:
        """The legal pair that gains most; of equal ones the first that completes, as close as
        possible.
        """
        place = {n: k for k, n in enumerate(self.order)}
        ranked = [
            (-gain, place[b], -place[a])
            for a, partners in self.gains.items()
            for b, gain in partners.items()
        ]
        heapq.heapify(ranked)
        while ranked:
            _, j, i = heapq.heappop(ranked)
            first, second = self.order[-i], self.order[j]
            assert isinstance(first, TraverseOp) and isinstance(second, TraverseOp)
            if self.meet(-i, j) and self.reads_own_rows(first, second):
                return first, second
        return None

    def note(self, step: Step) -> None:
        """Take in what a step does to memory."""
        found = self.accesses[step] = Accesses.of(step)
        for buffer in found.reads:
            self.readers[buffer].add(step)
        if isinstance(step, TraverseOp):
            for buffer in found.reads | found.writes:
                self.touching[buffer].add(step)

    def forget(self, nest: TraverseOp) -> None:
        found = self.accesses.pop(nest)
        for buffer in found.reads | found.writes:
            self.readers[buffer].discard(nest)
            self.touching[buffer].discard(nest)

    def consider_all(self, nest: TraverseOp) -> None:
        """Note the gains of a nest with all that it shares a buffer with."""
        own = self.accesses[nest]
        near = {n for b in own.reads | own.writes for n in self.touching[b] if n is not nest}
        place = {n: k for k, n in enumerate(self.order)}
        for other in near:
            first, second = sorted((nest, other), key=place.__getitem__)
            self.consider(first, second)

    def consider(self, first: TraverseOp, second: TraverseOp) -> None:
        """Note what merging the two would gain, if they have anything in common."""
        if first.size is not second.size or self.section[first] != self.section[second]:
            return
        a, b = self.accesses[first], self.accesses[second]
        common = (a.writes | a.reads) & b.reads
        if not common or b.writes & (a.reads | a.writes):
            return
        gain = 0
        for buffer in (a.loaded.keys() | a.stored.keys()) & b.loaded.keys():
            gain += b.loaded[buffer]
            if buffer in a.stored and self.readers[buffer] <= {second}:
                gain += a.stored[buffer]
        gain += sum(a.gathered[k] for k in a.gathered.keys() & b.gathered.keys())
        self.gains.setdefault(first, {})[second] = gain

    def meet(self, i: int, j: int) -> bool:
        """Whether one of two nests may be done next to the other."""
        return self.goes_up(i, j) or self.passes(i, i, j)

    def goes_up(self, i: int, j: int) -> bool:
        """Whether the second may be done next to the first. Over nests only: a message that it is
        done before starts later, and it no longer hides how long that takes.
        """
        between = self.order[i + 1 : j]
        return all(isinstance(s, TraverseOp) for s in between) and self.passes(j, i, j)

    def passes(self, moved: int, i: int, j: int) -> bool:
        """Whether a nest may be done before, or after, the steps between `i` and `j`."""
        own = self.accesses[self.order[moved]]
        return all(own.may_change_places(self.accesses[s]) for s in self.order[i + 1 : j])

    def reads_own_rows(self, first: TraverseOp, second: TraverseOp) -> bool:
        """Of what `first` stores, `second` loads its own row only, through no view, and nothing it
        totals.
        """
        made = self.accesses[first].writes
        if not made & self.accesses[second].reads:
            return True
        stored = own_stores(first)
        for op in second.walk():
            if isinstance(op, MatmulOp) and root(op.weight) in made:
                return False
            if isinstance(op, LoadOp) and root(op.buffer) in made:
                if op.buffer not in stored or op.row is not second.row or op.otherwise is not None:
                    return False
        return True

    def merge(self, first: TraverseOp, second: TraverseOp) -> None:
        """One nest in the place of the two; the first stands for both from here on."""
        i, j = self.order.index(first), self.order.index(second)
        late = not self.goes_up(i, j)
        merge(first, second, late)
        del self.order[j]
        if late:
            del self.order[i]
            self.order.insert(j - 1, first)
        self.forget(second)
        self.forget(first)
        self.note(first)
        for nest in (first, second):
            self.gains.pop(nest, None)
            for partners in self.gains.values():
                partners.pop(nest, None)
        self.consider_all(first)


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
    for op in list(second.body.walk()):
        if isinstance(op, LoadOp) and op.buffer in stored and op.row is first.row:
            Rewriter.replace_op(op, [], [stored[op.buffer]])
    for op in list(second.body.block.ops):
        op.detach()
        first.body.block.add_op(op)
    if late:
        first.detach()
        Rewriter.insert_op(first, InsertPoint.before(second))
    Rewriter.erase_op(second)
