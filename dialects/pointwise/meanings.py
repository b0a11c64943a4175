"""The functions of the vocabulary in NumPy, on float64, int64 and bool arrays, where NumPy has none
of that meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def erf(x: Array) -> Array:
    """The error function, elementwise."""
    return _special("erf", x)


def erfinv(x: Array) -> Array:
    """The number whose error function is x."""
    return _special("erfinv", x)


def _special(name: str, x: Array) -> Array:
    """A function of SciPy's, which takes a compilation longer to import than most programs to
    lower, and which few need: those that are interpreted, or fold such a constant."""
    from scipy import special  # pyright: ignore[reportMissingTypeStubs]

    return np.asarray(getattr(special, name)(x))


def rsqrt(x: Array, zero: float | None = None) -> Array:
    y = 1.0 / np.sqrt(x)
    return y if zero is None else np.where(x == 0, zero, y)


def lerp(a: Array, b: Array, weight: Array) -> Array:
    """a + weight (b - a), from the nearer end as in torch."""
    step = b - a
    return np.where(np.abs(weight) < 0.5, a + weight * step, b - step * (1 - weight))


def leaky_relu(x: Array, slope: float) -> Array:
    return np.where(x > 0, x, slope * x)


def elu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / np.sqrt(2.0)))


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))  # at most 1: no overflow on either side
    return np.where(x >= 0, 1.0, e) / (1 + e)


def softplus(x: Array) -> Array:
    return np.logaddexp(x, 0.0)


def sign(x: Array) -> Array:
    """1, 0 or -1; 0 of NaN, as torch has it."""
    return np.asarray((x > 0).astype(x.dtype) - (x < 0).astype(x.dtype))


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def floordiv(a: Array, b: Array) -> Array:
    return np.floor_divide(a, np.where(b == 0, 1, b)) * (b != 0)


def mod(a: Array, b: Array) -> Array:
    return np.mod(a, np.where(b == 0, 1, b)) * (b != 0)
