"""fuse-traversals, parts: a row of which readers take parts alone is stored as these parts.

A recurrent cell multiplies once for all of its gates. Of the 192 numbers that this gives for a row
of 64, gradients read those of one gate. What nobody reads then is left to simplify.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.intra.bindings import AllocOp
from ....dialects.intra.rows import LoadOp, SliceOp, StoreOp
from ....dialects.intra.syntax import buffer_type, element, row_bytes, row_dims
from .uses import loads, only_store

Part = tuple[Attribute, ...]
"""The dimension, both ends and the step of a slice."""


def keep_parts(func: FuncOp) -> None:
    """Store parts of rows, where all readers together take less than the rows."""
    for alloc in [op for op in func.body.block.ops if isinstance(op, AllocOp)]:
        store = only_store(alloc)
        taken = _taken(alloc)
        if store is None or not taken:
            continue
        if sum(row_bytes(slices[0].result) for slices in taken.values()) < row_bytes(store.value):
            for slices in taken.values():
                _store_part(alloc, store, slices)
            for load in list(loads(alloc)):
                Rewriter.erase_op(load)


def _taken(alloc: AllocOp) -> dict[Part, list[SliceOp]]:
    """The slices that readers take of a buffer's rows; none where one of them reads whole rows."""
    found: dict[Part, list[SliceOp]] = {}
    for load in loads(alloc):
        for use in load.result.uses:
            op = use.operation
            if not isinstance(op, SliceOp) or load.otherwise is not None:
                return {}
            found.setdefault((op.dim, op.lo, op.hi, op.step), []).append(op)
    return found


def _store_part(alloc: AllocOp, store: StoreOp, slices: list[SliceOp]) -> None:
    """Store a slice, and let those who take it of the row read it."""
    part = slices[0].clone({slices[0].x: store.value})
    dims, elem = row_dims(part.result.type), element(part.result.type)
    own = AllocOp.make([], [buffer_type(dims, elem)], domain=alloc.domain)
    Rewriter.insert_op(own, InsertPoint.after(alloc))
    stored = StoreOp.make([part.result, own.result, store.row])
    Rewriter.insert_op([part, stored], InsertPoint.before(store))
    for op in slices:
        load = op.x.owner
        assert isinstance(load, LoadOp)
        Rewriter.replace_op(op, LoadOp.make([own.result, load.row, None], [op.result.type]))
