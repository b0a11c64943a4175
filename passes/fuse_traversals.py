"""fuse-traversals: merge nests so that what one computes for another stays in registers.

Three rewrites, each exact:

- *inline*: a nest that only moves or combines numbers of its row disappears into those who read it,
  where that repeats no work: index and shape ops anywhere, others where each row is read by one
  group (messages into sums).
- *merge*: two nests over the same rows become one when the second reads of the first only its own
row.
- *simplify*: a look-up through members becomes one streamed table, loop-invariant ops leave
  segments, segments over one group share their loop, and stores that nobody reads vanish.

Before: one nest a value, every value in a buffer. After: `gather -> sum -> bias, relu -> next
product` is one nest.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import region_dce

from ..dialects.intra.bindings import (
    INDEX32,
    AllocOp,
    IndexMapOp,
    MemberMapOp,
    MembersOp,
    PartOp,
    SizeOp,
    ViewOp,
    root,
)
from ..dialects.intra.rows import (
    ApplyOp,
    BroadcastOp,
    CastOp,
    ConcatOp,
    ConstOp,
    CountOp,
    DotOp,
    FirstOp,
    FoldOp,
    LengthOp,
    LoadOp,
    LookupOp,
    MatmulOp,
    OuterOp,
    PositionOp,
    ReshapeOp,
    SegmentOp,
    SliceOp,
    StoreOp,
    TotalOp,
    TransposeOp,
    TraverseOp,
    YieldOp,
)
from ..dialects.intra.syntax import inside

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
CHEAP = (*MOVES, ApplyOp, CastOp, ConcatOp)
HEAVY_FUNCTIONS = frozenset(
    {
        "exp",
        "log",
        "log1p",
        "expm1",
        "pow",
        "erf",
        "gelu",
        "gelu_tanh",
        "tanh",
        "sigmoid",
        "softplus",
        "sin",
        "cos",
    }
)


@dataclass(frozen=True)
class FuseTraversalsPass(ModulePass):
    """Merge nests so that intermediate rows stay in registers."""

    name = "fuse-traversals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.body.block.ops:
            if isinstance(func, FuncOp) and "intra.phase" in func.attributes:
                fuse(func)
        CommonSubexpressionElimination().apply(ctx, op)
        for func in op.body.block.ops:
            if isinstance(func, FuncOp) and "intra.phase" in func.attributes:
                simplify(func)
                region_dce(func.body)


def fuse(func: FuncOp) -> None:
    """Inline and merge until nothing changes."""
    changed = True
    while changed:
        changed = inline_producers(func)
        simplify(func)
        changed |= merge_nests(func)
        simplify(func)


def nests(func: FuncOp) -> list[TraverseOp]:
    return [op for op in func.body.block.ops if isinstance(op, TraverseOp)]


# ---------------------------------------------------------------- memory


def written(nest: TraverseOp) -> set[SSAValue]:
    """Roots of the buffers a nest writes."""
    return {root(op.buffer) for op in nest.walk() if isinstance(op, StoreOp | TotalOp | OuterOp)}


def read(nest: TraverseOp) -> set[SSAValue]:
    """Roots of the buffers a nest reads."""
    out: set[SSAValue] = set()
    for op in nest.walk():
        if isinstance(op, LoadOp):
            out.add(root(op.buffer))
        elif isinstance(op, MatmulOp):
            out.add(root(op.weight))
    return out


# ---------------------------------------------------------------- inline


def inline_producers(func: FuncOp) -> bool:
    """Dissolve nests into the nests that read them; whether any was."""
    changed = False
    for nest in nests(func):
        store = only_store(nest)
        if store is None:
            continue
        loads = [u.operation for u in store.buffer.uses if u.operation is not store]
        wanted = [op for op in loads if isinstance(op, LoadOp) and may_inline(nest, op, len(loads))]
        for load in wanted:
            inline(nest, store, load)
            changed = True
    return changed


def only_store(nest: TraverseOp) -> StoreOp | None:
    """The store of a nest that does nothing else than compute a temporary, row by row and
    cheaply.
    """
    stores = [op for op in nest.body.block.ops if isinstance(op, StoreOp)]
    rest = [op for op in nest.body.block.ops if not isinstance(op, StoreOp)]
    if len(stores) != 1 or not all(isinstance(op, (*CHEAP, FoldOp, DotOp)) for op in rest):
        return None
    return stores[0] if isinstance(root(stores[0].buffer), OpResult) else None


def may_inline(nest: TraverseOp, load: LoadOp, readers: int) -> bool:
    """Whether reading the row by computing it costs no more than reading it."""
    body = [op for op in nest.body.block.ops if not isinstance(op, StoreOp)]
    if load.otherwise is not None or inside(load, TraverseOp) is nest:
        return False
    if any(isinstance(op, LoadOp) and op.otherwise is not None for op in body) and inside(
        load, SegmentOp
    ):
        return False
    if all(isinstance(op, MOVES) for op in body):
        return True
    if not reads_each_row_once(nest, load):
        return False
    heavy = any(
        isinstance(op, FoldOp | DotOp) or isinstance(op, ApplyOp) and op.fn.data in HEAVY_FUNCTIONS
        for op in body
    )
    return not heavy or readers == 1


def reads_each_row_once(nest: TraverseOp, load: LoadOp) -> bool:
    """The load runs over the members of groups of the nest's own rows."""
    segment = inside(load, SegmentOp)
    if (
        segment is None
        or not isinstance(load.row, OpResult)
        or not isinstance(load.row.op, LookupOp)
    ):
        return False
    lookup = load.row.op
    table = lookup.table
    if lookup.row is not segment.regions[0].block.args[0] or not isinstance(table, OpResult):
        return False
    size = nest.size.owner
    return (
        isinstance(table.op, MembersOp)
        and isinstance(size, SizeOp)
        and size.domain == table.op.domain
    )


