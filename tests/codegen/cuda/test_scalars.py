"""Every pointwise function of single numbers in CUDA's spelling means what its record says."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special
from xdsl.dialects.builtin import f32, f64, i1, i32, i64

from gnnc.codegen.common.c_types import CType, ctype
from gnnc.codegen.common.scalars import scalar
from gnnc.codegen.cuda.device_text import device_text
from gnnc.dialects.meaning.philox import dropout
from gnnc.dialects.pointwise import POINTWISE

from ..generate import POSITIVE
from ..test_pointwise import SPECIAL
from .build import on_processor, with_nvcc

ELEMENTS = {"f32": f32, "f64": f64, "i32": i32, "i64": i64, "i1": i1}
NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i1": np.uint8}
WIDE = {"f": np.float64, "i": np.int64, "u": np.bool_}
"""What the interpreter computes in, by NumPy's kind of what is stored."""
TAKEN = {
    "float": ("f32", "f64"),
    "integer": ("i32", "i64"),
    "number": ("f32", "f64", "i32", "i64"),
    "bool": ("i1",),
    "any": tuple(ELEMENTS),
    "where": tuple(ELEMENTS),
}
PARAMETERS = {"leaky_relu": {"slope": 0.2}, "elu": {"alpha": 0.7}}
P = 0.3


class Function(NamedTuple):
    """One function of the vocabulary for one element type."""

    name: str
    elem: str
    parameters: dict[str, float]

    @property
    def symbol(self) -> str:
        return "_".join([self.name, self.elem, *self.parameters])

    @property
    def operands(self) -> tuple[str, ...]:
        """Their element types."""
        if self.name == "where":
            return ("i1", self.elem, self.elem)
        return (self.elem,) * POINTWISE[self.name].arity

    @property
    def result(self) -> str:
        return "i1" if POINTWISE[self.name].result == "bool" else self.elem

    def assignment(self) -> str:
        c = ctype(ELEMENTS[self.elem])
        xs = [f"x{k}[i]" for k in range(len(self.operands))]
        return f"y[i] = {scalar(self.name, xs, c, self.parameters)};"

    def pointers(self) -> str:
        xs = [f"const {memory(e)} *x{k}" for k, e in enumerate(self.operands)]
        return ", ".join([*xs, f"{memory(self.result)} *y"])

    def meaning(self, xs: list[np.ndarray]) -> np.ndarray:
        wide = [x.astype(WIDE[x.dtype.kind]) for x in xs]
        with np.errstate(all="ignore"):
            y = POINTWISE[self.name].function(*wide, **self.parameters)
            return np.asarray(y).astype(NUMPY[self.result])


def memory(elem: str) -> str:
    c: CType = ctype(ELEMENTS[elem])
    return c.memory


FUNCTIONS = [
    Function(name, elem, PARAMETERS.get(name, {}))
    for name, spec in POINTWISE.items()
    for elem in TAKEN[spec.operands]
]
FUNCTIONS += [Function("rsqrt", elem, {"zero": 3.0}) for elem in ("f32", "f64")]

