"""fuse-traversals, simplify: a look-up through members becomes one streamed table, loop-invariant
ops leave segments, segments over one group share their loop, and stores that nobody reads vanish.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.intra.bindings import (
    INDEX32,
    AllocOp,
    DomainAttr,
    IndexMapOp,
    MemberMapOp,
    MemberPairOp,
    MembersOp,
    PairIndexOp,
    PartOp,
    TableOfDomain,
    ViewOp,
)
from ....dialects.intra.rows import (
    WRITERS,
    LookupOp,
    SegmentOp,
    TraverseOp,
    YieldOp,
    nests,
)
from ....dialects.intra.steps import Step, steps
from ....dialects.intra.syntax import inside
from ....dialects.walks import ops_within
from ...dead_ops import erase_dead
from .producers import ROW_WISE


def simplify(func: FuncOp, changed: Collection[TraverseOp]) -> set[TraverseOp]:
    """Index algebra, invariant code, shared segment loops, dead stores; `changed` are the nests
    that have changed since the function was simplified. Returns these, and those that lost a store.
    """
    for nest in nests(func):
        if nest in changed:
            erase_dead(nest.body.block)
    shrunk = drop_dead_stores(func)
    present = [nest for nest in nests(func) if nest in changed]
    for nest in present:
        skip_pairs(func, nest)
        for segment in [op for op in ops_within(nest) if isinstance(op, SegmentOp)]:
            stream_lookups(func, segment)
            hoist(segment)
    for nest in present:
        share_lookups(nest)
        while merge_segments(nest):
            share_lookups(nest)
    return shrunk.union(changed)


def stream_lookups(func: FuncOp, segment: SegmentOp) -> None:
    """`map[members[p]]` is the group itself, or one table in member order."""
    p = segment.body.block.args[0]
    for outer, inner in lookups_of_lookups(ops_within(segment)):
        table, members = outer.table.owner, inner.table.owner
        if inner.row is not p or not isinstance(members, MembersOp):
            continue
        if isinstance(table, IndexMapOp) and table.domain == members.domain:
            if members.along_paths == (table.path.data,):
                Rewriter.replace_op(outer, [], [segment.row])
                continue
            kind, more = MemberMapOp, {"path": table.path}
        elif isinstance(table, PairIndexOp) and not members.domain.keys.data:
            kind, more = MemberPairOp, {"keys": table.domain.keys}
        else:
            continue
        direct = kind.make([], [INDEX32], domain=members.domain, along=members.along, **more)
        look_up(func, outer, direct, p)


def lookups_of_lookups(ops: Iterable[Operation]) -> Iterator[tuple[LookupOp, LookupOp]]:
    """(outer, inner) of the ops that look up what another one found."""
    for op in list(ops):
        if isinstance(op, LookupOp) and isinstance(inner := op.row.owner, LookupOp):
            yield op, inner


def look_up(func: FuncOp, op: LookupOp, table: TableOfDomain, row: SSAValue) -> None:
    """Looks `row` up in a new table of the phase in the place of `op`."""
    Rewriter.insert_op(table, InsertPoint.at_start(func.body.block))
    Rewriter.replace_op(op, LookupOp.make([table.results[0], row], [IndexType()]))


def skip_pairs(func: FuncOp, nest: TraverseOp) -> None:
    """A row's pair leads where the row leads: `map_of_pairs[pair_index[e]]` is `map[e]`."""
    for outer, inner in lookups_of_lookups(ops_within(nest)):
        table, pair = outer.table.owner, inner.table.owner
        if not isinstance(table, IndexMapOp) or not isinstance(pair, PairIndexOp):
            continue
        if table.domain != pair.domain:
            continue
        rows = DomainAttr.get(table.domain.set_name.data)
        direct = IndexMapOp.make([], [INDEX32], domain=rows, path=table.path)
        look_up(func, outer, direct, inner.row)


def hoist(segment: SegmentOp) -> None:
    """Move pure ops that do not depend on the member out of the loop."""
    inner = {id(a) for a in segment.body.block.args}
    for op in list(segment.body.block.ops):
        free = all(id(x) not in inner for o in (op, *ops_within(op)) for x in o.operands)
        if isinstance(op, YieldOp) or not free:
            inner |= {id(r) for r in op.results}
            continue
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(segment))


