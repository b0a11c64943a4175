"""fuse-traversals, uses: who writes and reads the rows of a buffer."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from ....dialects.intra.bindings import AllocOp
from ....dialects.intra.rows import LoadOp, StoreOp, TraverseOp


def only_store(alloc: AllocOp) -> StoreOp | None:
    """The op that writes the rows of a buffer at its nest's own row, where all other uses load."""
    found: list[StoreOp] = []
    for use in alloc.result.uses:
        op = use.operation
        if isinstance(op, StoreOp):
            found.append(op)
        elif not isinstance(op, LoadOp):
            return None
    return found[0] if len(found) == 1 and at_own_row(found[0]) else None


def loads(alloc: AllocOp) -> Iterator[LoadOp]:
    """The ops that read rows of a buffer."""
    for use in alloc.result.uses:
        if isinstance(use.operation, LoadOp):
            yield use.operation


def at_own_row(op: LoadOp | StoreOp) -> bool:
    """Whether a row is that of the nest around the op, which is in no loop of the nest."""
    nest: Operation | None = op.parent_op()
    return isinstance(nest, TraverseOp) and op.row is nest.row