DROPOUTS = "".join(
    f"""
extern "C" void drop_{elem}(const {t} *x, int64_t row, int64_t key, {t} *y, int64_t n)
{{
    for (int64_t i = 0; i < n; ++i) y[i] = dropout{s}(x[i], i, row, 5, key, {P});
}}"""
    for elem, t, s in (("f32", "float", "f"), ("f64", "double", ""))
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    loops = [
        f'extern "C" void {f.symbol}({f.pointers()}, int64_t n)\n'
        f"{{\n    for (int64_t i = 0; i < n; ++i) {f.assignment()}\n}}"
        for f in FUNCTIONS
    ]
    text = "\n".join([device_text(), *loops, DROPOUTS])
    return on_processor(text, tmp_path_factory.mktemp("scalars"))


def computed(code: ctypes.CDLL, f: Function, xs: list[np.ndarray]) -> np.ndarray:
    y = np.empty(len(xs[0]), NUMPY[f.result])
    getattr(code, f.symbol)(*map(pointer, (*xs, y)), ctypes.c_int64(len(y)))
    return y


def pointer(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def random_numbers(elem: str, count: int, rng: np.random.Generator) -> np.ndarray:
    if elem == "i1":
        return rng.integers(0, 2, count).astype(np.uint8)
    if elem.startswith("i"):
        return rng.integers(-20, 20, count).astype(NUMPY[elem])
    return (rng.normal(size=count) * rng.choice([0.3, 1, 4], count)).astype(NUMPY[elem])


def special_numbers(elem: str) -> np.ndarray:
    if elem == "i1":
        return np.array([0, 1], np.uint8)
    extra = [-(2**31), 2**31 - 1] if elem == "i32" else []
    return np.array([*SPECIAL[elem], *extra], NUMPY[elem])


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.symbol)
def test_means_what_its_record_says(f: Function, compiled: ctypes.CDLL):
    rng = np.random.default_rng(3)
    ordinary = [random_numbers(e, 3000, rng) for e in f.operands]
    if f.name in POSITIVE:
        ordinary[0] = np.abs(ordinary[0]) + NUMPY[f.elem](0.3)
    grid = np.meshgrid(*(special_numbers(e) for e in f.operands))
    for xs in (ordinary, [np.ascontiguousarray(x.ravel()) for x in grid]):
        close, least = (1e-5, 1e-6) if f.elem == "f32" else (1e-9, 1e-9)
        got, want = computed(compiled, f, xs), f.meaning(xs)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(
                got, want, rtol=close, atol=1e-6 if f.elem == "f32" else 1e-9
            )
        else:
            np.testing.assert_array_equal(got, want)


EXACT = {
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(x, 0),
    "gelu": lambda x: x * special.ndtr(x),
    "gelu_tanh": lambda x: x * special.expit(np.sqrt(8 / np.pi) * (x + 0.044715 * x**3)),
    "erfinv": special.erfinv,
}


@pytest.mark.parametrize("name", EXACT)
def test_floats_are_accurate_to_the_last_number(name: str, compiled: ctypes.CDLL):
    """They are computed without doubles. Below 1e-36 a factor may have lost bits."""
    x = np.concatenate([np.linspace(-20, 20, 200001), np.geomspace(1e-30, 1, 5000)])
    x = np.concatenate([x, -np.geomspace(1e-30, 1, 5000)]).astype(np.float32)
    if name == "erfinv":
        x = x[np.abs(x) < 1]
    got = computed(compiled, Function(name, "f32", {}), [x])
    want = EXACT[name](x.astype(np.float64))
    seen = np.abs(want) > 1e-36
    error = np.abs(got.astype(np.float64) - want)[seen] / np.abs(want)[seen]
    assert error.max() < 4 * 2.0**-23, (x[seen][error.argmax()], error.max())


@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize(("row", "key"), [(0, 0), (7, -(2**40) + 7), (2**35 + 3, 2**63 - 1)])
def test_dropout_drops_the_same_numbers(elem: str, row: int, key: int, compiled: ctypes.CDLL):
    x = np.arange(1, 302, dtype=NUMPY[elem])
    y = np.empty_like(x)
    call = getattr(compiled, f"drop_{elem}")
    call(pointer(x), ctypes.c_int64(row), ctypes.c_int64(key), pointer(y), ctypes.c_int64(len(x)))
    want = dropout(x[None].astype(np.float64), key, 5, P, [row])[0]
    assert 0.5 < (want != 0).mean() < 0.9
    np.testing.assert_array_equal(y == 0, want == 0)
    np.testing.assert_allclose(y, want, rtol=1e-6)


def test_kernels_compile(tmp_path: Path):
    """Every function, and dropout, which needs no array of a thread's own."""
    kernels = [
        f'extern "C" __global__ void {f.symbol}({f.pointers()})\n'
        f"{{\n    const int i = threadIdx.x;\n    {f.assignment()}\n}}"
        for f in FUNCTIONS
    ]
    kernels.append(
        'extern "C" __global__ void drop(float *x, int64_t row, int64_t key)\n'
        f"{{\n    x[threadIdx.x] = dropoutf(x[threadIdx.x], threadIdx.x, row, 5, key, {P});\n}}"
    )
    found = with_nvcc("\n".join([device_text(), *kernels]), tmp_path)
    assert set(found) == {f.symbol for f in FUNCTIONS} | {"drop"}
    assert found["drop"].stack == 0
