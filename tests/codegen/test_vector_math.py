"""vector_math.h against C's long double: errors in ulp, special numbers, the same in all lanes."""

from __future__ import annotations

import ctypes
import functools

import numpy as np
import pytest

from gnnc.codegen.common.c_types import F32, F64, Piece, pieces
from gnnc.codegen.openmp.c_functions import math
from gnnc.codegen.openmp.printer import prelude
from gnnc.runtime.cpu import toolchain

from .compiled import Case
from .generate import rows
from .shared import program

FUNCTIONS = (
    "exp expm1 log log1p tanh erf sigmoid softplus gelu gelu_tanh"  # in the order of the header
).split()
TYPES = {"f32": (F32, np.float32, np.uint32), "f64": (F64, np.float64, np.uint64)}
MOST = 2.0
"""The error that the header states."""
SEAMS = (1.0, 0.5, 0.625, 0.84375, np.sqrt(0.5), np.sqrt(2.0), np.log(2) / 2)
"""Where one way of computing gives way to another."""
ENDS = (4.0, 6.0, 9.0, 10.3, 13.2, 14.5, 19.0, 20.0, 21.4, 37.6, 40.0, 87.3365, 88.7228, 103.97)
ENDS += (708.3964, 709.7827, 745.13)
"""Beyond one of these a function is constant, linear or no number."""

REFERENCE = r"""
#include <math.h>
typedef long double real;
typedef __float128 wide;
#define exp_of expl
#define expm1_of expm1l
#define log_of logl
#define log1p_of log1pl
#define tanh_of tanhl
#define erf_of erfl
static real sigmoid_of(real x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static real softplus_of(real x) { return x > 20 ? x : log1pl(expl(x)); }
/* Far below 0 even a long double has too few bits for the arguments of erfc and exp. */
static real gelu_of(real x)
{
    if (isinf(x)) return x < 0 ? NAN : x;
    const wide z = -(wide)x * 0.707106781186547524400844362104849039Q;
    const real high = (real)z, low = (real)(z - high);
    return x / 2 * (erfcl(high) - low * expl(-high * high) * 1.12837916709551257390L);
}
static real gelu_tanh_of(real x)
{
    if (isinf(x)) return x < 0 ? NAN : x;
    const wide v = (wide)x * 1.59576912160573071175978423973752747Q * (1 + 0.044715Q * x * x);
    const wide a = v < 0 ? v : -v;
    const real high = (real)a, low = isinf(high) ? 0 : (real)(a - high);
    const real e = expl(high) * (1 + low);
    return v < 0 ? x * e / (1 + e) : x / (1 + e);
}
#define EXACT(f, e, T)                                                                \
    void exact_##f##_##e(const T *x, real *y, long n)                                 \
    {                                                                                 \
        for (long i = 0; i < n; ++i) y[i] = f##_of(x[i]);                             \
    }
"""

RUN = r"""
#define RUN(f, T, E, W)                                                               \
    void run_##f##_##T(const E *x, E *y, long n, int kernel)                          \
    {                                                                                 \
        unsigned before = _mm_getcsr();                                               \
        if (kernel) _mm_setcsr(before | 0x8040);                                      \
        for (long i = 0; i < n; i += W) STORE(T, y + i, f##_##T(LOAD(T, x + i)));     \
        _mm_setcsr(before);                                                           \
    }
"""


def widths(elem: str, vector_bytes: int) -> list[int]:
    """Numbers in a scalar, and in every vector of a vector width."""
    most = vector_bytes // TYPES[elem][0].bytes
    return [1, *(w for w in (2, 4, 8, 16) if w <= most)]


def type_name(elem: str, width: int) -> str:
    return elem if width == 1 else f"{elem}x{width}"


@functools.cache
def reference() -> ctypes.CDLL:
    lines = [f"EXACT({f}, {e}, {c.name})" for f in FUNCTIONS for e, (c, _, _) in TYPES.items()]
    text = "\n".join([REFERENCE, *lines])
    return toolchain.load(toolchain.compile_source(text, march="x86-64"))


def library(march: str) -> ctypes.CDLL:
    """Every function of the header at every width, as loops over arrays."""
    size = toolchain.vector_bytes(march)
    lines = [prelude(size), RUN]
    for elem, (c, _, _) in TYPES.items():
        for w in widths(elem, size):
            lines += [f"RUN({f}, {type_name(elem, w)}, {c.name}, {w})" for f in FUNCTIONS]
    return toolchain.load(toolchain.compile_source("\n".join(lines), march=march))


