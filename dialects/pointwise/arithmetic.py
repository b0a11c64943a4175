"""Arithmetic: sums, products, powers, extremes, and integers divided."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import meanings
from .formulas import FLAT, Num, Rule, Site
from .record import Array, PointwiseSpec
from .spelling import Code, Spelling, arithmetic, each, infix


def _power(a: Num, exponent: float) -> Num:
    """a ** exponent. Roots are those of negative numbers and infinities too: NaN, as in torch."""
    match exponent:
        case 1:
            return a
        case 0.5:
            return a.apply("sqrt")
        case _:
            return a**exponent


def _pow_base(s: Site) -> Num | None:
    exponent = s.constants[1]
    if exponent is None:
        slope = s.b * s.a ** (s.b - 1.0)
        return (s.d * slope).unless(s.b.equals(0.0))
    if exponent == 0:
        return None
    if exponent == 1:
        return s.d
    return s.d * _power(s.a, exponent - 1) * exponent


def _pow_exponent(s: Site) -> Num:
    # 0 ** b is constant for b >= 0, and log 0 must not turn that into a nan
    slope = s.y * s.a.apply("log")
    return s.d * slope.unless(s.a.equals(0.0).both(s.b >= 0.0))


def _chosen(smaller: str) -> tuple[Rule, Rule]:
    """maximum or minimum: nothing to the operand that was not taken, half to each of two equal
    ones, all to both where one is NaN."""

    def share(s: Site, mine: Num, other: Num) -> Num:
        d = (s.d * 0.5).where(mine.equals(other), s.d)
        return d.unless(mine.apply(smaller, other))

    return lambda s: share(s, s.a, s.b), lambda s: share(s, s.b, s.a)


def _extreme(function: str, ordered: Code) -> Code:
    """The operand that is so ordered to the other, or is NaN."""

    def code(s: Spelling) -> str:
        if s.is_scalar:  # whose operands may be long, and would be read twice
            return s.each(function, s.a, s.b)
        return s.select(f"({s.a} != {s.a})", s.a, ordered(s))

    return code


def _lerp(s: Spelling) -> str:
    """From the nearer end, so that either end is met (`meanings.lerp`)."""
    a, b, w = s.xs
    if s.is_scalar:  # whose operands may be long, and would be read twice
        return s.each("lerp", a, b, w)
    far = f"(({w} >= {s.number(0.5)}) | ({w} <= {s.number(-0.5)}))"
    weight = s.select(far, f"({w} - {s.number(1)})", w)
    return f"({s.select(far, b, a)} + {weight} * ({b} - {a}))"


def _pow(s: Spelling) -> str:
    return s.math("pow", *s.xs) if s.is_single else s.each("pow", *s.xs)


def _abs(s: Spelling) -> str:
    if s.is_integer:
        return f"({s.a} < 0 ? {s.wrapping('-', '0', s.a)} : {s.a})"
    return s.each("fabs", s.a) if s.is_scalar else s.math("abs", s.a)


def _whole(name: str, function: Callable[..., Array], c: str) -> PointwiseSpec:
    """One of the whole numbers beside a number; `c` is the function of C's library."""
    return PointwiseSpec(
        name,
        1,
        function,
        slopes=(FLAT,),
        c=each(c),
        zero="all",
        sign="kept",
        idempotent=True,
    )


RECORDS: tuple[PointwiseSpec, ...] = (
    PointwiseSpec(
        "add",
        2,
        np.add,
        slopes=(lambda s: s.d, lambda s: s.d),
        c=arithmetic("+"),
        operands="number",
        of_booleans="logical_or",
        zero="all",
        sign="kept",
        commutative=True,
        neutral=(-0.0, -0.0),
        signs=(1, 1),
    ),
    PointwiseSpec(
        "sub",
        2,
        np.subtract,
        slopes=(lambda s: s.d, lambda s: -s.d),
        c=arithmetic("-"),
        operands="number",
        zero="all",
        neutral=(None, 0.0),
        signs=(1, -1),
    ),
    PointwiseSpec(
        "mul",
        2,
        np.multiply,
        slopes=(lambda s: s.d * s.b, lambda s: s.d * s.a),
        c=arithmetic("*"),
        operands="number",
        of_booleans="logical_and",
        zero="any",
        sign="kept",
        commutative=True,
        neutral=(1, 1),
    ),
    PointwiseSpec(
        "div",
        2,
        np.divide,
        slopes=(lambda s: s.d / s.b, lambda s: -(s.d / s.b * s.y)),
        c=infix("/"),
        total=False,
        smooth_above_zero=1,
        zero="first",
        sign="kept",
        neutral=(None, 1),
    ),
    PointwiseSpec(
        "neg",
        1,
        np.negative,
        slopes=(lambda s: -s.d,),
        c=lambda s: s.wrapping("-", "0", s.a) if s.is_integer else f"(-{s.a})",
        operands="number",
        zero="all",
        signs=(-1,),
        involution=True,
    ),
    PointwiseSpec(
        "pow",
        2,
        np.power,
        slopes=(_pow_base, _pow_exponent),
        c=_pow,
        total=False,
        smooth_above_zero=0,
        heavy=True,
        neutral=(None, 1),
    ),
    # a + w (b - a): its slopes are no sum of those of the parts, which meet at infinities
    PointwiseSpec(
        "lerp",
        3,
        meanings.lerp,
        slopes=(
            lambda s: s.d * (1.0 - s.xs[2]),
            lambda s: s.d * s.xs[2],
            lambda s: s.d * (s.b - s.a),
        ),
        c=_lerp,
    ),
    PointwiseSpec(
        "abs",
        1,
        np.abs,
        slopes=(lambda s: s.d * s.a.apply("sign"),),
        c=_abs,
        operands="number",
        zero="all",
        sign="never negative",
        idempotent=True,
    ),
    PointwiseSpec(
        "sign",
        1,
        meanings.sign,
        slopes=(FLAT,),
        c=each("sign"),
        operands="number",
        zero="all",
        sign="kept",
        idempotent=True,
    ),
    _whole("floor", np.floor, "floor"),
    _whole("trunc", np.trunc, "trunc"),
    _whole("round", np.rint, "rint"),  # to the nearest, half to the even one
    PointwiseSpec(
        "maximum",
        2,
        np.maximum,
        slopes=_chosen("lt"),
        c=_extreme("greater", lambda s: s.above(s.a, s.b)),
        operands="number",
        of_booleans="logical_or",
        zero="all",
        sign="kept by one",
    ),
    PointwiseSpec(
        "minimum",
        2,
        np.minimum,
        slopes=_chosen("gt"),
        c=_extreme("less", lambda s: s.below(s.a, s.b)),
        operands="number",
        of_booleans="logical_and",
        zero="all",
        sign="kept",
    ),
    # rounded towards minus infinity, as Python and torch do; dividing by 0 gives 0
    PointwiseSpec(
        "floordiv",
        2,
        meanings.floordiv,
        slopes=(None, None),
        c=each("floordiv"),
        operands="integer",
        zero="first",
    ),
    PointwiseSpec(
        "mod",
        2,
        meanings.mod,
        slopes=(None, None),
        c=each("rest"),
        operands="integer",
        zero="first",
    ),
)
