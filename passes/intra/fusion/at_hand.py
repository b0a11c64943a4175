"""fuse-traversals, at hand: rows that their readers make again from others that they read.

What gradients need of a layer is stored where the layer is computed, also what is an operation or
two from rows that are stored as well: `1 - z` and `h - n` of a recurrent cell beside `z`, `h` and
`n`. A nest that reads these anyway, each at its own row, makes the former again, to the bit, and
nobody stores them. One that does not may read them in its place, if they are no longer than it is:
then the store is saved. (What crosses from @forward to @backward was chosen before, by plan-saves.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.intra.bindings import AllocOp, InputOp
from ....dialects.intra.rows import (
    ApplyOp,
    BroadcastOp,
    CastOp,
    ConstOp,
    FirstOp,
    LoadOp,
    ReshapeOp,
    SliceOp,
    StoreOp,
    TraverseOp,
)
from ....dialects.intra.syntax import row_bytes
from .producers import PLAIN, is_heavy, nest_of
from .uses import at_own_row, loads, only_store

SHAPES = (ConstOp, FirstOp, ReshapeOp, BroadcastOp, SliceOp)
"""Ops that compute nothing, and read no memory."""


@dataclass
class Recipe:
    """How a row is made: ops in order, which read values that lie in buffers at the nest's own row
    (`loads`, by buffer); `work` of them compute something."""

    ops: list[Operation] = field(default_factory=list[Operation])
    loads: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    work: int = 0


def make_again(func: FuncOp) -> None:
    """Let readers make rows again; the stores that are dead then are left to simplify."""
    changed = True
    while changed:
        changed = False
        for alloc in [op for op in func.body.block.ops if isinstance(op, AllocOp)]:
            changed |= _made_again(alloc)


def _made_again(alloc: AllocOp) -> bool:
    """Whether all readers of a buffer make its rows again from now on."""
    store, readers = only_store(alloc), list(loads(alloc))
    if store is None or not readers:
        return False
    own = nest_of(store)
    if not all(_is_elsewhere(load, own) for load in readers):
        return False
    recipe = _recipe(store, own)
    if recipe is None or not all(_pays(recipe, load) for load in readers):
        return False
    for load in readers:
        _make(recipe, store.value, own, load)
    return True


def _is_elsewhere(load: LoadOp, own: TraverseOp) -> bool:
    """Whether a later nest over the same rows reads its own row."""
    nest = nest_of(load)
    return nest is not own and nest.size is own.size and at_own_row(load) and load.otherwise is None


def _recipe(store: StoreOp, own: TraverseOp) -> Recipe | None:
    """How the row that is stored follows from rows that lie in memory; None where it takes more
    than a few plain operations."""
    found, known = Recipe(), set[SSAValue]()
    lies = {op.value: op.buffer for op in _stores(own) if op is not store and _stays(op.buffer)}

    def visit(v: SSAValue) -> bool:
        if v in known:
            return True
        known.add(v)
        if v in lies:
            found.loads[lies[v]] = v
            return True
        op = v.owner
        if isinstance(op, LoadOp):
            if op.otherwise is not None or not _stays(op.buffer):
                return False
            if at_own_row(op):
                found.loads[op.buffer] = v
                return True
            if not isinstance(op.row.owner, FirstOp):
                return False
        elif isinstance(op, ApplyOp | CastOp) and not is_heavy(op):
            found.work += 1
        elif not isinstance(op, SHAPES):
            return False
        if found.work > PLAIN or not all(visit(x) for x in op.operands if not _is_buffer(op, x)):
            return False
        found.ops.append(op)
        return True

    return found if visit(store.value) else None


def _is_buffer(op: Operation, x: SSAValue) -> bool:
    return isinstance(op, LoadOp) and x is op.buffer


def _stores(nest: TraverseOp) -> Iterator[StoreOp]:
    """Those of rows at the nest's own place."""
    for op in nest.body.block.ops:
        if isinstance(op, StoreOp) and op.row is nest.row:
            yield op


def _stays(buffer: SSAValue) -> bool:
    """Whether rows stay as they are, once they are there: those of an argument that is only read,
    or of a temporary that one nest writes and others read."""
    match buffer.owner:
        case InputOp():
            return all(isinstance(use.operation, LoadOp) for use in buffer.uses)
        case AllocOp() as alloc:
            return only_store(alloc) is not None and any(loads(alloc))
        case _:
            return False


def _pays(recipe: Recipe, load: LoadOp) -> bool:
    """Whether a nest that reads the row reads no more, if it makes it."""
    nest = nest_of(load)
    there = {
        op.buffer for op in nest.body.block.ops if isinstance(op, LoadOp) and op.row is nest.row
    }
    more = sum(row_bytes(v) for buffer, v in recipe.loads.items() if buffer not in there)
    return more <= row_bytes(load.result)


def _make(recipe: Recipe, made: SSAValue, own: TraverseOp, load: LoadOp) -> None:
    """Make the row in the place of a load."""
    value: dict[SSAValue, SSAValue] = {own.row: load.row}
    before = InsertPoint.before(load)
    for buffer, v in recipe.loads.items():
        there = LoadOp.make([buffer, load.row, None], [v.type])
        Rewriter.insert_op(there, before)
        value[v] = there.result
    for op in recipe.ops:
        Rewriter.insert_op(op.clone(value), before)
    Rewriter.replace_op(load, [], [value[made]])
