"""stack-in-place: rows that are stacked are computed where they lie in the stack.

Before: nests fill `%x = intra.alloc`, and one copies its rows to `%p = intra.part %all`. After:
they fill `%p`, which all that reads %x reads; the copy is gone.

Comes behind lower-to-intra, before nests are joined: a copy that is done beside other work in one
nest still writes its rows twice. Rows that a step other than a nest reads or fills, as messages do,
stay where they are, and so do rows that are stacked twice, but for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.intra.bindings import AllocOp, PartOp, SizeOp, ViewOp, root
from ...dialects.intra.loops import TraverseOp
from ...dialects.intra.rows import LoadOp, StoreOp
from ...dialects.intra.steps import Step, phases, steps


@dataclass(frozen=True)
class StackInPlacePass(ModulePass):
    """Lets rows be computed where they are stacked."""

    name = "stack-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            for step in steps(func):
                if (copy := _copy(step)) is not None and _may_lie_there(copy, steps(func)):
                    _lay(copy)


@dataclass(frozen=True)
class _Copy:
    """A nest that does nothing but copy all rows of a buffer to where they are stacked."""

    nest: TraverseOp
    rows: AllocOp
    place: PartOp


def _copy(step: Step) -> _Copy | None:
    if not isinstance(step, TraverseOp):
        return None
    match list(step.body.block.ops):
        case [LoadOp() as load, StoreOp() as store]:
            rows, place, bound = load.buffer.owner, store.buffer.owner, step.size.owner
            plain = load.otherwise is None and store.value is load.result
            same = load.row is step.row and store.row is step.row
            if not (plain and same and isinstance(rows, AllocOp) and isinstance(bound, SizeOp)):
                return None
            if not isinstance(place, PartOp) or not isinstance(place.buffer.owner, AllocOp):
                return None
            return _Copy(step, rows, place) if rows.domain == bound.domain else None
        case _:
            return None


def _may_lie_there(copy: _Copy, order: list[Step]) -> bool:
    """Whether nests alone use the rows, all that fill them come first, and nobody else writes where
    they are stacked."""
    rows, out = copy.rows.result, copy.place.buffer
    if rows is out or any(isinstance(u, PartOp) for u in _users(rows)):
        return False
    users = [s for s in order if rows in s.reads() | s.writes()]
    after = order[order.index(copy.nest) :]
    if not all(isinstance(s, TraverseOp) for s in users) or any(rows in s.writes() for s in after):
        return False
    stores = [op for s in order for op in s.walk() if isinstance(op, StoreOp)]
    whole = [op for op in stores if root(op.buffer) is out]
    mine = [op for op in whole if op.buffer is copy.place.result]
    return len(mine) == 1 and all(isinstance(op.buffer.owner, PartOp) for op in whole)


def _users(buffer: SSAValue) -> Iterator[Operation]:
    """What uses a buffer or a view of it."""
    for use in buffer.uses:
        yield use.operation
        if isinstance(use.operation, ViewOp):
            yield from _users(use.operation.result)


def _lay(copy: _Copy) -> None:
    """Makes the place the rows' own; views of these come behind it."""
    Rewriter.erase_op(copy.nest)
    last: Operation = copy.place
    for view in [u for u in _users(copy.rows.result) if isinstance(u, ViewOp)]:
        view.detach()
        Rewriter.insert_op(view, InsertPoint.after(last))
        last = view
    copy.rows.result.replace_all_uses_with(copy.place.result)
    Rewriter.erase_op(copy.rows)
