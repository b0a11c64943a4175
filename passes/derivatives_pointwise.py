"""Derivatives of the pointwise ops: for each operand, the cotangent of one read of it.

They agree with torch's where a function has no derivative: relu and abs have 0 at 0, leaky_relu has
its slope, two equal operands of maximum and minimum get half each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ..dialects.inter.builder import Builder
from ..dialects.inter.pointwise import PointwiseOp
from ..dialects.inter.types import rows
from ..dialects.inter.values import ConstOp
from .reverse import Reverse


@dataclass(frozen=True)
class Num:
    """A value with arithmetic, so that a rule reads like its formula."""

    b: Builder
    value: SSAValue

    def _op(self, name: str, *xs: Num | float) -> Num:
        elem = rows(self.value).elem
        values = [x.value if isinstance(x, Num) else self.b.const(float(x), (), elem) for x in xs]
        return Num(self.b, self.b.pointwise(name, *values))

    def __add__(self, o: Num | float) -> Num:
        return self._op("add", self, o)

    def __sub__(self, o: Num | float) -> Num:
        return self._op("sub", self, o)

    def __rsub__(self, o: float) -> Num:
        return self._op("sub", o, self)

    def __mul__(self, o: Num | float) -> Num:
        return self._op("mul", self, o)

    def __truediv__(self, o: Num) -> Num:
        return self._op("div", self, o)

    def __neg__(self) -> Num:
        return self._op("neg", self)

    def __pow__(self, o: Num | float) -> Num:
        return self._op("pow", self, o)

    def call(self, name: str, **parameters: float) -> Num:
        """A function of one operand by name."""
        return Num(self.b, self.b.pointwise(name, self.value, **parameters))

    def compare(self, name: str, o: Num | float) -> Num:
        """gt, lt, eq, .. by name; i1."""
        return self._op(name, self, o)

    def where(self, condition: Num, otherwise: Num | float = 0.0) -> Num:
        """This value where `condition` holds, else `otherwise`."""
        return self._op("where", condition, self, otherwise)

    def unless(self, condition: Num) -> Num:
        """0 where `condition` holds, else this value."""
        return self._op("where", condition, 0.0, self)


@dataclass(frozen=True)
class Site:
    """An op at which a rule is applied: the cotangent `d` of its result, the result, operands."""

    op: PointwiseOp
    d: Num

    @property
    def y(self) -> Num:
        return Num(self.d.b, self.op.results[0])

    @property
    def a(self) -> Num:
        """The first operand."""
        return Num(self.d.b, self.op.xs[0])

    @property
    def b(self) -> Num:
        """The second operand."""
        return Num(self.d.b, self.op.xs[1])

    @property
    def c(self) -> Num:
        """The third operand."""
        return Num(self.d.b, self.op.xs[2])

    def positive(self, parameter: float) -> Num:
        """Where the operand is positive; from the result where the function keeps the sign, so that
        the operand need not be stored."""
        return (self.y if parameter >= 0 else self.a).compare("gt", 0.0)

    def factor(self, condition: Num, otherwise: float) -> Num:
        """1 where `condition` holds, else `otherwise`; rows of floats."""
        one = self.d.b.const(1.0, (), rows(self.d.value).elem)
        return Num(self.d.b, one).where(condition, otherwise)

    def decay(self, t: Num) -> Num:
        """exp(t) for t <= 0. exp itself is not computed on rows that nothing reads, and would drag
        the whole derivative from a key to the rows of the set."""
        dom, env = self.op.type.dom, self.d.b.env
        unread = len(dom.keys) == 1 and "onto" not in env.flags(dom.set, dom.keys[0])
        return t.call("elu", alpha=1.0) + 1.0 if unread else t.call("exp")


Rule = Callable[[Site], Num | None]
"""The cotangent of one operand, in rows of the result's shape; None for 0."""


def _leaky_relu(s: Site) -> Num:
    slope = s.op.parameters()["slope"]
    # one product, and not a choice of two: only d is a value that readers may have to share
    return s.d * s.factor(s.positive(slope), slope)


def _elu(s: Site) -> Num:
    """From the operand, as torch: alpha + y is rounding where y comes close to -alpha."""
    alpha = s.op.parameters()["alpha"]
    return s.d.where(s.a.compare("gt", 0.0), s.d * (s.decay(s.a) * alpha))


def _rsqrt(s: Site) -> Num:
    slope = s.y * s.y * s.y * -0.5
    zero = s.op.parameters().get("zero", 0.0)
    if zero == 0.0:  # y = 0 gives the slope 0 by itself
        return s.d * slope
    return s.d * slope.unless(s.a.compare("eq", 0.0))


def _gelu(s: Site) -> Num:
    cdf = (s.a * math.sqrt(0.5)).call("erf") * 0.5 + 0.5
    density = s.decay(s.a * s.a * -0.5) * (1 / math.sqrt(2 * math.pi))
    return s.d * (cdf + s.a * density)


