"""Choices that keep a value at some rows only, as values at the subset of these rows.

`where(mask, x, 0)`, with a mask that says one thing of a whole row, and `mask * x`, are what losses
with ignored classes and weights of 0 and 1 are made of. At the rows that the mask drops nobody
needs x: so where few are kept, by `inter.kept`, x is read at the subset, from which restrict-rows
goes on, and put back among zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....dialects.attributes import KEPT
from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.reduce import ReduceOp, SoftmaxOp
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.structure import PARENT
from ....dialects.inter.types import UNIT, Dom, RowsType, is_bool, rows, set_name
from ....dialects.inter.values import AtOp, CastOp, ConstOp
from ....dialects.inter.zeros import same_number
from ....dialects.signature import body_ops
from ...analysis.costs import Sizes, note_size
from ...analysis.dependence import closure, dependants, invariant_arguments
from ...analysis.value_facts import Facts

_SAME = frozenset({"inter.reshape", "inter.broadcast", "inter.cast"})


class Choice(NamedTuple):
    """An op that gives rows of `x` where the mask is true (or with `not_` false), and zeros."""

    op: ValueOp
    mask: SSAValue
    not_: bool
    x: SSAValue


def choices(func: FuncOp) -> list[Choice]:
    """The choices of a function between rows that took sums over others, by masks that depend on
    sets and integers alone."""
    ops = body_ops(func)
    fixed = closure(ops, invariant_arguments(func, inputs=False, units=True))
    sums: set[SSAValue] = {op.results[0] for op in ops if isinstance(op, ReduceOp | SoftmaxOp)}
    deep = dependants(ops, sums - fixed)
    facts = Facts()
    found = (_choice(op, facts) for op in ops if isinstance(op, ValueOp))
    return [c for c in found if c is not None and c.mask in fixed and c.x in deep]


def _choice(op: ValueOp, facts: Facts) -> Choice | None:
    if op.type.dom.set == UNIT or op.type.dom.keys:
        return None
    if op.name == "inter.where":
        condition, a, b = op.operands
        mask = _mask_of_rows(condition, op.type.dom)
        if mask is not None and _is_zero(b) and rows(a).dom == op.type.dom:
            return Choice(op, mask, False, a)
        if mask is not None and _is_zero(a) and rows(b).dom == op.type.dom:
            return Choice(op, mask, True, b)
    if op.name == "inter.mul":
        for factor, x in (op.operands, reversed(op.operands)):
            mask = _mask_of_rows(factor, op.type.dom)
            # what is not finite times 0 is no number
            if mask is not None and rows(x).dom == op.type.dom and facts.finite(x):
                return Choice(op, mask, False, x)
    return None


def _is_zero(v: SSAValue) -> bool:
    return isinstance(v.owner, ConstOp) and same_number(v.owner.number, 0.0)


def _mask_of_rows(v: SSAValue, dom: Dom) -> SSAValue | None:
    """The one i1 a row that a condition, or a factor of 0 and 1, consists of."""
    while isinstance(v.owner, Operation) and v.owner.name in _SAME:
        if isinstance(v.owner, CastOp) and is_bool(rows(v).elem):
            return None  # not 0 is true: another number than the mask
        v = v.owner.operands[0]
    t = v.type
    one = isinstance(t, RowsType) and t.dom == dom and not t.dims and is_bool(t.elem)
    return v if one else None


@dataclass
class Written:
    """A choice that was erased, the read of its value, and what has taken its place."""

    read: AtOp
    back: SSAValue
    again: Callable[[SSAValue], Operation]

    @property
    def x(self) -> SSAValue:
        """The value of which rows are kept."""
        return self.read.x

    def undo(self) -> None:
        """Puts the choice in its place again."""
        op = self.again(self.x)
        Rewriter.insert_op(op, InsertPoint.before(self.read))
        self.back.replace_all_uses_with(op.results[0])


def _maker(c: Choice) -> Callable[[SSAValue], Operation]:
    """What makes a choice again, of a value. The op itself would be among the users of that."""
    op, types = c.op, [r.type for r in c.op.results]
    place = list(op.operands).index(c.x)
    before, behind = op.operands[:place], op.operands[place + 1 :]
    properties, attributes = dict(op.properties), dict(op.attributes)
    return lambda x: type(op).create(
        operands=[*before, x, *behind],
        result_types=types,
        properties=properties,
        attributes=attributes,
    )


class Subsets:
    """Writes choices by subsets of the rows, one for each mask."""

    def __init__(self, func: FuncOp, env: SetEnv, share: float) -> None:
        self.func, self.env, self.share = func, env, share
        self.sizes = Sizes.of(func, env)
        self.known: dict[tuple[SSAValue, bool], SSAValue] = {}

    def written(self) -> list[Written]:
        """Every choice that is known to keep less than `share` of the rows."""
        kept = ((c, c.op.attributes.get(KEPT)) for c in choices(self.func))
        few = [
            (c, attr.value.data)
            for c, attr in kept
            if isinstance(attr, FloatAttr) and attr.value.data < self.share
        ]
        # the last first: a choice may read another one
        return [self._write(c, share) for c, share in reversed(few)]

    def _write(self, c: Choice, kept: float) -> Written:
        vanilla = c.op.type.dom != c.op.infer(self.env)
        b = Builder(self.env, InsertPoint.before(c.op), vanilla)
        subset = self._subset(c, kept, vanilla)
        read = b.at(subset, PARENT, c.x)
        row = b.broadcast(read, c.op.type.dims)
        back = b.reduce("sum", row, subset, (PARENT,))
        again = _maker(c)
        c.op.results[0].replace_all_uses_with(back)
        Rewriter.erase_op(c.op)
        assert isinstance(read.owner, AtOp)
        return Written(read.owner, back, again)

    def _subset(self, c: Choice, kept: float, vanilla: bool) -> SSAValue:
        """The rows that a choice keeps, made right behind its mask."""
        if (c.mask, c.not_) not in self.known:
            at, name = c.mask.owner, c.op.type.dom.set
            behind = (
                InsertPoint.after(at) if isinstance(at, Operation) else InsertPoint.at_start(at)
            )
            b = Builder(self.env, behind, vanilla)
            mask = b.pointwise("logical_not", c.mask) if c.not_ else c.mask
            subset = b.filter(name, mask, name=f"{name}_kept")
            note_size(self.func, set_name(subset), kept * self.sizes.set(name))
            self.known[c.mask, c.not_] = subset
        return self.known[c.mask, c.not_]
