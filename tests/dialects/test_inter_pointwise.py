"""The pointwise vocabulary: values, element types, and the claim of being total."""

import math

import numpy as np
import pytest

from gnnc.dialects.pointwise import POINTWISE
from gnnc.dialects.pointwise.meanings import erf

FLOATS = np.array([-1e3, -2.5, -1.0, -0.3, 0.0, 0.3, 1.0, 2.5, 1e3])
INTS = np.array([-7, -2, -1, 0, 1, 2, 7])
BOOLS = np.array([False, True])
PARAMETERS = {"leaky_relu": {"slope": 0.2}, "elu": {"alpha": 1.5}}

EXPECTED = {
    "relu": (lambda x: max(x, 0.0)),
    "leaky_relu": (lambda x: x if x > 0 else 0.2 * x),
    "elu": (lambda x: x if x > 0 else 1.5 * math.expm1(x)),
    "gelu": (lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2)))),
    "gelu_tanh": (
        lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0),
    "softplus": (lambda x: x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))),
    "erf": math.erf,
    "tanh": math.tanh,
    "abs": abs,
    "sign": (lambda x: float(np.sign(x))),
    "floor": (lambda x: float(math.floor(x))),
    "neg": (lambda x: -x),
    "sin": math.sin,
    "cos": math.cos,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_values(name):
    got = POINTWISE[name].function(FLOATS, **PARAMETERS.get(name, {}))
    want = [EXPECTED[name](x) for x in FLOATS]
    assert np.allclose(got, want, rtol=1e-12, atol=1e-15)


def operands(spec, kind):
    values = {"float": FLOATS, "int": INTS, "bool": BOOLS}[kind]
    grids = [g.reshape(-1) for g in np.meshgrid(*[values] * spec.arity)]
    if spec.operands == "where":
        grids[0] = grids[0] > 0
    return grids


KINDS = {
    "float": ["float"],
    "integer": ["int"],
    "number": ["float", "int"],
    "bool": ["bool"],
    "any": ["float", "int", "bool"],
    "where": ["float", "int", "bool"],
}


@pytest.mark.parametrize("name", POINTWISE)
def test_element_types(name):
    """Numbers stay what they are: float64, int64 or bool in, the same out, or bool."""
    spec = POINTWISE[name]
    for kind in KINDS[spec.operands]:
        xs = operands(spec, kind)
        with np.errstate(all="ignore"):
            y = spec.function(*xs, **PARAMETERS.get(name, {}))
        want = np.bool_ if spec.result == "bool" else xs[-1].dtype
        assert y.dtype == want and y.shape == xs[0].shape


@pytest.mark.parametrize("name", [s.name for s in POINTWISE.values() if s.total])
def test_total_functions_stay_finite(name):
    spec = POINTWISE[name]
    kind = KINDS[spec.operands][0]
    y = spec.function(*operands(spec, kind), **PARAMETERS.get(name, {}))  # and without a warning
    assert np.all(np.isfinite(y))


@pytest.mark.parametrize("name", [s.name for s in POINTWISE.values() if not s.total])
def test_the_others_do_not(name):
    """Each has a finite operand where it or its derivative is not: that is why it is listed."""
    spec = POINTWISE[name]
    xs = operands(spec, "float")
    with np.errstate(all="ignore"):
        y = spec.function(*xs)
        slope = [
            (spec.function(*[v + (1e-9 if j == i else 0) for j, v in enumerate(xs)]) - y) / 1e-9
            for i in range(spec.arity)
        ]
    assert not np.all(np.isfinite(y)) or any(np.any(np.abs(s) > 1e4) for s in slope)


def test_rsqrt_at_zero():
    x = np.array([0.0, 4.0])
    with np.errstate(divide="ignore"):
        assert POINTWISE["rsqrt"].function(x).tolist() == [math.inf, 0.5]
        assert POINTWISE["rsqrt"].function(x, zero=7.0).tolist() == [7.0, 0.5]


def test_integer_division_rounds_down():
    a, b = np.array([7, -7, 7, -7, 5]), np.array([2, 2, -2, -2, 0])
    assert POINTWISE["floordiv"].function(a, b).tolist() == [3, -4, -4, 3, 0]
    assert POINTWISE["mod"].function(a, b).tolist() == [1, 1, -1, -1, 0]


def test_erf_of_an_array():
    assert erf(np.array([0.5])).shape == (1,)