def inline(nest: TraverseOp, store: StoreOp, load: LoadOp) -> None:
    """Compute the row where it was loaded."""
    value: dict[SSAValue, SSAValue] = {nest.row: load.row}
    for op in nest.body.block.ops:
        if op is store:
            continue
        clone = op.clone(value)
        Rewriter.insert_op(clone, InsertPoint.before(load))
    load.result.replace_all_uses_with(value[store.value])
    load.detach()
    load.erase()


# ---------------------------------------------------------------- merge


def merge_nests(func: FuncOp) -> bool:
    """Merge pairs of nests over the same rows; whether any was."""
    changed = False
    found = True
    while found:
        found = False
        order = nests(func)
        reads, writes = [read(n) for n in order], [written(n) for n in order]
        for j in range(len(order)):
            for i in range(j - 1, -1, -1):
                if may_merge(order, reads, writes, i, j):
                    merge(order[i], order[j], late=not movable_up(reads, writes, i, j))
                    changed = found = True
                    break
            if found:
                break
    return changed


def may_merge(
    order: list[TraverseOp], reads: list[set[SSAValue]], writes: list[set[SSAValue]], i: int, j: int
) -> bool:
    first, second = order[i], order[j]
    if first.size is not second.size:
        return False
    shared = (writes[i] & reads[j]) | (reads[i] & reads[j])
    if not shared or writes[i] & writes[j]:
        return False
    if not reads_own_rows(first, second):
        return False
    return movable_up(reads, writes, i, j) or movable_down(reads, writes, i, j)


def movable_up(reads: list[set[SSAValue]], writes: list[set[SSAValue]], i: int, j: int) -> bool:
    """The later nest reads nothing that the nests between write."""
    return not any((reads[j] | writes[j]) & writes[k] for k in range(i + 1, j))


def movable_down(reads: list[set[SSAValue]], writes: list[set[SSAValue]], i: int, j: int) -> bool:
    """The nests between read nothing that the earlier nest writes."""
    return not any(writes[i] & (reads[k] | writes[k]) for k in range(i + 1, j))


