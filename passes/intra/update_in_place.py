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

from ...dialects.attributes import UPDATES
from ...dialects.intra.bindings import AllocOp, InputOp, OutputOp
from ...dialects.intra.rows import TraverseOp
from ...dialects.intra.steps import phases, steps
from ...dialects.intra.syntax import FLOATS, buffer_dims, element
from ..cse import share_equal
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


Temporary = AllocOp | OutputOp


class Touched:
    """Which steps of a phase read and write which buffers, by their places in the order. Found
    once, and kept while buffers become one: a phase has as many of either as it has parameters."""

    def __init__(self, func: FuncOp) -> None:
        self.order = steps(func)
        self.reads = [step.reads() for step in self.order]
        self.writes = [step.writes() for step in self.order]
        self.readers = _by_buffer(self.reads)
        self.writers = _by_buffer(self.writes)
        self.place = {op: k for k, op in enumerate(func.body.block.ops)}

    def reading(self, buffer: SSAValue) -> set[int]:
        """The steps that read a buffer."""
        return self.readers.get(buffer, set())

    def writing(self, buffer: SSAValue) -> set[int]:
        """The steps that write it."""
        return self.writers.get(buffer, set())

    def lay(self, old: InputOp | Temporary, new: InputOp | Temporary) -> None:
        """Lets one buffer be where another is: `new` stands for both, where the first of the two
        stood, as views of that may stand between them."""
        if self.place[old] < self.place[new]:
            new.detach()
            assert old.parent is not None
            old.parent.insert_op_before(new, old)
            self.place[new] = self.place[old]
        for touched, by_buffer in ((self.reads, self.readers), (self.writes, self.writers)):
            which = by_buffer.pop(old.result, set[int]())
            for k in which:
                touched[k].discard(old.result)
                touched[k].add(new.result)
            by_buffer.setdefault(new.result, set()).update(which)
        Rewriter.replace_op(old, [], [new.result])


def _by_buffer(touched: Sequence[set[SSAValue]]) -> dict[SSAValue, set[int]]:
    found: dict[SSAValue, set[int]] = {}
    for k, buffers in enumerate(touched):
        for buffer in buffers:
            found.setdefault(buffer, set()).add(k)
    return found


def may_share(touched: Touched, out: OutputOp, argument: InputOp) -> bool:
    """Whether `out` may be written over `argument`."""
    if (out.result.type, out.domain) != (argument.result.type, argument.domain):
        return False
    if element(out.result.type) not in FLOATS and math.prod(buffer_dims(out.result)) > 1:
        return False  # such rows are copied out of turn (codegen/openmp/row_code.py)
    writers, readers = touched.writing(out.result), touched.reading(argument.result)
    if len(writers) != 1 or touched.reading(out.result):
        return False
    (k,) = writers
    writer = touched.order[k]
    if not isinstance(writer, TraverseOp) or any(reader > k for reader in readers):
        return False
    return k not in readers or reads_before_writing(writer, out.result, argument.result)


def join_temporaries(touched: Touched) -> None:
    """Writes over temporaries that die where another buffer is first written."""
    for k, nest in enumerate(touched.order):
        if isinstance(nest, TraverseOp):
            written = _temporaries(touched, touched.writes[k])
            for old in _temporaries(touched, touched.reads[k]):
                if isinstance(old, AllocOp) and dies(touched, k, old.result):
                    fits = (x for x in written if may_lie_in(touched, k, old, x))
                    if (new := next(fits, None)) is not None:
                        touched.lay(old, new)


def _temporaries(touched: Touched, buffers: set[SSAValue]) -> list[Temporary]:
    """In the order of the text, not of a set: all ranks, and all runs, join the same."""
    found = [b.owner for b in buffers if isinstance(b.owner, Temporary)]
    return sorted(found, key=touched.place.__getitem__)


def dies(touched: Touched, k: int, buffer: SSAValue) -> bool:
    """Whether the step `k` is the last to use a buffer, which it reads and nests alone write."""
    readers, writers = touched.reading(buffer), touched.writing(buffer)
    if k not in readers or k in writers or max(readers | writers) > k:
        return False
    return all(isinstance(touched.order[i], TraverseOp) for i in writers)


def may_lie_in(touched: Touched, k: int, old: AllocOp, new: Temporary) -> bool:
    """Whether `new`, which the nest `k` writes, may be where `old` is until then."""
    if (old.result.type, old.domain) != (new.result.type, new.domain):
        return False
    if element(new.result.type) not in FLOATS:
        return False
    nest = touched.order[k]
    assert isinstance(nest, TraverseOp)
    readers, writers = touched.reading(new.result), touched.writing(new.result)
    if k in readers or min(readers | writers) < k:
        return False
    return reads_before_writing(nest, new.result, old.result)


@dataclass(frozen=True)
class UpdateInPlacePass(ModulePass):
    """Writes updates of arguments, and what is made of temporaries that die, over these."""

    name = "update-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        funcs = [f for f in op.body.block.ops if isinstance(f, FuncOp)]
        lowered = phases(op)
        for i, func in enumerate(funcs):
            if func not in lowered:
                continue
            later = {
                o.buffer.data for f in funcs[i + 1 :] for o in f.walk() if isinstance(o, InputOp)
            }
            touched = Touched(func)
            for out, argument in updates(func):
                # a later phase's new value is a saved tensor, which must not be the caller's own
                apart = {argument.buffer.data, out.buffer.data}
                if not apart & later and may_share(touched, out, argument):
                    argument.properties["gives"] = out.buffer
                    touched.lay(out, argument)
            join_temporaries(touched)
        share_equal(op)  # views of the two are one
