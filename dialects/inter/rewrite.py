"""What a rule of canonicalization works with: looks at operands, makes ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from .base import Operands, Row, ValueOp
from .shapes import ReshapeOp
from .syntax import number
from .types import ONE, Dom, RowsType, is_float, rows
from .values import ConstOp

OpT = TypeVar("OpT", bound=ValueOp)


class Rewrite:
    """What a rule may use: makes ops that go in front of the rewritten one, if it is rewritten."""

    def __init__(self, op: ValueOp):
        self._op = op
        self.made: list[ValueOp] = []

    def make(
        self,
        cls: type[ValueOp],
        operands: Operands,
        props: dict[str, Any],
        row: Row,
        dom: Dom | None = None,
    ) -> SSAValue:
        """A new op; on the domain of the old one unless `dom` says another."""
        made = cls.make(operands, props, RowsType.get(dom or self._op.type.dom, *row))
        self.made.append(made)
        return made.results[0]

    def again(
        self, operands: Sequence[SSAValue], dims: Sequence[int], **props: Attribute
    ) -> SSAValue:
        """The rewritten op with other operands, rows of another shape, and other properties."""
        return self.alike(self._op, operands, dims, **props)

    def alike(
        self, op: ValueOp, operands: Sequence[SSAValue], dims: Sequence[int], **props: Attribute
    ) -> SSAValue:
        """`op` with other operands, rows of another shape, and other properties."""
        made = op.clone()
        made.operands = operands
        made.properties.update(props)
        new = RowsType.get(op.type.dom, tuple(dims), op.type.elem)
        Rewriter.replace_value_with_new_type(made.results[0], new)
        self.made.append(made)
        return made.results[0]

    def reshape(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        """The same numbers in another row shape, where `x` lives; `x` itself where it has it."""
        t = rows(x)
        if t.dims == tuple(dims):
            return x
        return self.make(ReshapeOp, [x], {}, Row(tuple(dims), t.elem), t.dom)

    def const(self, value: float | int | bool) -> SSAValue:
        """A constant row like the op's result."""
        t = self._op.type
        exact = float(value) if is_float(t.elem) else int(value)
        return self.make(ConstOp, [], {"value": number(exact)}, Row(t.dims, t.elem), ONE)


Rule = Callable[[Any, Rewrite], SSAValue | None]
"""Takes an op and gives a value that is equal to its result, or None. The value may live on a
coarser domain than the result's type says, as long as every reader can take it there."""


def constant(v: SSAValue) -> float | int | None:
    """The number that every entry of a value has; None where that is not known."""
    return v.owner.number if isinstance(v.owner, ConstOp) else None


def producer(v: SSAValue, cls: type[OpT]) -> OpT | None:
    """The op of a class that made the value."""
    return v.owner if isinstance(v.owner, cls) else None
