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

from ...dialects.intra.bindings import AllocOp, PartOp, SizeOp, ViewOp
from ...dialects.intra.loops import TraverseOp
from ...dialects.intra.rows import LoadOp, StoreOp
from ...dialects.intra.steps import Step, phases, steps
from .fusion.simplify import accesses_of


@dataclass(frozen=True)
class StackInPlacePass(ModulePass):
    """Lets rows be computed where they are stacked."""

    name = "stack-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in phases(op):
            order = steps(func)
            stacks = _Stacks(order)
            for step in order:
                if (copy := _copy(step)) is not None and stacks.may_lie_there(copy):
                    stacks.lay(copy)


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


class _Stacks:
    """The steps of a phase while rows are laid where they are stacked."""

    def __init__(self, order: list[Step]) -> None:
        self.place = {step: k for k, step in enumerate(order)}
        self.by_parts: dict[SSAValue, bool] = {}
        """Of stacks whether all that is stored in one is stored in a part of it."""

    def may_lie_there(self, copy: _Copy) -> bool:
        """Whether nests alone use the rows, all that fill them come first, and nobody else writes
        where they are stacked."""
        rows, out = copy.rows.result, copy.place.buffer
        if rows is out or any(isinstance(u, PartOp) for u in _users(rows)):
            return False
        now = self.place[copy.nest]
        for step in {_step_of(op) for op in accesses_of(rows)}:
            if not isinstance(step, TraverseOp):
                return False
            if self.place[step] >= now and rows in step.writes():
                return False
        return len(_stores(copy.place.result)) == 1 and self.is_by_parts(out)

    def is_by_parts(self, out: SSAValue) -> bool:
        if out not in self.by_parts:
            stores = [op for op in accesses_of(out) if isinstance(op, StoreOp)]
            self.by_parts[out] = all(isinstance(op.buffer.owner, PartOp) for op in stores)
        return self.by_parts[out]

    def lay(self, copy: _Copy) -> None:
        """Makes the place the rows' own; views of these come behind it."""
        Rewriter.erase_op(copy.nest)
        last: Operation = copy.place
        for view in [u for u in _users(copy.rows.result) if isinstance(u, ViewOp)]:
            self.by_parts[copy.place.buffer] &= not _stores(view.result)
            view.detach()
            Rewriter.insert_op(view, InsertPoint.after(last))
            last = view
        copy.rows.result.replace_all_uses_with(copy.place.result)
        Rewriter.erase_op(copy.rows)


def _users(buffer: SSAValue) -> Iterator[Operation]:
    """What uses a buffer or a view of it."""
    for use in buffer.uses:
        yield use.operation
        if isinstance(use.operation, ViewOp):
            yield from _users(use.operation.result)


def _stores(buffer: SSAValue) -> list[StoreOp]:
    """What stores in a buffer, not in a view of it."""
    ops = [use.operation for use in buffer.uses]
    return [op for op in ops if isinstance(op, StoreOp) and op.buffer is buffer]


def _step_of(op: Operation) -> Step | None:
    """The step of a phase that an op is, or is in; None of what a phase has beside its steps."""
    at: Operation | None = op
    while at is not None and not isinstance(at, Step):
        at = at.parent_op()
    return at
