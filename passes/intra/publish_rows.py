"""publish-rows: rows of other ranks are read where they lie, without messages.

Before: `move_start %from, %to`, `move_wait %to`, nests that read `%to`. After: `publish %from, %p`,
nests that read `%p`, `retire %from, %p`, where `%p` are the rows of others (`intra.peer_rows`). A
nest that only packs `%from` goes: others find the rows through the map that it read.

A move whose rows are kept, as a result or for backward, stays a message. For ranks that see each
other's memory; comes before the passes that put steps in order and join nests.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.intra.bindings import AllocOp, IndexMapOp, known_domain, root
from ...dialects.intra.exchange import MoveStartOp
from ...dialects.intra.peers import PeerRowsOp
from ...dialects.intra.publication import PublishOp, RetireOp
from ...dialects.intra.rows import LoadOp, LookupOp, StoreOp, TraverseOp
from ...dialects.intra.steps import Step, phases, steps, steps_after


@dataclass(frozen=True)
class PublishRowsPass(ModulePass):
    """Lets ranks read each other's rows where moves would bring copies."""

    name = "publish-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            for step in steps(func):
                if isinstance(step, MoveStartOp):
                    publish(func, step)


@dataclass(frozen=True)
class Packed:
    """A buffer that a nest fills with the rows of another one, which a map leads to."""

    nest: TraverseOp
    rows: SSAValue
    through: SSAValue


def publish(func: FuncOp, start: MoveStartOp) -> None:
    """Replaces one move, where nests of the phase alone read what it brings."""
    target, wait = start.target, start.wait()
    readers = [s for s in steps_after(start) if target in s.reads() and s is not wait]
    if not isinstance(target.owner, AllocOp) or not all(isinstance(s, TraverseOp) for s in readers):
        return
    packed, domain = packed_in(func, start), target.owner.domain
    source, through = (packed.rows, packed.through) if packed else (start.source, None)
    assert domain is not None  # the verifier of moves
    if not readers or any(root(source) in s.writes() for s in between(start, readers[-1])):
        return
    rows = PeerRowsOp.make([], [target.type], plan=start.plan, domain=domain)
    Rewriter.insert_op(rows, InsertPoint.before(target.owner))
    rows.result.name_hint = target.name_hint
    begin = PublishOp.make([through, source, rows.result], [], plan=start.plan)
    Rewriter.insert_op(begin, InsertPoint.before(start))
    end = RetireOp.make([source, rows.result], [], plan=start.plan)
    Rewriter.insert_op(end, InsertPoint.after(readers[-1]))
    for op in (wait, start, *((packed.nest,) if packed else ())):
        Rewriter.erase_op(op)
    target.replace_all_uses_with(rows.result)
    Rewriter.erase_op(target.owner)
    if packed and isinstance(start.source.owner, AllocOp):
        Rewriter.erase_op(start.source.owner)


def between(first: Step, last: Step) -> list[Step]:
    """The steps behind one, up to another."""
    out: list[Step] = []
    for step in steps_after(first):
        out.append(step)
        if step is last:
            break
    return out


def packed_in(func: FuncOp, start: MoveStartOp) -> Packed | None:
    """What a move sends, where it is nothing but rows of another buffer, packed for this."""
    source = start.source
    if not isinstance(source.owner, AllocOp):
        return None
    writers = [s for s in steps(func) if source in s.writes()]
    users = [s for s in steps(func) if source in s.reads() and s not in (start, start.wait())]
    if len(writers) != 1 or users:
        return None
    nest = writers[0]
    if not isinstance(nest, TraverseOp) or (found := copied(nest)) is None:
        return None
    rows, through = found
    if any(root(rows) in s.writes() for s in between(nest, start)):
        return None
    return Packed(nest, rows, through)


def copied(nest: TraverseOp) -> tuple[SSAValue, SSAValue] | None:
    """The rows that a nest copies, and the map by which: None where it does anything else."""
    match list(nest.body.block.ops):
        case [LookupOp() as lookup, LoadOp() as load, StoreOp() as store]:
            table = lookup.table.owner
            plain = load.otherwise is None and store.value is load.result
            at = known_domain(load.buffer)
            if not isinstance(table, IndexMapOp) or not plain or load.row is not lookup.result:
                return None
            if lookup.row is not nest.row or at is None or at[0] is None:
                return None
            return load.buffer, lookup.table
        case _:
            return None
