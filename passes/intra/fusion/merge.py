"""fuse-traversals, merge: two nests over the same rows become one when the second reads of the
first only its own row.

Which pair first decides which others remain possible: a gradient of a weight may go with the nest
that makes one of its factors, or with another that streams the other factor. So the pair that saves
most memory traffic a row goes first: rows that need not be read again, rows that need not be
written, because nobody else reads them, and rows that loops over the same groups gather once for
both.

A merged nest has a bounded number of ops and products. Of many relations that read the same rows
one nest would take all: the time of C compilers grows faster than a function, while nests of a few
relations each print the same text, which is compiled once, and still read a row once for several.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.intra.bindings import root
from ....dialects.intra.rows import (
    LoadOp,
    LookupOp,
    MatmulOp,
    OuterOp,
    SegmentOp,
    StoreOp,
    TraverseOp,
    buffers_read,
    buffers_written,
)
from ....dialects.intra.steps import Step, sections, steps
from ....dialects.intra.syntax import row_bytes
from ....dialects.walks import ops_within
from ...analysis.costs import DEGREE
from ...targets import Nests
from .simplify import identity

Pair = tuple[TraverseOp, TraverseOp]
"""Two nests in the order in which they are done."""


@dataclass
class Accesses:
    """What a step does to memory: roots of the buffers it reads and writes; of a nest also bytes a
    row by root of what it loads and stores at its own row, and by group, table and root of what it
    gathers for the rows of its group; how many ops and products it has.
    """

    reads: set[SSAValue]
    writes: set[SSAValue]
    loaded: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    stored: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    gathered: dict[object, int] = field(default_factory=dict[object, int])
    ops: int = 0
    products: int = 0

    @staticmethod
    def of(step: Step) -> Accesses:
        if not isinstance(step, TraverseOp):
            return Accesses(step.reads(), step.writes())
        ops, row = ops_within(step), step.row
        found = Accesses(buffers_read(ops), buffers_written(ops), ops=1 + len(ops))
        for op in ops:
            if isinstance(op, LoadOp):
                if op.row is row:
                    found.loaded[root(op.buffer)] = row_bytes(op.result)
            elif isinstance(op, StoreOp):
                if op.row is row:
                    found.stored[root(op.buffer)] = row_bytes(op.value)
            elif isinstance(op, MatmulOp | OuterOp):
                found.products += 1
        found.gathered = gathers(step)
        return found


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
    """The steps of one function while pairs of nests are merged.

    A pair that may not be merged waits until one of the steps in its way is merged itself: before
    that nothing changes for it. `place` tells which of two steps comes first.
    """

    def __init__(self, func: FuncOp, limits: Nests) -> None:
        order = steps(func)
        self.limits = limits
        self.section = sections(order)
        self.place = {step: k for k, step in enumerate(order)}
        self.fixed = [step for step in order if not isinstance(step, TraverseOp)]
        self.accesses: dict[Step, Accesses] = {}
        self.readers: defaultdict[SSAValue, set[Step]] = defaultdict(set)
        self.writers: defaultdict[SSAValue, set[Step]] = defaultdict(set)
        self.gains: dict[TraverseOp, dict[TraverseOp, int]] = {}
        self.earlier: defaultdict[TraverseOp, set[TraverseOp]] = defaultdict(set)
        """The nests before one that it has a gain with."""
        self.ranked: list[tuple[int, int, int, int, Pair]] = []
        self.pushed = itertools.count()
        self.waiting: defaultdict[Step, list[Pair]] = defaultdict(list)
        for step in order:
            self.note(step)
        for step in order:
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

    def best(self) -> Pair | None:
        """The legal pair that gains most; of equal ones the first that completes, as close as
        possible.
        """
        while self.ranked:
            *rank, _, (first, second) = heapq.heappop(self.ranked)
            if rank != self.rank(first, second):
                continue  # one of them has changed since
            if (in_the_way := self.in_the_way(first, second)) is not None:
                for step in in_the_way:
                    self.waiting[step].append((first, second))
            elif self.reads_own_rows(first, second):
                return first, second
        return None

    def rank(self, first: TraverseOp, second: TraverseOp) -> list[int] | None:
        """Of pairs the least is merged first; None for one that is none any more."""
        gain = self.gains.get(first, {}).get(second)
        return None if gain is None else [-gain, self.place[second], -self.place[first]]

    def push(self, first: TraverseOp, second: TraverseOp) -> None:
        """Take a pair in among those that are ranked, if it still is one."""
        if (rank := self.rank(first, second)) is not None:
            gain, second_place, first_place = rank
            found = gain, second_place, first_place, next(self.pushed), (first, second)
            heapq.heappush(self.ranked, found)

    def note(self, step: Step) -> None:
        """Take in what a step does to memory."""
        found = self.accesses[step] = Accesses.of(step)
        for buffer in found.reads:
            self.readers[buffer].add(step)
        for buffer in found.writes:
            self.writers[buffer].add(step)

    def forget(self, nest: TraverseOp) -> None:
        found = self.accesses.pop(nest)
        for buffer in found.reads:
            self.readers[buffer].discard(nest)
        for buffer in found.writes:
            self.writers[buffer].discard(nest)

    def consider_all(self, nest: TraverseOp) -> None:
        """Note the gains of a nest with all that it shares a buffer with."""
        own = self.accesses[nest]
        touching = (self.readers[b] | self.writers[b] for b in own.reads | own.writes)
        for other in set[Step]().union(*touching):
            if isinstance(other, TraverseOp) and other is not nest:
                first, second = sorted((nest, other), key=self.place.__getitem__)
                self.consider(first, second)

    def consider(self, first: TraverseOp, second: TraverseOp) -> None:
        """Note what merging the two would gain, if they have anything in common."""
        if first.size is not second.size or self.section[first] != self.section[second]:
            return
        a, b = self.accesses[first], self.accesses[second]
        common = (a.writes | a.reads) & b.reads
        if not common or b.writes & (a.reads | a.writes) or self.too_long(a, b):
            return
        gain = 0
        for buffer in (a.loaded.keys() | a.stored.keys()) & b.loaded.keys():
            gain += b.loaded[buffer]
            if buffer in a.stored and self.readers[buffer] <= {second}:
                gain += a.stored[buffer]
        gain += sum(a.gathered[k] for k in a.gathered.keys() & b.gathered.keys())
        if self.gains.setdefault(first, {}).get(second) != gain:
            self.gains[first][second] = gain
            self.earlier[second].add(first)
            self.push(first, second)

    def too_long(self, a: Accesses, b: Accesses) -> bool:
        """Whether both nests together would hold more than a nest may."""
        products, ops = a.products + b.products, a.ops + b.ops
        return products > self.limits.merged_products or ops > self.limits.merged_ops

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
        own = self.accesses[moved]
        touching = [self.writers[b] for b in own.reads | own.writes]
        touching += [self.readers[b] for b in own.writes]
        near = (step for found in touching for step in found)
        return next((step for step in near if self.is_between(step, first, second)), None)

    def is_between(self, step: Step, first: Step, second: Step) -> bool:
        return self.place[first] < self.place[step] < self.place[second]

    def reads_own_rows(self, first: TraverseOp, second: TraverseOp) -> bool:
        """Of what `first` stores, `second` loads its own row only, through no view, and nothing it
        totals.
        """
        made = self.accesses[first].writes
        if not made & self.accesses[second].reads:
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
        self.forget(second)
        self.forget(first)
        if late:
            self.place[first] = self.place[second]
        self.note(first)
        for nest in (first, second):
            for later in self.gains.pop(nest, {}):
                self.earlier[later].discard(nest)
            for before in self.earlier.pop(nest, ()):
                self.gains[before].pop(nest)
        self.consider_all(first)
        for nest in (first, second):
            for pair in self.waiting.pop(nest, ()):
                self.push(*pair)


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
