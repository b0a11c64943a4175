"""fuse-traversals, producers: nests that only move or combine numbers of their row, and when one
costs its readers no more than to read what it stores.
"""

from __future__ import annotations

from functools import cached_property

from xdsl.ir import Operation, OpResult

from ....dialects.intra.bindings import InputOp, MembersOp, SizeOp, root
from ....dialects.intra.remote import is_remote
from ....dialects.intra.rows import (
    ApplyOp,
    BroadcastOp,
    CastOp,
    ConcatOp,
    ConstOp,
    CountOp,
    DotOp,
    DropoutOp,
    FirstOp,
    FoldOp,
    LengthOp,
    LoadOp,
    LookupOp,
    MatmulOp,
    PositionOp,
    ReshapeOp,
    SegmentOp,
    SliceOp,
    StoreOp,
    TransposeOp,
    TraverseOp,
)
from ....dialects.intra.syntax import inside, length
from ....dialects.pointwise import POINTWISE
from ...targets import Nests

MOVES = (
    LookupOp,
    FirstOp,
    LoadOp,
    ConstOp,
    PositionOp,
    CountOp,
    LengthOp,
    ReshapeOp,
    BroadcastOp,
    SliceOp,
    TransposeOp,
)


CHEAP = (*MOVES, ApplyOp, CastOp, ConcatOp, DropoutOp)
ROW_WISE = (*CHEAP, FoldOp, DotOp)
"""Ops whose result follows from their row alone, at no more than a few operations a number."""
DRAWN = (FirstOp, LoadOp, ConstOp, ReshapeOp, BroadcastOp)
"""What stands beside a dropout that nothing but the number of a row decides: its key, and ones."""
PLAIN = 4
"""Operations on each number that take no longer than to read a row from memory."""


