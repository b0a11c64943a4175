"""publish-totals: ranks add up what they read of each other where it lies, without messages.

Before: nests that write `%a`, and `all_reduce %a {kind = "sum"}`. After: these nests write another
buffer `%own`, whose totals over all ranks, added up in their order, are stored in `%a`:

    %s = peer_totals %own {kind = "sum"}
    publish_all %s
    traverse { load %s, store %a }
    retire_all %s

Reductions that lie behind each other are one publication, of whatever kinds they are. Those of
buffers that hold something before the phase stay messages. For ranks that see each other's memory;
comes behind overlap-exchanges, which puts reductions together.
"""

from __future__ import annotations

import itertools
from collections.abc import Set
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.intra.bindings import (
    AllocOp,
    DomainAttr,
    OutputOp,
    PartOp,
    SizeOp,
    ViewOp,
)
from ...dialects.intra.exchange import AllReduceOp
from ...dialects.intra.peers import PeerTotalsOp
from ...dialects.intra.publication import PublishAllOp, RetireAllOp
from ...dialects.intra.rows import LoadOp, StoreOp, TraverseOp
from ...dialects.intra.steps import phases, steps
from ...dialects.intra.syntax import row_of


@dataclass(frozen=True)
class PublishTotalsPass(ModulePass):
    """Lets ranks read each other's numbers where messages would reduce them."""

    name = "publish-totals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            for reductions in together(func):
                publish(func, reductions)


def together(func: FuncOp) -> list[list[AllReduceOp]]:
    """The reductions of a phase that can be publications, those behind each other as one."""
    out: list[list[AllReduceOp]] = [[]]
    for step in steps(func):
        if not isinstance(step, AllReduceOp) or not all(map(begins_here, step.buffers)):
            out.append([])
            continue
        known = {buffer for other in out[-1] for buffer in other.buffers}
        if known & set(step.buffers):
            out.append([])
        out[-1].append(step)
    return [found for found in out if found]


def begins_here(buffer: SSAValue) -> bool:
    """Whether all that a buffer holds is written by steps of the phase."""
    return isinstance(buffer.owner, AllocOp | OutputOp)


def publish(func: FuncOp, reductions: list[AllReduceOp]) -> None:
    """Replaces reductions that lie behind each other."""
    here = InsertPoint.before(reductions[-1])
    ops = func.body.block.ops
    earlier = dict.fromkeys(itertools.takewhile(lambda op: op is not reductions[0], ops))
    sizes = {op.domain: op.result for op in earlier if isinstance(op, SizeOp)}
    totals: list[PeerTotalsOp] = []
    nests: list[TraverseOp] = []
    for reduction in reductions:
        for buffer in reduction.buffers:
            own = apart(buffer, earlier.keys())
            totals.append(PeerTotalsOp.make([own], [buffer.type], kind=reduction.kind))
            if (domain := domain_of(buffer)) not in sizes:
                size = SizeOp.make([], [IndexType()], domain=domain)
                Rewriter.insert_op(size, here)
                sizes[domain] = size.result
            nests.append(stored(totals[-1].result, buffer, sizes[domain]))
    seen = [op.result for op in totals]
    begin, end = PublishAllOp.make(seen, []), RetireAllOp.make(seen, [])
    Rewriter.insert_op([*totals, begin, *nests, end], here)
    for reduction in reductions:
        Rewriter.erase_op(reduction)


def apart(buffer: SSAValue, earlier: Set[Operation]) -> SSAValue:
    """Another buffer, which the `earlier` ops of the phase use in the place of one."""
    own = AllocOp.make([], [buffer.type], domain=domain_of(buffer))
    if buffer.name_hint is not None:
        own.result.name_hint = f"own_{buffer.name_hint}"
    assert isinstance(buffer.owner, AllocOp | OutputOp)
    Rewriter.insert_op(own, InsertPoint.before(buffer.owner))
    redirect(buffer, own.result, earlier)
    return own.result


def redirect(old: SSAValue, new: SSAValue, users: Set[Operation]) -> None:
    """Lets some ops of a phase, and those in them, use one buffer in the place of another, through
    views of their own."""
    for use in list(old.uses):
        op = use.operation
        if isinstance(op, ViewOp | PartOp):
            view = op.clone({old: new})
            Rewriter.insert_op(view, InsertPoint.after(op))
            redirect(op.result, view.result, users)
            if not view.result.uses:
                Rewriter.erase_op(view)
        elif step_of(op) in users:
            op.operands[use.index] = new


def step_of(op: Operation) -> Operation:
    """The op of a phase that an op is, or is in."""
    while not isinstance(up := op.parent_op(), FuncOp):
        assert up is not None
        op = up
    return op


def domain_of(buffer: SSAValue) -> DomainAttr | None:
    """Where the rows of a buffer lie that begins in the phase."""
    assert isinstance(buffer.owner, AllocOp | OutputOp)
    return buffer.owner.domain


def stored(total: SSAValue, buffer: SSAValue, size: SSAValue) -> TraverseOp:
    """The nest that stores totals."""
    body = Block(arg_types=[IndexType()])
    (row,) = body.args
    row.name_hint = "i"
    load = LoadOp.make([total, row, None], [row_of(buffer)])
    body.add_ops([load, StoreOp.make([load.result, buffer, row])])
    return TraverseOp.build_op(size, body)
