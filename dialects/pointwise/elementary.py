"""Elementary functions: exponentials and their inverses, roots, and the trigonometric ones."""

from __future__ import annotations

import math as constants

import numpy as np

from . import meanings
from .formulas import Num, Site
from .record import Parameter, PointwiseSpec
from .spelling import Spelling, each, math


def _rsqrt_slope(s: Site) -> Num:
    slope = s.y * s.y * s.y * -0.5
    if s.parameters.get("zero", 0.0) == 0.0:  # y = 0 gives the slope 0 by itself
        return s.d * slope
    return s.d * slope.unless(s.a.equals(0.0))


def _atan2_scale(s: Site) -> Num:
    """One over the square of the distance, 0 at the origin as in torch."""
    square = s.a * s.a + s.b * s.b
    return (1.0 / square).unless(square.equals(0.0))


def _rsqrt(s: Spelling) -> str:
    plain, zero = f"({s.number(1)} / {s.each('sqrt', s.a)})", s.parameters.get("zero")
    return plain if zero is None else s.select(f"({s.a} == {s.number(0)})", s.number(zero), plain)


RECORDS: tuple[PointwiseSpec, ...] = (
    PointwiseSpec(
        "exp",
        1,
        np.exp,
        slopes=(lambda s: s.d * s.y,),
        c=math("exp"),
        total=False,
        heavy=True,
        sign="never negative",
    ),
    PointwiseSpec(
        "log",
        1,
        np.log,
        slopes=(lambda s: s.d / s.a,),
        c=math("log"),
        total=False,
        smooth_above_zero=0,
        heavy=True,
    ),
    PointwiseSpec(
        "log2",
        1,
        np.log2,
        slopes=(lambda s: s.d / (s.a * constants.log(2)),),
        c=each("log2"),
        total=False,
        smooth_above_zero=0,
        heavy=True,
    ),
    PointwiseSpec(
        "log1p",
        1,
        np.log1p,
        slopes=(lambda s: s.d / (s.a + 1.0),),
        c=math("log1p"),
        total=False,
        smooth_above_zero=0,
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "expm1",
        1,
        np.expm1,
        slopes=(lambda s: s.d * (s.y + 1.0),),
        c=math("expm1"),
        total=False,
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "sqrt",
        1,
        np.sqrt,
        slopes=(lambda s: s.d / (s.y * 2.0),),
        c=each("sqrt"),
        total=False,
        smooth_above_zero=0,
        finite_at_zero=True,
        zero="all",
        sign="kept",
    ),
    # `zero` is the value at x == 0, in place of an infinity (degree normalisation)
    PointwiseSpec(
        "rsqrt",
        1,
        meanings.rsqrt,
        slopes=(_rsqrt_slope,),
        c=_rsqrt,
        parameters=(Parameter("zero", required=False),),
        total=False,
        smooth_above_zero=0,
    ),
    PointwiseSpec(
        "erf",
        1,
        meanings.erf,
        slopes=(lambda s: s.d * s.decay(s.a * -s.a) * (2 / constants.sqrt(constants.pi)),),
        c=math("erf"),
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "erfinv",
        1,
        meanings.erfinv,
        slopes=(lambda s: s.d * (s.y * s.y).apply("exp") * (constants.sqrt(constants.pi) / 2),),
        c=each("erfinv"),
        total=False,
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "sin",
        1,
        np.sin,
        slopes=(lambda s: s.d * s.a.apply("cos"),),
        c=each("sin"),
        heavy=True,
        zero="all",
    ),
    PointwiseSpec(
        "cos",
        1,
        np.cos,
        slopes=(lambda s: -(s.d * s.a.apply("sin")),),
        c=each("cos"),
        heavy=True,
    ),
    # the angle of the point (second, first)
    PointwiseSpec(
        "atan2",
        2,
        np.arctan2,
        slopes=(
            lambda s: s.d * s.b * _atan2_scale(s),
            lambda s: s.d * -s.a * _atan2_scale(s),
        ),
        c=each("atan2"),
        heavy=True,
        sign="kept",
    ),
)
