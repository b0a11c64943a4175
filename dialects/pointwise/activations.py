"""Activations. Where one has a kink its slope there is torch's: 0 for relu, `slope` for
leaky_relu. So it is at NaN, where relu passes its cotangent on."""

from __future__ import annotations

import math as constants

import numpy as np

from . import meanings
from .formulas import Num, Site
from .record import Parameter, PointwiseSpec
from .spelling import Spelling, math


def _leaky_relu_slope(s: Site) -> Num:
    slope = s.parameters["slope"]
    # from the result where the function keeps the sign, so that the operand need not be stored
    positive = (s.y if slope >= 0 else s.a) > 0.0
    # one product, and not a choice of two: only d is a value that readers may have to share
    return s.d * s.factor(positive, slope)


def _elu_slope(s: Site) -> Num:
    """From the operand, as torch: alpha + y is rounding where y comes close to -alpha."""
    return s.d.where(s.a > 0.0, s.d * (s.decay(s.a) * s.parameters["alpha"]))


def _gelu_slope(s: Site) -> Num:
    cdf = (s.a * constants.sqrt(0.5)).apply("erf") * 0.5 + 0.5
    density = s.decay(s.a * s.a * -0.5) * (1 / constants.sqrt(2 * constants.pi))
    return s.d * (cdf + s.a * density)


def _gelu_tanh_slope(s: Site) -> Num:
    scale, cubic = constants.sqrt(2 / constants.pi), 0.044715
    square = s.a * s.a
    t = (s.a * (square * (scale * cubic) + scale)).apply("tanh")
    inner = square * (3 * scale * cubic) + scale
    return s.d * ((t + 1.0) * 0.5 + s.a * (1.0 - t * t) * inner * 0.5)


def _relu(s: Spelling) -> str:
    return s.above(s.number(0), s.a)


def _leaky_relu(s: Spelling) -> str:
    slope = s.parameters["slope"]
    below = f"({s.number(slope)} * {s.a})"
    if 0 < slope <= 1:  # no branch, which scores of edges would often take the other way
        return s.above(s.a, below)
    return s.select(f"({s.a} > {s.number(0)})", s.a, below)


def _elu(s: Spelling) -> str:
    below = f"({s.number(s.parameters['alpha'])} * {s.math('expm1', s.a)})"
    return s.select(f"({s.a} < {s.number(0)})", below, s.a)


RECORDS: tuple[PointwiseSpec, ...] = (
    PointwiseSpec(
        "relu",
        1,
        meanings.relu,
        slopes=(lambda s: s.d.unless(s.y <= 0.0),),
        c=_relu,
        operands="number",
        zero="all",
        sign="never negative",
        idempotent=True,
    ),
    PointwiseSpec(
        "leaky_relu",
        1,
        meanings.leaky_relu,
        slopes=(_leaky_relu_slope,),
        c=_leaky_relu,
        parameters=(Parameter("slope"),),
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "elu",
        1,
        meanings.elu,
        slopes=(_elu_slope,),
        c=_elu,
        parameters=(Parameter("alpha"),),
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "gelu",
        1,
        meanings.gelu,
        slopes=(_gelu_slope,),
        c=math("gelu"),
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "gelu_tanh",
        1,
        meanings.gelu_tanh,
        slopes=(_gelu_tanh_slope,),
        c=math("gelu_tanh"),
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "tanh",
        1,
        np.tanh,
        slopes=(lambda s: s.d * (1.0 - s.y * s.y),),
        c=math("tanh"),
        heavy=True,
        zero="all",
        sign="kept",
    ),
    PointwiseSpec(
        "sigmoid",
        1,
        meanings.sigmoid,
        slopes=(lambda s: s.d * s.y * (1.0 - s.y),),
        c=math("sigmoid"),
        heavy=True,
        sign="never negative",
    ),
    PointwiseSpec(
        "softplus",
        1,
        meanings.softplus,
        slopes=(lambda s: s.d * s.a.apply("sigmoid"),),
        c=math("softplus"),
        heavy=True,
        sign="never negative",
    ),
)
