"""Derivatives of the pointwise ops: the formulas of their records (dialects/pointwise), in ops.

They agree with torch's where a function has no derivative: relu and abs have 0 at 0, leaky_relu has
its slope, two equal operands of maximum and minimum get half each.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.types import rows
from ....dialects.inter.values import ConstOp
from ....dialects.pointwise.formulas import Num, Rule, Site
from .reverse import Reverse


@dataclass(frozen=True)
class Value(Num):
    """A number of a formula that is a value of the program."""

    b: Builder
    value: SSAValue

    def apply(self, name: str, *others: Num | float, **parameters: float) -> Num:
        xs = [o if isinstance(o, Num) else self.number(o) for o in others]
        values = [x.value for x in xs if isinstance(x, Value)]
        return Value(self.b, self.b.pointwise(name, self.value, *values, **parameters))

    def number(self, x: float) -> Num:
        return Value(self.b, self.b.const(float(x), (), rows(self.value).elem))


@dataclass(frozen=True)
class OpSite(Site):
    """An op at which a rule is applied."""

    op: PointwiseOp

    @staticmethod
    def of(b: Builder, op: PointwiseOp, d: SSAValue) -> OpSite:
        """The place of `op`, whose result has the cotangent `d`."""
        xs = tuple(Value(b, x) for x in op.xs)
        y, constants = Value(b, op.results[0]), tuple(map(_constant, op.xs))
        return OpSite(Value(b, d), y, xs, op.parameters(), constants, op)

    def decay(self, t: Num) -> Num:
        """exp itself is not computed on rows that nothing reads, and would drag the whole
        derivative from a key to the rows of the set."""
        assert isinstance(t, Value)
        dom, env = self.op.type.dom, t.b.env
        unread = len(dom.keys) == 1 and "onto" not in env.flags(dom.set, dom.keys[0])
        return t.apply("elu", alpha=1.0) + 1.0 if unread else t.apply("exp")


def _constant(v: SSAValue) -> float | None:
    owner = v.owner
    return float(owner.number) if isinstance(owner, ConstOp) else None


def carries(op: Operation, i: int) -> bool:
    """Whether a pointwise op passes a gradient on to operand `i`."""
    return isinstance(op, PointwiseOp) and op.SPEC.slopes[i] is not None


def pointwise(r: Reverse, op: PointwiseOp) -> None:
    """The derivative of a pointwise op: each operand's rule, fitted to the operand's row shape."""
    d, over = r.cotangent(op.results[0]), op.type.dom
    site = OpSite.of(r.b, op, d)
    for a, rule in zip(op.xs, op.SPEC.slopes, strict=True):
        if rule is not None:
            r.put(a, lambda a=a, rule=rule: _applied(r, rule, site, a), over)


def _applied(r: Reverse, rule: Rule, site: Site, a: SSAValue) -> SSAValue | None:
    c = rule(site)
    if c is None:
        return r.zero(a, rows(a).dims) if _has_steep_slopes_behind(r, a) else None
    assert isinstance(c, Value)
    return r.fit(c.value, rows(a).dims)


def _has_steep_slopes_behind(r: Reverse, v: SSAValue) -> bool:
    """Whether the gradient of `v` goes on through an op whose slope may be infinite, or no number:
    then a 0 that comes there is none, in torch too."""
    seen, todo = set[SSAValue](), [v]
    while todo:
        x = todo.pop()
        if x in seen or x not in r.need or not isinstance(x.owner, Operation):
            continue
        seen.add(x)
        if isinstance(x.owner, PointwiseOp) and not r.facts.smooth(x.owner):
            return True
        todo += x.owner.operands
    return False
