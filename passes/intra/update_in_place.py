"""update-in-place: what a call changes of its arguments is written where the argument lies.

An update (a new parameter, the running mean of a normalisation) is a result that the caller copies
into the argument. Where the nest that computes it reads of the argument its own row only, and
nobody reads the argument after that, the row is stored over the old one: no second buffer, and
nothing to copy.

Before: `%o = intra.output {buffer = "new_w"}`. After, stored to as well as read: `%w = intra.input
{buffer = "w", gives = "new_w"}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from ...dialects.attributes import UPDATES
from ...dialects.intra.bindings import InputOp, OutputOp, ViewOp, root
from ...dialects.intra.rows import (
    ApplyOp,
    DotOp,
    LoadOp,
    MatmulOp,
    OuterOp,
    SegmentOp,
    StoreOp,
    TotalOp,
    TraverseOp,
)
from ...dialects.intra.shapes import ShapeOp
from ...dialects.intra.steps import steps
from ...dialects.intra.syntax import FLOATS, buffer_dims, element


def updates(func: FuncOp) -> list[tuple[OutputOp, InputOp]]:
    """The outputs of a phase that update an argument, with those arguments."""
    given = func.attributes.get(UPDATES)
    if not isinstance(given, DictionaryAttr):
        return []
    ops = list(func.body.block.ops)
    inputs = {op.buffer.data: op for op in ops if isinstance(op, InputOp)}
    found: list[tuple[OutputOp, InputOp]] = []
    for op in ops:
        if isinstance(op, OutputOp) and isinstance(
            of := given.data.get(op.buffer.data), StringAttr
        ):
            if of.data in inputs:
                found.append((op, inputs[of.data]))
    return found


def may_share(func: FuncOp, out: OutputOp, argument: InputOp) -> bool:
    """Whether `out` may be written over `argument`."""
    if (out.result.type, out.domain) != (argument.result.type, argument.domain):
        return False
    if element(out.result.type) not in FLOATS and math.prod(buffer_dims(out.result)) > 1:
        return False  # such rows are copied out of turn (codegen/openmp/row_code.py)
    order = steps(func)
    writers = [s for s in order if out.result in s.writes()]
    readers = [s for s in order if argument.result in s.reads()]
    if len(writers) != 1 or any(out.result in s.reads() for s in order):
        return False
    (writer,) = writers
    if not isinstance(writer, TraverseOp) or any(
        order.index(s) > order.index(writer) for s in readers
    ):
        return False
    return writer not in readers or reads_before_writing(writer, out, argument)


def reads_before_writing(nest: TraverseOp, out: OutputOp, argument: InputOp) -> bool:
    """Whether every row of `argument` is read by its own iteration, before the new row is stored:
    in one stage (passes/intra/cut_stages.py), whose ops run in their order, but for large dots,
    which write where their result is to lie."""
    if any(isinstance(op, DotOp | MatmulOp | OuterOp | SegmentOp) for op in nest.walk()):
        return False
    ops = list(nest.body.block.ops)
    stores = [op for op in ops if isinstance(op, StoreOp) and root(op.buffer) is out.result]
    if len(stores) != 1 or stores[0].row is not nest.row:
        return False
    (store,) = stores
    loads = [op for op in ops if isinstance(op, LoadOp) and root(op.buffer) is argument.result]
    if any(
        op.row is not nest.row or op.otherwise is not None or way(op.buffer) != way(store.buffer)
        for op in loads
    ):
        return False
    last = ops.index(store)
    return all(ops.index(op) <= last for load in loads for op in users(load))


def way(buffer: SSAValue) -> list[tuple[Attribute, object]]:
    """The views between a buffer and what it is a view of."""
    found: list[tuple[Attribute, object]] = []
    while isinstance(view := buffer.owner, ViewOp):
        found.append((buffer.type, dict(view.properties)))
        buffer = view.buffer
    return found


def users(op: Operation) -> Iterable[Operation]:
    """What reads the result of an op, through other shapes of it, which are no copies, and through
    products, whose factors a total may read when it adds them (codegen/openmp/row_values.py)."""
    for use in op.results[0].uses:
        user = use.operation
        yield user
        if isinstance(user, ShapeOp):
            yield from users(user)
        elif isinstance(user, ApplyOp) and user.fn.data == "mul":
            yield from (u.operation for u in user.result.uses if isinstance(u.operation, TotalOp))


def share(out: OutputOp, argument: InputOp) -> None:
    """Writes `out` over `argument`."""
    argument.properties["gives"] = out.buffer
    assert out.parent is not None
    ops = list(out.parent.ops)
    if ops.index(out) < ops.index(argument):  # views of the output may stand between the two
        argument.detach()
        out.parent.insert_op_before(argument, out)
    Rewriter.replace_op(out, [], [argument.result])


@dataclass(frozen=True)
class UpdateInPlacePass(ModulePass):
    """Writes updates of arguments over the arguments where nobody can tell."""

    name = "update-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        phases = [f for f in op.body.block.ops if isinstance(f, FuncOp)]
        for i, func in enumerate(phases):
            later = {
                o.buffer.data for f in phases[i + 1 :] for o in f.walk() if isinstance(o, InputOp)
            }
            for out, argument in updates(func):
                # a later phase's new value is a saved tensor, which must not be the caller's own
                apart = {argument.buffer.data, out.buffer.data}
                if not apart & later and may_share(func, out, argument):
                    share(out, argument)
        CommonSubexpressionElimination().apply(ctx, op)  # views of the two are one
