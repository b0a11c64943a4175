"""How many rows masks keep in the first call: those of filters, and of choices between rows of a
value and zeros. What a program computes masks from, sets and integers, is computed for that by the
steps that make its sets later."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from torch import SymInt
from torch._subclasses.fake_tensor import FakeTensor
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ....codegen.common.structure_plan import StructurePlan
from ....dialects.attributes import KEPT
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.structure import FilterOp
from ....dialects.inter.types import set_name, sets_of
from ....dialects.signature import arguments, body_ops
from ....passes.analysis.costs import in_steps, note_subsets
from ....passes.analysis.dependence import ancestors, closure, invariant_arguments
from ....passes.inter.restricting.choices import Choice, choices
from ....runtime.sets.structure import Step, run_plan
from ..importer import Imported
from ..importer.emit.arguments import argument_name
from ..importer.values.size_hints import hinted_number
from .arguments import SetArgument, structure_rows


class Kept(NamedTuple):
    """In how many of its rows a mask is true."""

    true: int
    rows: int


def note_masks(imported: Imported, examples: Sequence[Any]) -> None:
    """Writes down what shares of the rows are kept, in powers of 2, for restrict-rows: the sizes of
    filters, and `inter.kept` of choices."""
    masks = Masks.of(imported.function)
    masks.note(kept_by(imported, masks.values, examples))


@dataclass(frozen=True)
class Masks:
    """The masks of a function: of filters, by the names of the sets that these make, and of
    choices."""

    func: FuncOp
    filters: Mapping[str, SSAValue]
    choices: Sequence[Choice]

    @staticmethod
    def of(func: FuncOp) -> Masks:
        """Those that are computed from sets and integers alone."""
        fixed = closure(body_ops(func), invariant_arguments(func, inputs=False, units=True))
        filters = {
            set_name(op.results[0]): op.mask
            for op in body_ops(func)
            if isinstance(op, FilterOp) and op.mask is not None and op.mask in fixed
        }
        return Masks(func, filters, choices(func))

    @property
    def values(self) -> list[SSAValue]:
        """Each of them once."""
        return list(dict.fromkeys([*self.filters.values(), *(c.mask for c in self.choices)]))

    def note(self, kept: Mapping[SSAValue, Kept]) -> None:
        """Writes down the shares of those of which it is known what they keep."""
        shares = {m: k.true / k.rows for m, k in kept.items() if k.rows}
        note_subsets(self.func, {s: shares[m] for s, m in self.filters.items() if m in shares})
        for c in self.choices:
            if c.mask in shares:
                share = 1 - shares[c.mask] if c.not_ else shares[c.mask]
                c.op.attributes[KEPT] = FloatAttr(in_steps(share), f64)


def kept_by(
    imported: Imported, masks: Sequence[SSAValue], examples: Sequence[Any]
) -> dict[SSAValue, Kept]:
    """What each mask keeps; nothing where only a call would tell."""
    if not masks or any(isinstance(x, FakeTensor) for x in examples):
        return {}
    examples = [hinted_number(x) if isinstance(x, SymInt) else x for x in examples]
    func, copies = _computing(imported.function, masks)
    try:
        plan = StructurePlan(func, [name for name, _, _ in arguments(func)])
    except PassFailedException:  # read in a way that the steps of sets do not know
        return {}
    steps = [Step(name, tuple(i), tuple(o), a) for name, i, o, a in plan.steps]
    made = {m: plan.names[copies[m]] for m in masks}
    read = {name for step in steps for name in step.inputs} | set(made.values())
    try:
        done = run_plan(steps, _given(imported, examples, read))
    except (IndexError, ValueError):  # the call itself tells what is wrong with its arguments
        return {}
    found = {m: done[name] for m, name in made.items()}
    return {
        m: Kept(int(np.count_nonzero(x)), x.size)
        for m, x in found.items()
        if isinstance(x, np.ndarray)
    }


def _given(imported: Imported, examples: Sequence[Any], read: Collection[str]) -> dict[str, Any]:
    """The arguments of these names, as steps take them."""
    names = [argument_name(p) for p in imported.placeholders]
    count = {s.name: s.size(examples) for s in imported.sets}
    sets = [s for s in imported.sets if s.name in read]
    rows = [r for r in imported.rows if r.name in read]
    return {
        **{s.name: SetArgument(s, names).made(count, examples) for s in sets},
        **{r.name: structure_rows(r, examples) for r in rows},
    }


def _computing(
    func: FuncOp, masks: Sequence[SSAValue]
) -> tuple[FuncOp, Mapping[SSAValue, SSAValue]]:
    """A copy of a function with the ops that masks are computed by, and its values."""
    env = SetEnv.of(func)
    todo, wanted = list(masks), set[Operation]()
    while todo:
        new = ancestors(todo) - wanted
        wanted |= new
        todo = [env.value(name) for op in new for r in op.results for name in sets_of(r.type)]
    copies: dict[SSAValue, SSAValue] = {}
    copy = func.clone(copies)
    for old, op in reversed([*zip(body_ops(func), body_ops(copy), strict=True)]):
        if old not in wanted:
            Rewriter.erase_op(op, safe_erase=False)
    return copy, copies