def run(
    code: ctypes.CDLL, f: str, elem: str, width: int, x: np.ndarray, *, kernel: bool
) -> np.ndarray:
    """f(x), in the mode of kernels (no subnormal numbers) or in the usual one."""
    y = np.empty_like(x)
    call = getattr(code, f"run_{f}_{type_name(elem, width)}")
    call(*map(pointer, (x, y)), ctypes.c_long(len(x)), int(kernel))
    return y


@functools.cache
def exact(f: str, elem: str, count: int) -> np.ndarray:
    """f of the samples as long doubles, the same for every compiler."""
    x = samples(elem, count)
    y = np.empty(len(x), np.longdouble)
    getattr(reference(), f"exact_{f}_{elem}")(*map(pointer, (x, y)), ctypes.c_long(len(x)))
    return y


def pointer(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


@functools.cache
def samples(elem: str, count: int) -> np.ndarray:
    """Random bit patterns, ordinary and small numbers, and the neighbours of special ones."""
    _, dtype, word = TYPES[elem]
    rng = np.random.default_rng(7)
    bits = rng.integers(0, np.iinfo(word).max, count, dtype=word, endpoint=True).view(dtype)
    ordinary = [rng.uniform(-s, s, count // 2) for s in (1, 3, 12, 40, 120, 800)]
    small = rng.choice([-1, 1], count // 2) * np.exp2(rng.uniform(-40, 4, count // 2))
    info = np.finfo(dtype)
    special = np.array([0.0, np.inf, np.nan, info.tiny, info.max, *SEAMS, *ENDS], dtype)
    near = (special.view(word)[:, None] + np.arange(-256, 256).astype(word)).ravel().view(dtype)
    plain = np.concatenate([*ordinary, small]).astype(dtype)
    x = np.concatenate([bits, plain, near, -near])
    return x[: len(x) // 16 * 16].copy()


def errors(f: str, y: np.ndarray, want: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Errors in ulp of the exact result. What the header leaves open counts as none: subnormal
    results that are 0, and subnormal operands taken as 0."""
    info = np.finfo(y.dtype)
    tiny = np.longdouble(info.tiny)
    with np.errstate(all="ignore"):
        rounded = want.astype(y.dtype)
        ulp = np.exp2(np.floor(np.log2(np.maximum(np.abs(want), tiny))) - info.nmant)
        off = np.abs(y.astype(np.longdouble) - want) / ulp
        equal = (y == rounded) & ~np.isfinite(rounded) | np.isnan(y) & np.isnan(want)
        at_zero = {"exp": 1.0, "sigmoid": 0.5, "softplus": np.log(2), "log": -np.inf}.get(f, 0.0)
        flushed = (np.abs(want) < tiny) & (y == 0)
        taken = (np.abs(x) < info.tiny) & (y == y.dtype.type(at_zero))
    off[equal | flushed | taken] = 0
    return np.where(np.isnan(off), np.inf, off).astype(float)


def check_error(code: ctypes.CDLL, f: str, elem: str, width: int, count: int) -> None:
    x = samples(elem, count)
    want = exact(f, elem, count)
    for kernel in (False, True):
        y = run(code, f, elem, width, x, kernel=kernel)
        off = errors(f, y, want, x)
        worst = int(np.argmax(off))
        assert off[worst] <= MOST, (f, elem, kernel, x[worst], y[worst], want[worst], off[worst])


@pytest.mark.parametrize("elem", TYPES)
def test_errors(march: str, elem: str):
    """At most two ulp over the whole range, by the widest vectors."""
    width = widths(elem, toolchain.vector_bytes(march))[-1]
    for f in FUNCTIONS:
        check_error(library(march), f, elem, width, 50_000)


@pytest.mark.long
@pytest.mark.parametrize("elem", TYPES)
def test_errors_densely(march: str, elem: str):
    width = widths(elem, toolchain.vector_bytes(march))[-1]
    for f in FUNCTIONS:
        check_error(library(march), f, elem, width, 2_000_000)


@pytest.mark.parametrize("elem", TYPES)
def test_lanes_have_the_bits_of_scalars(march: str, elem: str):
    """A number has the same result by itself and in every lane of every vector."""
    code, x = library(march), samples(elem, 50_000)
    for f in FUNCTIONS:
        alone = run(code, f, elem, 1, x, kernel=True)
        for w in widths(elem, toolchain.vector_bytes(march))[1:]:
            y = run(code, f, elem, w, x, kernel=True)
            differ = (y.view(TYPES[elem][2]) != alone.view(TYPES[elem][2])) & ~np.isnan(x)
            differ &= ~(np.isnan(y) & np.isnan(alone))
            assert not differ.any(), (f, w, x[differ][:4], y[differ][:4], alone[differ][:4])


INF = np.inf
ODD = ((0, 0), (-0.0, -0.0))
LIMITS = {
    "exp": ((-INF, 0), (-800, 0), (0, 1), (-0.0, 1), (INF, INF)),
    "expm1": (*ODD, (-INF, -1), (-60, -1), (INF, INF)),
    "log": ((-INF, np.nan), (-1, np.nan), (0, -INF), (-0.0, -INF), (1, 0), (INF, INF)),
    "log1p": (*ODD, (-INF, np.nan), (-2, np.nan), (-1, -INF), (INF, INF)),
    "tanh": (*ODD, (-INF, -1), (-30, -1), (30, 1), (INF, 1)),
    "erf": (*ODD, (-INF, -1), (-7, -1), (7, 1), (INF, 1)),
    "sigmoid": ((-INF, 0), (-800, 0), (0, 0.5), (40, 1), (800, 1), (INF, 1)),
    "softplus": ((-INF, 0), (-800, 0), (20.5, 20.5), (800, 800), (INF, INF)),
    "gelu": (*ODD, (-INF, np.nan), (-50, -0.0), (50, 50), (INF, INF)),
    "gelu_tanh": (*ODD, (-INF, np.nan), (-50, -0.0), (50, 50), (INF, INF)),
}
"""Exact values. At -inf gelu is 0 times an infinity, as in torch."""


@pytest.mark.parametrize("elem", TYPES)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_limits(march: str, f: str, elem: str):
    code, dtype = library(march), TYPES[elem][1]
    x, want = np.resize(
        np.array([*LIMITS[f], (np.nan, np.nan)], dtype), (16, len(LIMITS[f]) + 1, 2)
    ).T
    x, want = np.ascontiguousarray(x.ravel()), want.ravel()
    for w in widths(elem, toolchain.vector_bytes(march)):
        y = run(code, f, elem, w, x, kernel=True)
        np.testing.assert_array_equal(y, want, err_msg=f"{f} {w}")
        known = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(y[known]), np.signbit(want[known]), err_msg=f)


T = rows("N", "19", "f32")
EDGES = rows("g", "19", "f32")
MODEL = program(
    f"%x : {T}",
    f"%elu : {T}; %tanh : {T}; %gelu : {T}; %soft : {EDGES}",
    f"""
    %elu = inter.elu %x {{alpha = 1.0}} : {T}
    %tanh = inter.tanh %elu : {T}
    %gelu = inter.gelu %tanh : {T}
    %s = inter.at %g[src], %gelu : {rows("g[src]", "19", "f32")}
    %soft = inter.softmax %s over %g along dst : {EDGES}
    """,
)
"""Rows of 19 numbers are pieces of every width."""


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("openmp")
@pytest.mark.parametrize("variable", [False, True])
def test_a_generated_program(march: str, variable: bool, monkeypatch: pytest.MonkeyPatch):
    """A printed program gives the interpreter's numbers, -march given or from the environment."""
    if variable:
        monkeypatch.setenv("GNNC_MARCH", march)
    size = toolchain.vector_bytes(march)
    case = Case.of(MODEL, "split-phases", vector_bytes=size, march=None if variable else march)
    assert "expm1_f32" in case.program.source and "LANES(f32x4, v" not in case.program.source
    for seed, edges in ((0, 30), (1, 300)):
        case.check(case.values(seed, {"N": 12, "g": edges}), tolerance=2e-6)


def test_every_width_is_printed():
    """The pieces of a row of 19 are those that the header has functions for."""
    assert pieces(19, 16) == [Piece(0, 16), Piece(16, 2), Piece(18, 1)]
    assert math("exp", "x", F32, 16) == "exp_f32x16(x)"
    assert math("exp", "x", F64) == "exp_f64(x)"
