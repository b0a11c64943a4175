"""fuse-traversals, candidates: the pairs of nests that merge may join, by what they gain.

Hundreds of relations read the rows of the same nodes, so each of their nests is a pair with each
other. These pairs are not made one by one. Of nests that do the same to the buffers that many
use, a *kind*, every pair with a given nest gains alike, if the two have nothing else in common: the
best of them stands for all, and is followed by the next best when it is taken. Pairs that share a
buffer of few nests are made as soon as both are known.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ....dialects.intra.rows import TraverseOp
from ....dialects.intra.steps import Step
from ...targets import Nests
from .accesses import Accesses

Pair = tuple[TraverseOp, TraverseOp]
"""Two nests in the order in which they are done."""

FEW = 8
"""Users of a buffer whose pairs are made one by one."""


@dataclass
class Users:
    """What steps do to memory, and who reads and writes a buffer."""

    accesses: dict[Step, Accesses] = field(default_factory=dict[Step, Accesses])
    readers: defaultdict[SSAValue, set[Step]] = field(
        default_factory=lambda: defaultdict[SSAValue, set[Step]](set)
    )
    writers: defaultdict[SSAValue, set[Step]] = field(
        default_factory=lambda: defaultdict[SSAValue, set[Step]](set)
    )

    def note(self, step: Step) -> None:
        """Take in what a step does to memory."""
        found = self.accesses[step] = Accesses.of(step)
        for buffer in found.reads:
            self.readers[buffer].add(step)
        for buffer in found.writes:
            self.writers[buffer].add(step)

    def forget(self, step: Step) -> None:
        found = self.accesses.pop(step)
        for buffer in found.reads:
            self.readers[buffer].discard(step)
        for buffer in found.writes:
            self.writers[buffer].discard(step)

    def shared(self) -> set[SSAValue]:
        """The buffers that more than a few steps use."""
        found = self.readers.keys() | self.writers.keys()
        return {b for b in found if len(self.readers[b]) + len(self.writers[b]) > FEW}


@dataclass
class Kind:
    """Nests over the same rows that do the same to shared buffers, by their places in order."""

    accesses: Accesses
    places: list[int] = field(default_factory=list[int])


@dataclass(frozen=True)
class Others:
    """Pairs of one nest with those of a kind that were known before it, and come before it, the
    nearest first, or `after` it, the first first. Each gains as much.
    """

    nest: TraverseOp
    stamp: int
    kind: Kind
    after: bool
    gain: int


Entry = tuple[int, int, int, int, Pair, Others | None]
"""What a pair is ranked by (the least first), a number that tells entries apart, the pair, and the
pairs that it is the best of."""


class Candidates:
    """Pairs of nests by rank, while nests come and go. `place` tells which of two comes first, and
    `section` which may not meet.
    """

    def __init__(
        self, users: Users, place: Mapping[Step, int], section: Mapping[Step, int], limits: Nests
    ) -> None:
        self.users = users
        self.place = place
        self.section = section
        self.limits = limits
        self.shared = users.shared()
        self.gains: dict[TraverseOp, dict[TraverseOp, int]] = {}
        """Of pairs that were made one by one."""
        self.earlier: defaultdict[TraverseOp, set[TraverseOp]] = defaultdict(set)
        """The nests before one that it has a gain with."""
        self.kinds: defaultdict[object, dict[object, Kind]] = defaultdict(dict)
        """By the rows that nests go over, and by what they do to shared buffers."""
        self.keys: dict[TraverseOp, tuple[object, object]] = {}
        self.nests: dict[int, TraverseOp] = {}
        """Those in a kind, by place."""
        self.stamps: dict[TraverseOp, int] = {}
        self.count = itertools.count()
        self.ranked: list[Entry] = []

    def add(self, nest: TraverseOp) -> None:
        """Note the pairs of a nest with all that are known and that it shares a buffer with."""
        self.stamps[nest] = next(self.count)
        for other in self.near(nest):
            if other is not nest and other in self.stamps:
                first, second = sorted((nest, other), key=self.place.__getitem__)
                self.consider(first, second)
        self.add_to_kind(nest)

    def near(self, nest: TraverseOp) -> set[TraverseOp]:
        """The nests that use a buffer of this one which few use, or of which either is the only
        reader: that one saves those who write it the store.
        """
        own = self.users.accesses[nest]
        found = set[Step]()
        for buffer in own.reads | own.writes:
            readers, writers = self.users.readers[buffer], self.users.writers[buffer]
            if buffer not in self.shared or readers == {nest}:
                found |= readers | writers
            elif len(readers) == 1:
                found |= readers
        return {step for step in found if isinstance(step, TraverseOp)}

    def consider(self, first: TraverseOp, second: TraverseOp) -> None:
        """Note what merging the two would gain, if they have anything in common."""
        if first.size is not second.size or self.section[first] != self.section[second]:
            return
        gain = self.gain(first, second)
        if gain is not None and self.gains.setdefault(first, {}).get(second) != gain:
            self.gains[first][second] = gain
            self.earlier[second].add(first)
            self.push(first, second)

    def gain(self, first: TraverseOp, second: TraverseOp) -> int | None:
        """The bytes a row that merging two nests over the same rows saves; None where they have
        nothing in common, or one may not be done next to the other.
        """
        a, b = self.users.accesses[first], self.users.accesses[second]
        gain = self.common_gain(a, b)
        if gain is None:
            return None
        stored = a.stored.keys() & b.loaded.keys()
        return gain + sum(a.stored[x] for x in stored if self.users.readers[x] <= {second})

    def common_gain(self, a: Accesses, b: Accesses) -> int | None:
        """The same without stores that are saved."""
        common = (a.writes | a.reads) & b.reads
        if not common or b.writes & (a.reads | a.writes) or self.too_long(a, b):
            return None
        loaded = (a.loaded.keys() | a.stored.keys()) & b.loaded.keys()
        gathered = a.gathered.keys() & b.gathered.keys()
        return sum(b.loaded[x] for x in loaded) + sum(a.gathered[k] for k in gathered)

    def too_long(self, a: Accesses, b: Accesses) -> bool:
        """Whether both nests together would hold more than a nest may."""
        products, ops = a.products + b.products, a.ops + b.ops
        return products > self.limits.merged_products or ops > self.limits.merged_ops

    def add_to_kind(self, nest: TraverseOp) -> None:
        """Let a nest stand among those of its kind, and note its pairs with all kinds."""
        own = self.users.accesses[nest].of_buffers(self.shared)
        if not own.reads and not own.writes:
            return
        rows, key = self.keys[nest] = (nest.size, self.section[nest]), own.key()
        kinds = self.kinds[rows]
        for kind in kinds.values():
            for after, a, b in ((False, kind.accesses, own), (True, own, kind.accesses)):
                if (gain := self.common_gain(a, b)) is not None:
                    others = Others(nest, self.stamps[nest], kind, after, gain)
                    self.push_next(others, self.place[nest])
        place = self.place[nest]
        self.nests[place] = nest
        insort(kinds.setdefault(key, Kind(own)).places, place)

    def push_next(self, others: Others, place: int) -> None:
        """Take the best pair of these in among those that are ranked, from a place on."""
        own, nests = self.place[others.nest], self.nests
        for k in (
            behind(others.kind.places, place) if others.after else before(others.kind.places, place)
        ):
            if self.stamps[nests[k]] < others.stamp:
                pair = (others.nest, nests[k]) if others.after else (nests[k], others.nest)
                rank = (k, -own) if others.after else (own, -k)
                found = -others.gain, *rank, next(self.count), pair, others
                heapq.heappush(self.ranked, found)
                return

    def remove(self, nest: TraverseOp) -> None:
        """Forget a nest and its pairs, before its place changes."""
        del self.stamps[nest]
        for later in self.gains.pop(nest, {}):
            self.earlier[later].discard(nest)
        for before_it in self.earlier.pop(nest, ()):
            self.gains[before_it].pop(nest)
        if nest not in self.keys:
            return
        rows, key = self.keys.pop(nest)
        place = self.place[nest]
        del self.nests[place]
        places = self.kinds[rows][key].places
        places.pop(bisect_left(places, place))
        if not places:
            del self.kinds[rows][key]

    def pop(self) -> Pair | None:
        """The pair that gains most; of equal ones the first to complete, as close as possible."""
        while self.ranked:
            *rank, _, pair, others = heapq.heappop(self.ranked)
            if others is not None:
                self.take(pair, others)
            elif rank == self.rank(*pair):
                return pair
        return None

    def take(self, pair: Pair, others: Others) -> None:
        """Make a pair that is the best of many, and let the next best stand for the rest."""
        if self.stamps.get(others.nest) != others.stamp:
            return  # it has changed since
        first, second = pair
        self.push_next(others, self.place[second if others.after else first])
        if self.stamps.get(second if others.after else first, others.stamp) < others.stamp:
            self.consider(first, second)

    def rank(self, first: TraverseOp, second: TraverseOp) -> list[int] | None:
        """Of pairs the least is merged first; None for one that is none any more."""
        gain = self.gains.get(first, {}).get(second)
        return None if gain is None else [-gain, self.place[second], -self.place[first]]

    def push(self, first: TraverseOp, second: TraverseOp) -> None:
        """Take a pair in among those that are ranked, if it still is one."""
        if (rank := self.rank(first, second)) is not None:
            gain, second_place, first_place = rank
            found = gain, second_place, first_place, next(self.count), (first, second), None
            heapq.heappush(self.ranked, found)


def before(places: list[int], place: int) -> Iterator[int]:
    """The places before one, the nearest first."""
    return (places[k] for k in range(bisect_left(places, place) - 1, -1, -1))


def behind(places: list[int], place: int) -> Iterator[int]:
    """The places behind one, the nearest first."""
    return (places[k] for k in range(bisect_right(places, place), len(places)))
