"""fuse-traversals, inline: a nest that only moves or combines numbers of its row disappears into
those who read it, where that repeats little work: index and shape ops anywhere, others where each
row is read by one group (messages into sums).
"""

from __future__ import annotations

from collections import defaultdict

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.intra.bindings import InputOp, MembersOp, SizeOp, root
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
    PositionOp,
    ReshapeOp,
    SegmentOp,
    SliceOp,
    StoreOp,
    TransposeOp,
    TraverseOp,
    nests,
)
from ....dialects.intra.steps import steps
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
DRAWN = (FirstOp, LoadOp, ConstOp, ReshapeOp, BroadcastOp)
"""What stands beside a dropout that nothing but the number of a row decides: its key, and ones."""

PLAIN = 4
"""Operations on each number that take no longer than to read a row from memory."""


def inline_producers(func: FuncOp, limits: Nests) -> set[TraverseOp]:
    """Dissolve nests into the nests that read them; the nests that have changed. `limits` are those
    of the target."""
    changed: set[TraverseOp] = set()
    order = steps(func)
    place = {step: k for k, step in enumerate(order)}
    written: defaultdict[SSAValue, list[int]] = defaultdict(list)
    for k, step in enumerate(order):
        for buffer in step.writes():
            written[buffer].append(k)
    for nest in nests(func):
        store = only_store(nest)
        if store is None or len(written[root(store.buffer)]) > 1:
            continue
        reads = nest.reads()
        if not reads.isdisjoint(nest.writes()):  # it edits rows in place
            continue
        later = [k for b in reads for k in written[b] if k > place[nest]]
        until = min(later, default=len(order))
        loads = [u.operation for u in store.buffer.uses if u.operation is not store]
        # a reader may stand behind a wait: what is dissolved is cheap and hides little of it
        here = [
            op
            for op in loads
            if isinstance(op, LoadOp) and place[nest] < place[nest_of(op)] <= until
        ]
        wanted = [op for op in here if may_inline(nest, op, len(loads), limits)]
        if len(wanted) < len(loads) and joins_its_row(nest, limits):
            continue
        for load in wanted:
            changed.add(nest_of(load))
            inline(nest, store, load)
    return changed


def nest_of(op: Operation) -> TraverseOp:
    """The nest that an op stands in."""
    nest = inside(op, TraverseOp)
    assert isinstance(nest, TraverseOp)
    return nest


def joins_its_row(nest: TraverseOp, limits: Nests) -> bool:
    """Whether a row is made of several that lie at its own place. As long as it is stored for
    anybody, to read it is less than to read those, which need not be stored then.
    """
    body = [op for op in nest.body.block.ops if not isinstance(op, StoreOp)]
    wide = [op for op in body if isinstance(op, LoadOp) and length(op.result) > limits.narrow]
    return len(wide) > 1 and all(op.row is nest.row for op in wide)


def only_store(nest: TraverseOp) -> StoreOp | None:
    """The store of a nest that does nothing else than compute a temporary, row by row and
    cheaply.
    """
    stores = [op for op in nest.body.block.ops if isinstance(op, StoreOp)]
    rest = [op for op in nest.body.block.ops if not isinstance(op, StoreOp)]
    if len(stores) != 1 or not all(isinstance(op, (*CHEAP, FoldOp, DotOp)) for op in rest):
        return None
    return stores[0] if isinstance(root(stores[0].buffer), OpResult) else None


def may_inline(nest: TraverseOp, load: LoadOp, readers: int, limits: Nests) -> bool:
    """Whether reading the row by computing it costs no more than reading it."""
    body = [op for op in nest.body.block.ops if not isinstance(op, StoreOp)]
    if load.otherwise is not None or inside(load, TraverseOp) is nest:
        return False
    if any(isinstance(op, LoadOp) and op.otherwise is not None for op in body) and inside(
        load, SegmentOp
    ):
        return False
    if all(isinstance(op, MOVES) for op in body) or expands(nest, limits):
        return True
    if multiplies_out(nest) or joins_arguments(nest, load, readers, limits):
        return True
    if is_mask(body):
        return length(load.result) == 1
    if not reads_each_row_once(nest, load):
        return False
    heavy = any(isinstance(op, FoldOp | DotOp) or is_heavy(op) for op in body)
    return not heavy or readers == 1 or replays(nest, limits)


def is_mask(ops: list[Operation]) -> bool:
    """Whether a row is drawn: it follows from its number and a single row. A narrow one is drawn
    again rather than stored for those who gather it.
    """
    drawn = [op for op in ops if isinstance(op, DropoutOp)]
    single = all(isinstance(op.row.owner, FirstOp) for op in ops if isinstance(op, LoadOp))
    return len(drawn) == 1 and single and all(isinstance(op, (*DRAWN, DropoutOp)) for op in ops)


