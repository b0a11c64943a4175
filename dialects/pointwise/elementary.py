"""Elementary functions: exponentials and their inverses, and roots."""

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
        "exp2",
        1,
        np.exp2,
        slopes=(lambda s: s.d * s.y * constants.log(2),),
        c=each("exp2"),
        total=False,
        heavy=True,
        sign="never negative",
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
        "log10",
        1,
        np.log10,
        slopes=(lambda s: s.d / (s.a * constants.log(10)),),
        c=each("log10"),
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
)
