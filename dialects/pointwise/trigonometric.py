"""The trigonometric and the hyperbolic functions, and their inverses; tanh is an activation."""

from __future__ import annotations

import numpy as np

from .formulas import Num, Site
from .record import PointwiseSpec
from .spelling import each


def _atan2_scale(s: Site) -> Num:
    """One over the square of the distance, 0 at the origin as in torch."""
    square = s.a * s.a + s.b * s.b
    return (1.0 / square).unless(square.equals(0.0))


RECORDS: tuple[PointwiseSpec, ...] = (
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
    PointwiseSpec(
        "tan",
        1,
        np.tan,
        slopes=(lambda s: s.d * (s.y * s.y + 1.0),),
        c=each("tan"),
        heavy=True,
        zero="all",
    ),
    PointwiseSpec(
        "asin",
        1,
        np.arcsin,
        slopes=(lambda s: s.d * (1.0 - s.a * s.a).apply("rsqrt"),),
        c=each("asin"),
        total=False,
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "acos",
        1,
        np.arccos,
        slopes=(lambda s: -(s.d * (1.0 - s.a * s.a).apply("rsqrt")),),
        c=each("acos"),
        total=False,
        heavy=True,
        sign="never negative",
    ),
    PointwiseSpec(
        "atan",
        1,
        np.arctan,
        slopes=(lambda s: s.d / (s.a * s.a + 1.0),),
        c=each("atan"),
        heavy=True,
        zero="all",
        sign="kept",
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
    PointwiseSpec(
        "sinh",
        1,
        np.sinh,
        slopes=(lambda s: s.d * s.a.apply("cosh"),),
        c=each("sinh"),
        total=False,
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "cosh",
        1,
        np.cosh,
        slopes=(lambda s: s.d * s.a.apply("sinh"),),
        c=each("cosh"),
        total=False,
        heavy=True,
        sign="never negative",
    ),
    PointwiseSpec(
        "asinh",
        1,
        np.arcsinh,
        slopes=(lambda s: s.d * (s.a * s.a + 1.0).apply("rsqrt"),),
        c=each("asinh"),
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "acosh",
        1,
        np.arccosh,
        slopes=(lambda s: s.d * (s.a * s.a - 1.0).apply("rsqrt"),),
        c=each("acosh"),
        total=False,
        heavy=True,
        sign="never negative",
    ),
    PointwiseSpec(
        "atanh",
        1,
        np.arctanh,
        slopes=(lambda s: s.d / (1.0 - s.a * s.a),),
        c=each("atanh"),
        total=False,
        heavy=True,
        zero="all",
        sign="kept",
    ),
)
