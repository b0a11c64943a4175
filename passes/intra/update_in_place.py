"""update-in-place: what a call changes of its arguments is written where the argument lies.

An update (a new parameter, the running mean of a normalisation) is a result that the caller copies
into the argument. Where the nest that computes it reads of the argument its own row only, and
nobody reads the argument after that, the row is stored over the old one: no second buffer, and
nothing to copy. A temporary that a nest is the last to read, its own rows only, lies in the buffer
that the nest writes: the sum over local edges in that over all.

Before: `%o = intra.output {buffer = "new_w"}`. After, stored to as well as read: `%w = intra.input
{buffer = "w", gives = "new_w"}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from ...dialects.attributes import UPDATES
from ...dialects.intra.bindings import AllocOp, InputOp, OutputOp
from ...dialects.intra.rows import TraverseOp
from ...dialects.intra.steps import Step, phases, steps
from ...dialects.intra.syntax import FLOATS, buffer_dims, element
from .own_rows import reads_before_writing


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
    return writer not in readers or reads_before_writing(writer, out.result, argument.result)


def share(out: OutputOp, argument: InputOp) -> None:
    """Writes `out` over `argument`."""
    argument.properties["gives"] = out.buffer
    assert out.parent is not None
    ops = list(out.parent.ops)
    if ops.index(out) < ops.index(argument):  # views of the output may stand between the two
        argument.detach()
        out.parent.insert_op_before(argument, out)
    Rewriter.replace_op(out, [], [argument.result])


Temporary = AllocOp | OutputOp


def join_temporaries(func: FuncOp) -> None:
    """Writes over temporaries that die where another buffer is first written."""
    order = steps(func)
    for k, nest in enumerate(order):
        if isinstance(nest, TraverseOp):
            # in the order of the text, not of a set: all ranks, and all runs, join the same
            buffers = [op for op in func.body.block.ops if isinstance(op, Temporary)]
            written = [op for op in buffers if op.result in nest.writes()]
            for old in buffers:
                if isinstance(old, AllocOp) and dies(order, k, old.result):
                    new = next((x for x in written if may_lie_in(order, k, old, x)), None)
                    if new is not None:
                        lay(old, new)


def dies(order: Sequence[Step], k: int, buffer: SSAValue) -> bool:
    """Whether the step `k` is the last to use a buffer, which it reads and nests alone write."""
    if buffer not in order[k].reads() or buffer in order[k].writes():
        return False
    if any(buffer in s.reads() | s.writes() for s in order[k + 1 :]):
        return False
    return all(isinstance(s, TraverseOp) for s in order if buffer in s.writes())


def may_lie_in(order: Sequence[Step], k: int, old: AllocOp, new: Temporary) -> bool:
    """Whether `new`, which the nest `k` writes, may be where `old` is until then."""
    if (old.result.type, old.domain) != (new.result.type, new.domain):
        return False
    if element(new.result.type) not in FLOATS:
        return False
    nest = order[k]
    assert isinstance(nest, TraverseOp)
    if new.result in nest.reads() or any(new.result in s.reads() | s.writes() for s in order[:k]):
        return False
    return reads_before_writing(nest, new.result, old.result)


def lay(old: AllocOp, new: Temporary) -> None:
    """Lets `new` be where `old` is."""
    assert old.parent is not None
    ops = list(old.parent.ops)
    if ops.index(old) < ops.index(new):  # views of the old one may stand between the two
        new.detach()
        old.parent.insert_op_before(new, old)
    Rewriter.replace_op(old, [], [new.result])


@dataclass(frozen=True)
class UpdateInPlacePass(ModulePass):
    """Writes updates of arguments, and what is made of temporaries that die, over these."""

    name = "update-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        funcs = [f for f in op.body.block.ops if isinstance(f, FuncOp)]
        for i, func in enumerate(funcs):
            later = {
                o.buffer.data for f in funcs[i + 1 :] for o in f.walk() if isinstance(o, InputOp)
            }
            for out, argument in updates(func):
                # a later phase's new value is a saved tensor, which must not be the caller's own
                apart = {argument.buffer.data, out.buffer.data}
                if not apart & later and may_share(func, out, argument):
                    share(out, argument)
        for func in phases(op):
            join_temporaries(func)
        CommonSubexpressionElimination().apply(ctx, op)  # views of the two are one
