"""Every fact of every record, held against the function's meaning in NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from gnnc.dialects.pointwise import POINTWISE
from gnnc.dialects.pointwise.formulas import Num, Site
from gnnc.runtime.sets.row_steps import POINTWISE as STEPS

PARAMETERS = {"leaky_relu": {"slope": 0.2}, "elu": {"alpha": 1.5}}
NUMBERS = np.array([-7.3, -1.0, -0.4, 0.0, 0.3, 0.9, 1.0, 2.5, 6.1])
DOMAINS = {"log": (0, 9), "log2": (0, 9), "sqrt": (0, 9), "rsqrt": (0, 9), "pow": (0, 3)}
DOMAINS |= {"log1p": (-0.9, 9), "erfinv": (-0.9, 0.9), "log10": (0, 9), "tan": (-1.5, 1.5)}
DOMAINS |= dict.fromkeys(("asin", "acos", "atanh"), (-0.9, 0.9)) | {"acosh": (1.1, 9)}
FLOATS = [s for s in POINTWISE.values() if s.operands in ("float", "number")]


@dataclass(frozen=True)
class Plain(Num):
    """A number of a formula that is an array."""

    array: np.ndarray

    def apply(self, name, *others, **parameters):
        others = [o.array if isinstance(o, Plain) else np.float64(o) for o in others]
        with np.errstate(all="ignore"):
            return Plain(POINTWISE[name].function(self.array, *others, **parameters))

    def number(self, x):
        return Plain(np.float64(x))


def value(spec, *xs):
    with np.errstate(all="ignore"):
        return spec.function(*xs, **PARAMETERS.get(spec.name, {}))


def points(spec, seed=0):
    """Operands at which a function is smooth."""
    low, high = DOMAINS.get(spec.name, (-3, 3))
    rng = np.random.default_rng(seed)
    return [rng.uniform(low + 0.05 * (low >= 0), high, 50) for _ in range(spec.arity)]


def named(specs):
    return [pytest.param(s, id=s.name) for s in specs]


@pytest.mark.parametrize("spec", named(FLOATS))
def test_slopes(spec):
    """A slope is that of the function, from both sides; None is 0."""
    xs = points(spec)
    y = value(spec, *xs)
    plain = [Plain(x) for x in xs]
    site = Site(
        Plain(np.ones(50)),
        Plain(y),
        tuple(plain),
        PARAMETERS.get(spec.name, {}),
        (None,) * spec.arity,
    )
    assert len(spec.slopes) == spec.arity
    if spec.result == "bool":
        assert spec.slopes == (None, None)
        return
    step = 1e-6
    for i, rule in enumerate(spec.slopes):
        up, down = ([x + e * (j == i) for j, x in enumerate(xs)] for e in (step, -step))
        want = (value(spec, *up) - value(spec, *down)) / (2 * step)
        slope = None if rule is None else rule(site)
        got = np.zeros(50) if slope is None else slope.array
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_where_passes_on_what_was_chosen():
    mask = np.array([True, False])
    site = Site(Plain(np.array([2.0, 3.0])), Plain(mask), (Plain(mask),) * 3, {}, (None,) * 3)
    nothing, chosen, other = POINTWISE["where"].slopes
    assert nothing is None
    assert chosen(site).array.tolist() == [2, 0] and other(site).array.tolist() == [0, 3]


@pytest.mark.parametrize("spec", named(s for s in FLOATS if s.zero != "never"))
def test_zero(spec):
    """Also of integers."""
    for zeros in np.ndindex(*(2,) * spec.arity):
        if spec.zero_with(tuple(map(bool, zeros))):
            xs = [np.zeros(50) if z else x for z, x in zip(zeros, points(spec), strict=True)]
            assert np.all(value(spec, *xs) == 0)


@pytest.mark.parametrize("spec", named(s for s in FLOATS if s.result == "same"))
def test_sign(spec):
    grids = [g.reshape(-1) for g in np.meshgrid(*[NUMBERS] * spec.arity)]
    y, known = value(spec, *grids), [x >= 0 for x in grids]
    where = {
        "any": np.zeros(y.shape, bool),
        "kept": np.logical_and.reduce(known),
        "kept by one": np.logical_or.reduce(known),
        "never negative": np.ones(y.shape, bool),
    }[spec.sign]
    defined = ~np.isnan(y)
    assert np.all(y[where & defined] >= 0)


@pytest.mark.parametrize("spec", named(FLOATS))
def test_algebra(spec):
    y = NUMBERS
    for i, neutral in enumerate(spec.neutral):
        if neutral is not None:
            xs = [y, y]
            xs[i] = np.full(y.shape, float(neutral))
            assert np.array_equal(value(spec, *xs), y)
    if spec.idempotent:
        assert np.array_equal(value(spec, value(spec, y)), value(spec, y))
    if spec.involution:
        assert np.array_equal(value(spec, value(spec, y)), y)
    if spec.selective:
        assert np.array_equal(value(spec, y, y), y)
    if spec.signs is not None:
        xs = points(spec)
        total = sum(s * x for s, x in zip(spec.signs, xs, strict=True))
        assert np.allclose(value(spec, *xs), total)


@pytest.mark.parametrize("spec", named(s for s in FLOATS if s.smooth_above_zero is not None))
def test_smooth_above_zero(spec):
    xs = points(spec)
    xs[spec.smooth_above_zero] = np.abs(xs[spec.smooth_above_zero]) + 0.1
    assert np.all(np.isfinite(value(spec, *xs)))
    xs[spec.smooth_above_zero] = np.zeros(50)
    assert not spec.finite_at_zero or np.all(np.isfinite(value(spec, *xs)))


def test_functions_of_truth_values():
    flags = [g.reshape(-1) for g in np.meshgrid([False, True], [False, True])]
    for spec in POINTWISE.values():
        if spec.of_booleans is not None:
            got = POINTWISE[spec.of_booleans].function(*flags)
            assert np.array_equal(got, spec.function(*flags).astype(bool)), spec.name


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_the_runtime_mean_the_same(name):
    """The runtime knows no dialect, so what sets may depend on stands there a second time."""
    spec = POINTWISE[name]
    small = np.array([-7, -2, -1, 0, 1, 2, 7])
    kinds = {"bool": [small > 0], "integer": [small], "float": [small / 2]}
    for x in kinds.get(spec.operands, [small, small / 2]):
        grids = [g.reshape(-1) for g in np.meshgrid(*[x] * spec.arity)]
        if spec.operands == "where":
            grids[0] = grids[0] > 0
        if spec.operands == "integer":
            grids = [g[grids[-1] != 0] for g in grids]
        with np.errstate(all="ignore"):
            got, want = STEPS[name](*grids), value(replace(spec), *grids)
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=True)
