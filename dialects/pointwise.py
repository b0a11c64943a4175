"""The pointwise vocabulary: one plain table that the inter and intra ops, the interpreter and the
printers share, so that a function means the same at every level.

An entry says how many operands a function takes, of which element types, what it gives, which
constants it carries and what it is in NumPy (on float64, int64 and bool arrays).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf as _erf  # pyright: ignore[reportMissingTypeStubs]

Array = NDArray[Any]

OperandKind = Literal["float", "integer", "number", "bool", "any", "where"]
"""Element types an op takes: floats, integers, both (`number`), i1, everything (`any`); `where`
takes (i1, any, the same)."""

ResultKind = Literal["same", "bool"]
"""The element type of the result: that of the (last) operand, or i1."""


@dataclass(frozen=True)
class Parameter:
    """A constant of an op, a double. `required` ones have no default; others may be absent."""

    name: str
    required: bool = True


@dataclass(frozen=True)
class PointwiseSpec:
    """One function of the vocabulary.

    `total`: finite operands give a finite result with a finite derivative, so the op may be
    computed on stored rows that nothing reads (the trait `Total`). `function` takes the operand
    arrays in order and the parameters by name.
    """

    name: str
    arity: int
    function: Callable[..., Array]
    operands: OperandKind = "float"
    result: ResultKind = "same"
    total: bool = True
    parameters: tuple[Parameter, ...] = ()

    @property
    def class_name(self) -> str:
        """The name of the op's Python class: `leaky_relu` is LeakyReluOp."""
        return "".join(word.capitalize() for word in self.name.split("_")) + "Op"


def erf(x: Array) -> Array:
    """The error function, elementwise."""
    return np.asarray(_erf(x))


def _rsqrt(x: Array, zero: float | None = None) -> Array:
    y = 1.0 / np.sqrt(x)
    return y if zero is None else np.where(x == 0, zero, y)


def _leaky_relu(x: Array, slope: float) -> Array:
    return np.where(x > 0, x, slope * x)


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / np.sqrt(2.0)))


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))  # at most 1: no overflow on either side
    return np.where(x >= 0, 1.0, e) / (1 + e)


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0.0)


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _floordiv(a: Array, b: Array) -> Array:
    return np.floor_divide(a, np.where(b == 0, 1, b)) * (b != 0)


def _mod(a: Array, b: Array) -> Array:
    return np.mod(a, np.where(b == 0, 1, b)) * (b != 0)


_SPECS: tuple[PointwiseSpec, ...] = (
    PointwiseSpec("add", 2, np.add, "number"),
    PointwiseSpec("sub", 2, np.subtract, "number"),
    PointwiseSpec("mul", 2, np.multiply, "number"),
    PointwiseSpec("div", 2, np.divide, total=False),
    PointwiseSpec("neg", 1, np.negative, "number"),
    PointwiseSpec("exp", 1, np.exp, total=False),
    PointwiseSpec("log", 1, np.log, total=False),
    PointwiseSpec("log1p", 1, np.log1p, total=False),
    PointwiseSpec("expm1", 1, np.expm1, total=False),
    PointwiseSpec("sqrt", 1, np.sqrt, total=False),
    # `zero` is the value at x == 0, in place of an infinity (degree normalisation)
    PointwiseSpec("rsqrt", 1, _rsqrt, total=False, parameters=(Parameter("zero", required=False),)),
    PointwiseSpec("pow", 2, np.power, total=False),
    PointwiseSpec("abs", 1, np.abs, "number"),
    PointwiseSpec("sign", 1, np.sign, "number"),
    PointwiseSpec("relu", 1, _relu, "number"),
    PointwiseSpec("leaky_relu", 1, _leaky_relu, parameters=(Parameter("slope"),)),
    PointwiseSpec("elu", 1, _elu, parameters=(Parameter("alpha"),)),
    PointwiseSpec("gelu", 1, _gelu),
    PointwiseSpec("gelu_tanh", 1, _gelu_tanh),
    PointwiseSpec("erf", 1, erf),
    PointwiseSpec("tanh", 1, np.tanh),
    PointwiseSpec("sigmoid", 1, _sigmoid),
    PointwiseSpec("softplus", 1, _softplus),
    PointwiseSpec("sin", 1, np.sin),
    PointwiseSpec("cos", 1, np.cos),
    PointwiseSpec("floor", 1, np.floor),
    PointwiseSpec("maximum", 2, np.maximum, "number"),
    PointwiseSpec("minimum", 2, np.minimum, "number"),
    PointwiseSpec("eq", 2, np.equal, "any", "bool"),
    PointwiseSpec("ne", 2, np.not_equal, "any", "bool"),
    PointwiseSpec("lt", 2, np.less, "number", "bool"),
    PointwiseSpec("le", 2, np.less_equal, "number", "bool"),
    PointwiseSpec("gt", 2, np.greater, "number", "bool"),
    PointwiseSpec("ge", 2, np.greater_equal, "number", "bool"),
    PointwiseSpec("logical_and", 2, np.logical_and, "bool"),
    PointwiseSpec("logical_or", 2, np.logical_or, "bool"),
    PointwiseSpec("logical_not", 1, np.logical_not, "bool"),
    PointwiseSpec("where", 3, np.where, "where"),
    # rounded towards minus infinity, as Python and torch do; dividing by 0 gives 0
    PointwiseSpec("floordiv", 2, _floordiv, "integer"),
    PointwiseSpec("mod", 2, _mod, "integer"),
)

POINTWISE: dict[str, PointwiseSpec] = {spec.name: spec for spec in _SPECS}
"""Every pointwise function by name, in a fixed order."""