def draws_number(op: Operation) -> bool:
    """Whether the op drops one number, which is drawn for several rows at a time."""
    return isinstance(op, DropoutOp) and length(op.result) == 1


def is_heavy(op: Operation) -> bool:
    """Whether the op costs many additions for each number."""
    if isinstance(op, DropoutOp):
        return True
    return isinstance(op, ApplyOp) and POINTWISE[op.fn.data].heavy


def replays(nest: TraverseOp, limits: Nests) -> bool:
    """Whether a row is made again for no more than storing it and reading it elsewhere costs: the
    exp of an attention score from its parts at both ends, of which a reader has one anyway.
    """
    ops = [op for op in nest.body.block.ops if not isinstance(op, StoreOp)]
    loads = [op for op in ops if isinstance(op, LoadOp)]
    drawn = [op for op in ops if draws_number(op)]
    heavy = [op for op in ops if is_heavy(op) and op not in drawn]
    narrow = all(length(op.results[0]) <= limits.replayed_numbers for op in (*loads, *heavy))
    simple = all(isinstance(op, (*MOVES, ApplyOp, CastOp)) or op in drawn for op in ops)
    gathers = any(op.row is not nest.row for op in loads)
    # the key of a dropout is no row
    few = len(drawn) <= 1 and len(loads) - len(drawn) <= limits.replayed_loads
    return simple and narrow and gathers and len(heavy) <= 1 and few


def expands(nest: TraverseOp, limits: Nests) -> bool:
    """Whether a nest scales rows that it gathers, or those of an argument: its wide rows are those
    of a buffer that is smaller or stays, and one multiplication does it. Reading these again costs
    less than a buffer of copies.
    """
    body = [op for op in nest.body.block.ops if not isinstance(op, StoreOp)]
    wide = [op for op in body if isinstance(op, LoadOp) and length(op.result) > limits.narrow]
    work = [op for op in body if not isinstance(op, MOVES)]
    there = bool(wide) and all(
        op.row is not nest.row or isinstance(root(op.buffer).owner, InputOp) for op in wide
    )
    return there and len(work) == 1 and isinstance(work[0], ApplyOp) and work[0].fn.data == "mul"


def joins_arguments(nest: TraverseOp, load: LoadOp, readers: int, limits: Nests) -> bool:
    """Whether a reader's own row is made of rows of arguments, which lie there anyway, by a few
    plain operations, and to make it each time moves fewer rows than to store it: the one that
    stores it reads all of them, and writes a row, which takes it from memory first.
    """
    body = [op for op in nest.body.block.ops if not isinstance(op, StoreOp)]
    wide = [op for op in body if isinstance(op, LoadOp) and length(op.result) > limits.narrow]
    work = [op for op in body if not isinstance(op, MOVES)]
    there = bool(wide) and all(
        op.row is nest.row and isinstance(root(op.buffer).owner, InputOp) for op in wide
    )
    plain = len(work) <= PLAIN and all(isinstance(op, ApplyOp) and not is_heavy(op) for op in work)
    own = load.row is nest_of(load).row
    return own and there and plain and len(wide) * readers < len(wide) + 2 + (readers - 1)


def multiplies_out(nest: TraverseOp) -> bool:
    """Whether a row holds each number of one row times each of another: to make it again is to make
    the two, which are shorter, and a multiplication for each number that would have been read.
    """
    body = [op for op in nest.body.block.ops if not isinstance(op, StoreOp)]
    products = [op for op in body if isinstance(op, DotOp)]
    if len(products) != 1 or not all(isinstance(op, (*CHEAP, DotOp)) for op in body):
        return False
    a, b, out = products[0].letters()
    factors = length(products[0].a) + length(products[0].b)
    rest = [op for op in body if op is not products[0] and op.results]
    short = all(length(op.results[0]) <= factors and not is_heavy(op) for op in rest)
    return short and len(a + b) == len(out) and factors < length(products[0].result)


def reads_each_row_once(nest: TraverseOp, load: LoadOp) -> bool:
    """The load runs over the members of groups of the nest's own rows."""
    segment, lookup = inside(load, SegmentOp), load.row.owner
    if segment is None or not isinstance(lookup, LookupOp):
        return False
    table, size = lookup.table.owner, nest.size.owner
    if not isinstance(table, MembersOp) or not isinstance(size, SizeOp):
        return False
    return lookup.row is segment.regions[0].block.args[0] and size.domain == table.domain


def inline(nest: TraverseOp, store: StoreOp, load: LoadOp) -> None:
    """Compute the row where it was loaded."""
    value: dict[SSAValue, SSAValue] = {nest.row: load.row}
    for op in nest.body.block.ops:
        if op is store:
            continue
        clone = op.clone(value)
        Rewriter.insert_op(clone, InsertPoint.before(load))
    Rewriter.replace_op(load, [], [value[store.value]])