class Producer:
    """A nest that does nothing else than compute a temporary, row by row and cheaply. What is asked
    of it is found once: it holds until the nest changes.
    """

    def __init__(self, nest: TraverseOp, store: StoreOp, limits: Nests) -> None:
        self.nest = nest
        self.store = store
        self.limits = limits
        self.reads = nest.reads()
        self.body = [op for op in nest.body.block.ops if op is not store]

    @staticmethod
    def of(nest: TraverseOp, limits: Nests) -> Producer | None:
        """`nest` as a producer, if it is one."""
        ops = list(nest.body.block.ops)
        stores = [op for op in ops if isinstance(op, StoreOp)]
        if len(stores) != 1 or not isinstance(root(stores[0].buffer), OpResult):
            return None
        found = Producer(nest, stores[0], limits)
        if not all(isinstance(op, ROW_WISE) or found.multiplies(op) for op in found.body):
            return None
        edits_in_place = not found.reads.isdisjoint(nest.writes())
        return None if edits_in_place else found

    @cached_property
    def loads(self) -> list[LoadOp]:
        """What it reads."""
        return [op for op in self.body if isinstance(op, LoadOp)]

    @cached_property
    def wide(self) -> list[LoadOp]:
        """Those of its loads that take memory traffic worth counting."""
        return [op for op in self.loads if length(op.result) > self.limits.narrow]

    @cached_property
    def work(self) -> list[Operation]:
        """What is more than to move numbers."""
        return [op for op in self.body if not isinstance(op, MOVES)]

    def may_inline(self, load: LoadOp, readers: int) -> bool:
        """Whether reading the row by computing it costs no more than reading it; `readers` is how
        many loads there are of it."""
        if load.otherwise is not None or inside(load, TraverseOp) is self.nest:
            return False
        if self.has_otherwise and inside(load, SegmentOp):
            return False
        if not self.work or self.expands or self.multiplies_out:
            return True
        if self.joins_arguments(load, readers):
            return True
        if self.is_mask:
            return length(load.result) == 1
        if not self.reads_each_row_once(load):
            return False
        return not self.is_heavy or readers == 1 or self.replays

    def multiplies(self, op: Operation) -> bool:
        """Whether an op multiplies a narrow row that lies in memory with a matrix of more columns:
        in the loop over a group, where no rows share the matrix, that takes no longer than to read
        the product, and nobody stores it.
        """
        if not isinstance(op, MatmulOp) or op.index is not None:
            return False
        x, n = op.x.owner, op.sizes()
        lies = isinstance(x, LoadOp) and x.otherwise is None and not is_remote(x.buffer)
        alone = n["l"] == n["b"] == 1
        return lies and alone and n["k"] <= self.limits.narrow_product and n["k"] < n["f"]

    @cached_property
    def has_otherwise(self) -> bool:
        return any(op.otherwise is not None for op in self.loads)

    @cached_property
    def is_heavy(self) -> bool:
        """Whether a row costs many additions for each number."""
        return any(isinstance(op, FoldOp | DotOp) or is_heavy(op) for op in self.body)

    @cached_property
    def joins_its_row(self) -> bool:
        """Whether a row is made of several that lie at its own place. As long as it is stored for
        anybody, to read it is less than to read those, which need not be stored then.
        """
        return len(self.wide) > 1 and all(op.row is self.nest.row for op in self.wide)

    @cached_property
    def is_mask(self) -> bool:
        """Whether a row is drawn: it follows from its number and a single row. A narrow one is
        drawn again rather than stored for those who gather it.
        """
        drawn = [op for op in self.body if isinstance(op, DropoutOp)]
        single = all(isinstance(op.row.owner, FirstOp) for op in self.loads)
        known = all(isinstance(op, (*DRAWN, DropoutOp)) for op in self.body)
        return len(drawn) == 1 and single and known

    @cached_property
    def replays(self) -> bool:
        """Whether a row is made again for no more than storing it and reading it elsewhere costs:
        the exp of an attention score from its parts at both ends, of which a reader has one anyway.
        """
        drawn = [op for op in self.body if draws_number(op)]
        heavy = [op for op in self.body if is_heavy(op) and op not in drawn]
        most = self.limits.replayed_numbers
        narrow = all(length(op.results[0]) <= most for op in (*self.loads, *heavy))
        simple = all(isinstance(op, (ApplyOp, CastOp)) or op in drawn for op in self.work)
        gathers = any(op.row is not self.nest.row for op in self.loads)
        # the key of a dropout is no row
        few = len(drawn) <= 1 and len(self.loads) - len(drawn) <= self.limits.replayed_loads
        return simple and narrow and gathers and len(heavy) <= 1 and few

    @cached_property
    def expands(self) -> bool:
        """Whether a nest scales rows that it gathers, or those of an argument: its wide rows are
        those of a buffer that is smaller or stays, and one multiplication does it. Reading these
        again costs less than a buffer of copies.
        """
        there = bool(self.wide) and all(
            op.row is not self.nest.row or stays(op) for op in self.wide
        )
        one = self.work[0] if len(self.work) == 1 else None
        return there and isinstance(one, ApplyOp) and one.fn.data == "mul"

    def joins_arguments(self, load: LoadOp, readers: int) -> bool:
        """Whether a reader's own row is made of rows of arguments, or of gathered ones, which lie
        there anyway, by a few plain operations, and to make it each time moves fewer rows than to
        store it: the one that stores it reads all of them, and writes a row, which takes it from
        memory first.
        """
        if load.row is not nest_of(load).row:
            return False
        there = bool(self.wide) and all(
            op.row is not self.nest.row or stays(op) for op in self.wide
        )
        plain = all(isinstance(op, ApplyOp) and not is_heavy(op) for op in self.work)
        rows = len(self.wide)
        fewer = rows * readers < rows + 2 + (readers - 1)
        return there and plain and len(self.work) <= PLAIN and fewer

    @cached_property
    def multiplies_out(self) -> bool:
        """Whether a row holds each number of one row times each of another: to make it again is to
        make the two, which are shorter, and a multiplication for each number that would have been
        read.
        """
        products = [op for op in self.body if isinstance(op, DotOp)]
        if len(products) != 1 or not all(isinstance(op, (*CHEAP, DotOp)) for op in self.body):
            return False
        a, b, out = products[0].letters()
        factors = length(products[0].a) + length(products[0].b)
        rest = [op for op in self.body if op is not products[0] and op.results]
        short = all(length(op.results[0]) <= factors and not is_heavy(op) for op in rest)
        return short and len(a + b) == len(out) and factors < length(products[0].result)

    def reads_each_row_once(self, load: LoadOp) -> bool:
        """The load runs over the members of groups of the nest's own rows."""
        segment, lookup = inside(load, SegmentOp), load.row.owner
        if segment is None or not isinstance(lookup, LookupOp):
            return False
        table, size = lookup.table.owner, self.nest.size.owner
        if not isinstance(table, MembersOp) or not isinstance(size, SizeOp):
            return False
        return lookup.row is segment.regions[0].block.args[0] and size.domain == table.domain


def nest_of(op: Operation) -> TraverseOp:
    """The nest that an op stands in."""
    nest = inside(op, TraverseOp)
    assert isinstance(nest, TraverseOp)
    return nest


def stays(load: LoadOp) -> bool:
    """Whether the rows are those of an argument."""
    return isinstance(root(load.buffer).owner, InputOp)


def draws_number(op: Operation) -> bool:
    """Whether the op drops one number, which is drawn for several rows at a time."""
    return isinstance(op, DropoutOp) and length(op.result) == 1


def is_heavy(op: Operation) -> bool:
    """Whether the op costs many additions for each number."""
    if isinstance(op, DropoutOp):
        return True
    return isinstance(op, ApplyOp) and POINTWISE[op.fn.data].heavy