def _gelu_tanh(s: Site) -> Num:
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    square = s.a * s.a
    t = (s.a * (square * (scale * cubic) + scale)).call("tanh")
    inner = square * (3 * scale * cubic) + scale
    return s.d * ((t + 1.0) * 0.5 + s.a * (1.0 - t * t) * inner * 0.5)


def _constant(v: SSAValue) -> float | None:
    owner = v.owner
    return float(owner.number) if isinstance(owner, ConstOp) else None


def _pow_base(s: Site) -> Num | None:
    exponent = _constant(s.op.xs[1])
    if exponent is None:
        slope = s.b * s.a ** (s.b - 1.0)
        return (s.d * slope).unless(s.b.compare("eq", 0.0))
    if exponent == 0:
        return None
    if exponent in (1, 2):
        return s.d if exponent == 1 else s.d * s.a * 2.0
    return s.d * (s.a ** (exponent - 1)) * exponent


def _pow_exponent(s: Site) -> Num:
    # 0 ** b is constant for b > 0, and log 0 must not turn that into a nan
    return (s.d * s.y * s.a.call("log")).unless(s.a.compare("eq", 0.0))


def _chosen(name: str) -> tuple[Rule, Rule]:
    """maximum or minimum: all to the operand that was taken, half to each of two equal ones."""

    def share(s: Site, mine: Num, other: Num) -> Num:
        return s.d.where(mine.compare(name, other), (s.d * 0.5).where(mine.compare("eq", other)))

    return lambda s: share(s, s.a, s.b), lambda s: share(s, s.b, s.a)


RULES: dict[str, tuple[Rule | None, ...]] = {
    "add": (lambda s: s.d, lambda s: s.d),
    "sub": (lambda s: s.d, lambda s: -s.d),
    "mul": (lambda s: s.d * s.b, lambda s: s.d * s.a),
    "div": (lambda s: s.d / s.b, lambda s: -(s.d / s.b * s.y)),
    "neg": (lambda s: -s.d,),
    "exp": (lambda s: s.d * s.y,),
    "log": (lambda s: s.d / s.a,),
    "log1p": (lambda s: s.d / (s.a + 1.0),),
    "expm1": (lambda s: s.d * (s.y + 1.0),),
    "sqrt": (lambda s: s.d / (s.y * 2.0),),
    "rsqrt": (_rsqrt,),
    "pow": (_pow_base, _pow_exponent),
    "abs": (lambda s: s.d * s.a.call("sign"),),
    "sign": (None,),
    "relu": (lambda s: s.d.where(s.positive(0.0)),),
    "leaky_relu": (_leaky_relu,),
    "elu": (_elu,),
    "gelu": (_gelu,),
    "gelu_tanh": (_gelu_tanh,),
    "erf": (lambda s: s.d * s.decay(s.a * -s.a) * (2 / math.sqrt(math.pi)),),
    "tanh": (lambda s: s.d * (1.0 - s.y * s.y),),
    "sigmoid": (lambda s: s.d * s.y * (1.0 - s.y),),
    "softplus": (lambda s: s.d * s.a.call("sigmoid"),),
    "sin": (lambda s: s.d * s.a.call("cos"),),
    "cos": (lambda s: -(s.d * s.a.call("sin")),),
    "floor": (None,),
    "maximum": _chosen("gt"),
    "minimum": _chosen("lt"),
    "eq": (None, None),
    "ne": (None, None),
    "lt": (None, None),
    "le": (None, None),
    "gt": (None, None),
    "ge": (None, None),
    "logical_and": (None, None),
    "logical_or": (None, None),
    "logical_not": (None,),
    "where": (None, lambda s: s.d.where(s.a), lambda s: s.d.unless(s.a)),
    "floordiv": (None, None),
    "mod": (None, None),
}
"""One rule per operand of every pointwise op; None where nothing flows back."""


def carries(op: Operation, i: int) -> bool:
    """Whether a pointwise op passes a gradient on to operand `i`."""
    return isinstance(op, PointwiseOp) and RULES[op.SPEC.name][i] is not None


def pointwise(r: Reverse, op: PointwiseOp) -> None:
    """The derivative of a pointwise op: each operand's rule, fitted to the operand's row shape."""
    d, over = r.cotangent(op.results[0]), op.type.dom
    for a, rule in zip(op.xs, RULES[op.SPEC.name], strict=True):
        if rule is not None:
            r.put(a, lambda a=a, rule=rule: _applied(r, rule(Site(op, Num(r.b, d))), a), over)


def _applied(r: Reverse, c: Num | None, a: SSAValue) -> SSAValue | None:
    return None if c is None else r.fit(c.value, rows(a).dims)
