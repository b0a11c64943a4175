"""The function of a whole step: that of a loss, with what the optimizer keeps as more arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, DictionaryAttr, StringAttr, f32, f64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from ...dialects.attributes import CLIP, NAME, OPTIMIZER, STATE_OF, SUM_OF
from ...dialects.inter.types import ONE, RowsType
from ...dialects.signature import Names, arg_attributes
from ...passes.inter.autodiff import attached_arguments
from ...passes.inter.optimizers import COUNT, RULES
from .importer import Imported
from .importer.binding import FromTensor, ResultBinding, RowsBinding, UpdateBinding
from .optimizers import NotOneStep


class Turn(Enum):
    """What a call does with its gradients."""

    USES = "makes a step with them"
    KEEPS = "adds them to what the parameters' `.grad` hold"
    ENDS = "makes a step with these sums"


@dataclass(frozen=True)
class Kept:
    """A parameter of the graph: its placeholder and name in the program, its rule, and the type of
    the count of its steps."""

    placeholder: int
    name: str
    rule: str
    count: torch.dtype


def trained(imported: Imported) -> list[tuple[int, str]]:
    """The parameters that a step updates: their placeholders, and their names as arguments.

    Raises:
        NotOneStep: there is none; the program has one as rows of two kinds, or changes it by
            itself.
    """
    attached = attached_arguments(imported.function)
    out: list[tuple[int, str]] = []
    for r in imported.rows:
        if r.needs_grad and r.name in attached:
            assert isinstance(r.source, FromTensor)
            out.append((r.source.placeholder, r.name))
    places = {place for place, _ in out}
    if not out:
        raise NotOneStep("the loss is made of no parameter")
    if len(places) < len(out):
        raise NotOneStep("a parameter is used as rows and as a whole")
    wanting = {r.source.placeholder for r in imported.rows if r.needs_grad}  # type: ignore[union-attr]
    if wanting & {u.placeholder for u in imported.updates}:
        raise NotOneStep("the loss changes a parameter in place")
    return out


def with_state(
    imported: Imported,
    parameters: Sequence[Kept],
    args: Sequence[Any],
    turn: Turn,
    clip: Sequence[str],
    bounds: AnyFloat,
) -> Imported:
    """The program with arguments for what the optimizer keeps, for the numbers of a step, for the
    gradients of earlier calls and for bounds, as further placeholders after those of the graph, and
    with the updates of all of them."""
    signature = _Extended(imported.function, len(imported.placeholders))
    by_name = {r.name: r for r in imported.rows}
    for k in parameters:
        signature.add(by_name[k.name], k, args[k.placeholder].shape, turn)
    if clip:
        signature.clip(clip, bounds)
    signature.finish()
    return replace(
        imported,
        rows=(*imported.rows, *signature.rows),
        updates=(*imported.updates, *signature.updates),
        placeholders=(*imported.placeholders, *(r.name for r in signature.rows)),
        attached=(),
    )


class _Extended:
    """A function that is given more arguments."""

    def __init__(self, func: FuncOp, placeholders: int) -> None:
        self.func = func
        self.placeholders = placeholders
        self.attributes = [dict(d) for d in arg_attributes(func)]
        self.arguments: dict[str, SSAValue] = {}
        for value, attrs in zip(func.body.block.args, self.attributes, strict=True):
            name = attrs[NAME]
            assert isinstance(name, StringAttr)
            self.arguments[name.data] = value
        self.names = Names(self.arguments)
        self.rows: list[RowsBinding] = []
        self.updates: list[UpdateBinding] = []

    def add(self, parameter: RowsBinding, kept: Kept, shape: Sequence[int], turn: Turn) -> None:
        """What a call needs for a parameter of this shape."""
        value, rule = self.arguments[parameter.name], RULES[kept.rule]
        assert isinstance(parameter.source, FromTensor)
        axis = parameter.source.row_axis
        if turn is not Turn.KEEPS:
            self.attributes[value.index][OPTIMIZER] = StringAttr(kept.rule)
            own = {STATE_OF: StringAttr(parameter.name)}
            self._update(parameter, shape)
            for name in rule.state:
                what = f"{parameter.name}_{name}"
                if name == COUNT:
                    one = RowsType.get(ONE, (), f64 if kept.count == torch.float64 else f32)
                    self._update(self._argument(what, one, None, own), ())
                else:
                    self._update(self._argument(what, value.type, axis, own), shape)
            elem = f64 if parameter.elem == "f64" else f32
            numbers = RowsType.get(ONE, (len(rule.numbers),), elem)
            self._argument(f"{parameter.name}_numbers", numbers, None, own)
        if turn is not Turn.USES:
            of = {SUM_OF: StringAttr(parameter.name)}
            total = self._argument(f"{parameter.name}_sum", value.type, axis, of)
            if turn is Turn.KEEPS:
                self._update(total, shape)

    def clip(self, kinds: Sequence[str], elem: AnyFloat) -> None:
        """The bounds by which gradients are clipped in these ways."""
        ways = ArrayAttr(StringAttr(kind) for kind in kinds)
        self._argument("bounds", RowsType.get(ONE, (len(kinds),), elem), None, {CLIP: ways})

    def finish(self) -> None:
        self.func.arg_attrs = ArrayAttr(DictionaryAttr(a) for a in self.attributes)
        self.func.update_function_type()

    def _argument(
        self, hint: str, kind: RowsType, axis: int | None, attributes: Mapping[str, Attribute]
    ) -> RowsBinding:
        name = self.names.fresh(hint)
        block = self.func.body.block
        block.insert_arg(kind, len(block.args)).name_hint = name
        self.attributes.append({NAME: StringAttr(name), **attributes})
        source = FromTensor(self.placeholders + len(self.rows), axis)
        self.rows.append(RowsBinding(name, source, kind.dims, str(kind.elem), False))
        return self.rows[-1]

    def _update(self, argument: RowsBinding, shape: Sequence[int]) -> None:
        source = argument.source
        assert isinstance(source, FromTensor)
        dims = tuple(-1 if i == source.row_axis else n for i, n in enumerate(shape))
        result = ResultBinding(
            f"new_{argument.name}", dims, source.row_axis, 1, argument.elem, None
        )
        self.updates.append(UpdateBinding(source.placeholder, argument.name, result))