def reads_own_rows(first: TraverseOp, second: TraverseOp) -> bool:
    """Of what `first` stores, `second` loads its own row only, through no view, and nothing it
    totals.
    """
    stored = {op.buffer for op in first.body.block.ops if isinstance(op, StoreOp)}
    made = written(first)
    for op in second.walk():
        if isinstance(op, MatmulOp) and root(op.weight) in made:
            return False
        if isinstance(op, LoadOp) and root(op.buffer) in made:
            if op.buffer not in stored or op.row is not second.row or op.otherwise is not None:
                return False
    return True


def merge(first: TraverseOp, second: TraverseOp, late: bool) -> None:
    """Put both bodies into one nest, at the place of the second when `late`; pass stored rows on as
    values.
    """
    stored = {op.buffer: op.value for op in first.body.block.ops if isinstance(op, StoreOp)}
    second.row.replace_all_uses_with(first.row)
    for op in list(second.body.block.ops):
        op.detach()
        first.body.block.add_op(op)
    for op in list(first.body.walk()):
        if isinstance(op, LoadOp) and op.buffer in stored and op.row is first.row:
            op.result.replace_all_uses_with(stored[op.buffer])
            op.detach()
            op.erase()
    if late:
        first.detach()
        Rewriter.insert_op(first, InsertPoint.before(second))
    second.detach()
    second.erase()


# ---------------------------------------------------------------- simplify


def simplify(func: FuncOp) -> None:
    """Index algebra, invariant code, shared segment loops, dead stores."""
    drop_dead_stores(func)
    for nest in nests(func):
        for segment in [op for op in nest.walk() if isinstance(op, SegmentOp)]:
            stream_lookups(func, segment)
            hoist(segment)
    for nest in nests(func):
        share_lookups(nest)
        merge_segments(nest)


def stream_lookups(func: FuncOp, segment: SegmentOp) -> None:
    """`map[members[p]]` is the group itself, or one table in member order."""
    p = segment.body.block.args[0]
    for op in list(segment.body.walk()):
        if (
            not isinstance(op, LookupOp)
            or not isinstance(op.row, OpResult)
            or not isinstance(op.row.op, LookupOp)
        ):
            continue
        inner = op.row.op
        table, members = op.table.owner, inner.table.owner
        if (
            inner.row is not p
            or not isinstance(table, IndexMapOp)
            or not isinstance(members, MembersOp)
        ):
            continue
        if table.domain != members.domain:
            continue
        if members.along_paths == (table.path.data,):
            op.result.replace_all_uses_with(segment.row)
        else:
            direct = MemberMapOp.make(
                [], [INDEX32], domain=members.domain, along=members.along, path=table.path
            )
            Rewriter.insert_op(direct, InsertPoint.at_start(func.body.block))
            new = LookupOp.make([direct.result, p], [IndexType()])
            Rewriter.insert_op(new, InsertPoint.before(op))
            op.result.replace_all_uses_with(new.result)
        op.detach()
        op.erase()


def hoist(segment: SegmentOp) -> None:
    """Move pure ops that do not depend on the member out of the loop."""
    inner = {id(a) for a in segment.body.block.args}
    for op in list(segment.body.block.ops):
        free = all(id(x) not in inner for o in op.walk() for x in o.operands)
        if isinstance(op, YieldOp) or not free:
            inner |= {id(r) for r in op.results}
            continue
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(segment))


def share_lookups(nest: TraverseOp) -> None:
    """Equal pure ops of one block are computed once (tables are looked at by what they are)."""
    for block in [b for op in nest.walk() for r in op.regions for b in r.blocks]:
        seen: dict[object, Operation] = {}
        for op in list(block.ops):
            if op.regions or not isinstance(op, (*CHEAP, FoldOp, DotOp)):
                continue
            key = (
                op.name,
                tuple(map(identity, op.operands)),
                tuple(sorted(op.properties.items())),
                tuple(r.type for r in op.results),
            )
            if (kept := seen.get(key)) is None:
                seen[key] = op
                continue
            for old, new in zip(op.results, kept.results, strict=True):
                old.replace_all_uses_with(new)
            op.detach()
            op.erase()