def share_lookups(nest: TraverseOp) -> None:
    """Equal pure ops of one block are computed once (tables are looked at by what they are)."""
    for block in [b for op in (nest, *ops_within(nest)) for r in op.regions for b in r.blocks]:
        seen: dict[object, Operation] = {}
        for op in list(block.ops):
            if op.regions or not isinstance(op, ROW_WISE):
                continue
            key = (
                op.name,
                tuple(map(identity, op.operands)),
                frozenset(op.properties.items()),
                tuple(r.type for r in op.results),
            )
            if (kept := seen.get(key)) is None:
                seen[key] = op
                continue
            Rewriter.replace_op(op, [], kept.results)


def identity(v: SSAValue) -> object:
    """Equal for tables that hold the same, else the value itself."""
    if isinstance(op := v.owner, TableOfDomain):
        return (op.name, frozenset(op.properties.items()))
    return id(v)


def merge_segments(nest: TraverseOp) -> bool:
    """Segments over one group that do not depend on each other become one loop; whether any did."""
    merged = False
    segments = [op for op in nest.body.block.ops if isinstance(op, SegmentOp)]
    for k, second in enumerate(segments):
        for first in segments[:k]:
            same = (first.offsets, first.row) == (second.offsets, second.row)
            if first.parent is not None and same and not depends(second, first):
                pull_up(second, first)
                merged = True
                break
    return merged


def depends(later: Operation, earlier: Operation) -> bool:
    """Whether `later` needs, through any chain of ops of the block, a result of `earlier`."""
    todo, seen = [later], {later}
    while todo:
        op = todo.pop()
        for o in (op, *ops_within(op)):
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
    movers: list[Operation] = []
    op: Operation | None = first.next_op
    while op is not None and op is not second:
        if depends(op, first):
            movers.append(op)
        op = op.next_op
    body = first.detach_region(first.body).detach_block(0)
    other = second.detach_region(second.body).detach_block(0)
    y1, y2 = body.last_op, other.last_op
    assert isinstance(y1, YieldOp) and isinstance(y2, YieldOp)
    values = [*y1.values, *y2.values]
    for y in (y1, y2):
        Rewriter.erase_op(y)
    Rewriter.inline_block(other, InsertPoint.at_end(body), body.args)
    body.add_op(YieldOp.make(values))
    kinds = [k.data for k in (*first.kinds, *second.kinds)]
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
        Rewriter.erase_op(o)


def drop_dead_stores(func: FuncOp) -> set[TraverseOp]:
    """Temporaries that nobody reads, and nests that then do nothing. Returns the nests that have
    stored them.
    """
    changed: set[TraverseOp] = set()
    others = [step for step in steps(func) if not isinstance(step, TraverseOp)]
    kept = set[SSAValue]().union(*(step.reads() for step in others))
    todo = [op for op in func.body.block.ops if isinstance(op, AllocOp) and op.result not in kept]
    while todo:
        # each nest once a round, whatever it stores in vain
        dead: dict[TraverseOp, list[Operation]] = {}
        for accesses in (list(accesses_of(op.result)) for op in todo):
            if all(isinstance(op, (*WRITERS, Step)) for op in accesses):
                for op in accesses:
                    if isinstance(op, WRITERS):
                        nest = inside(op, TraverseOp)
                        assert isinstance(nest, TraverseOp)
                        dead.setdefault(nest, []).append(op)
        unread: dict[AllocOp, None] = {}
        changed.update(dead)
        for nest, stores in dead.items():
            read = nest.reads()
            for op in [op for op in stores if op.parent is nest.body.block]:
                Rewriter.erase_op(op)
            if any(isinstance(op, WRITERS) for op in nest.body.block.ops):
                erase_dead(nest.body.block)
                read -= nest.reads()
            else:
                Rewriter.erase_op(nest)
            unread |= {op: None for b in read - kept if isinstance(op := b.owner, AllocOp)}
        todo = list(unread)
    for op in reversed(list(func.body.block.ops)):
        if isinstance(op, AllocOp | ViewOp | PartOp) and not op.results[0].uses:
            Rewriter.erase_op(op)
    return changed


def accesses_of(buffer: SSAValue) -> Iterator[Operation]:
    """What uses a buffer, or a view or part of it."""
    for use in buffer.uses:
        if isinstance(op := use.operation, ViewOp | PartOp):
            yield from accesses_of(op.result)
        else:
            yield op