def identity(v: SSAValue) -> object:
    """Equal for tables that hold the same, else the value itself."""
    if isinstance(v, OpResult) and isinstance(v.op, MemberMapOp | IndexMapOp | MembersOp):
        return (v.op.name, tuple(sorted(v.op.properties.items())))
    return id(v)


def merge_segments(nest: TraverseOp) -> None:
    """Segments over one group that do not depend on each other become one loop."""
    segments = [op for op in nest.body.block.ops if isinstance(op, SegmentOp)]
    for k, second in enumerate(segments):
        for first in segments[:k]:
            if (
                first.parent is None
                or first.offsets is not second.offsets
                or first.row is not second.row
            ):
                continue
            if depends(second, first):
                continue
            pull_up(second, first)
            break


def depends(later: Operation, earlier: Operation) -> bool:
    """Whether `later` needs, through any chain of ops of the block, a result of `earlier`."""
    todo, seen = [later], {later}
    while todo:
        for o in todo.pop().walk():
            for x in o.operands:
                if not isinstance(x, OpResult):
                    continue
                if x.op is earlier:
                    return True
                if x.op not in seen and x.op.parent is earlier.parent:
                    seen.add(x.op)
                    todo.append(x.op)
    return False


def pull_up(second: SegmentOp, first: SegmentOp) -> None:
    """One segment with the yields of both, at the place of the second, users of the first moved
    behind it.
    """
    block = first.parent
    assert block is not None
    movers: list[Operation] = []
    op: Operation | None = first.next_op
    while op is not None and op is not second:
        if depends(op, first):
            movers.append(op)
        op = op.next_op
    body = first.detach_region(first.body).detach_block(0)
    other = second.detach_region(second.body).detach_block(0)
    other.args[0].replace_all_uses_with(body.args[0])
    y1, y2 = body.last_op, other.last_op
    assert isinstance(y1, YieldOp) and isinstance(y2, YieldOp)
    for o in list(other.ops):
        if o is not y2:
            o.detach()
            body.insert_op_before(o, y1)
    values = [*y1.values, *y2.values]
    for y in (y1, y2):
        y.detach()
    body.add_op(YieldOp.make(values))
    kinds = [k.data for k in ArrayAttr([*first.kinds, *second.kinds])]
    merged = SegmentOp.build_op(first.offsets, first.row, kinds, [v.type for v in values], body)
    Rewriter.insert_op(merged, InsertPoint.before(second))
    for old, new in zip((*first.results, *second.results), merged.results, strict=True):
        old.replace_all_uses_with(new)
    place: Operation = merged
    for o in movers:
        o.detach()
        Rewriter.insert_op(o, InsertPoint.after(place))
        place = o
    for o in (first, second):
        o.detach()
        o.erase()


def drop_dead_stores(func: FuncOp) -> None:
    """Temporaries that nobody reads, and nests that then do nothing."""
    changed = True
    while changed:
        changed = False
        live = {b for n in nests(func) for b in read(n)}
        for nest in nests(func):
            for op in list(nest.body.block.ops):
                if not isinstance(op, StoreOp | TotalOp | OuterOp):
                    continue
                buffer = root(op.buffer)
                if (
                    isinstance(buffer, OpResult)
                    and isinstance(buffer.op, AllocOp)
                    and buffer not in live
                ):
                    op.detach()
                    op.erase()
                    changed = True
            region_dce(nest.body)
            if not any(isinstance(o, StoreOp | TotalOp | OuterOp) for o in nest.body.block.ops):
                nest.detach()
                nest.erase()
                changed = True
    for op in reversed(list(func.body.block.ops)):
        if isinstance(op, AllocOp | ViewOp | PartOp) and not list(op.results[0].uses):
            op.detach()
            op.erase()
