"""vector_power.h against C's pow: errors in ulp, special numbers, the same in all lanes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from gnnc.codegen.openmp.printer import prelude
from gnnc.runtime.cpu import toolchain

from .test_vector_math import MOST, pointer, type_name, widths

RUN = r"""
#define RUN(T, W)                                                                      \
    void run_##T(const float *x, const float *y, float *z, long n, int kernel)         \
    {                                                                                  \
        unsigned before = _mm_getcsr();                                                \
        if (kernel) _mm_setcsr(before | 0x8040);                                       \
        for (long i = 0; i < n; i += W)                                                \
            STORE(T, z + i, pow_##T(LOAD(T, x + i), LOAD(T, y + i)));                  \
        _mm_setcsr(before);                                                            \
    }
void exact(const float *x, const float *y, double *z, long n)
{
    for (long i = 0; i < n; ++i) z[i] = pow(x[i], y[i]);
}
"""
TINY = np.finfo(np.float32).tiny
SPECIAL = (0.0, 1.0, 2.0, 3.0, 0.5, 1.5, np.inf, 1e30, 1e-30, 2.0**24, 2.0**24 - 1, 2.0**25, 7.25)


def library(march: str) -> ctypes.CDLL:
    size = toolchain.vector_bytes(march)
    lines = [f"RUN({type_name('f32', w)}, {w})" for w in widths("f32", size)]
    text = "\n".join([prelude(size), RUN, *lines])
    return toolchain.load(toolchain.compile_source(text, march=march))


def samples() -> tuple[np.ndarray, np.ndarray]:
    """Random bit patterns, numbers and exponents of ordinary size, integers, and special ones with
    all special ones."""
    random, count = np.random.default_rng(5), 40_000
    bits = [random.integers(0, 2**32, count, np.uint32).view(np.float32) for _ in range(2)]
    x = [bits[0], random.uniform(-3, 3, count), np.exp(random.uniform(-10, 10, count))]
    y = [bits[1], random.integers(-9, 10, count), random.uniform(-8, 8, count)]
    special = np.array([*SPECIAL, *(-s for s in SPECIAL), np.nan], np.float32)
    a, b = np.meshgrid(special, special)
    rest = np.full(-a.size % 16, 2.0)
    x, y = [[p.astype(np.float32) for p in (*v, s.ravel(), rest)] for v, s in ((x, a), (y, b))]
    return np.concatenate(x), np.concatenate(y)


def run(code: ctypes.CDLL, width: int, *, kernel: bool) -> np.ndarray:
    x, y = samples()
    z = np.empty_like(x)
    call = getattr(code, f"run_{type_name('f32', width)}")
    call(*map(pointer, (x, y, z)), ctypes.c_long(len(x)), int(kernel))
    return z


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kernel", [False, True])
def test_errors(march: str, kernel: bool):
    code = library(march)
    x, y = samples()
    want = np.empty(len(x))
    code.exact(*map(pointer, (x, y, want)), ctypes.c_long(len(x)))
    z = run(code, widths("f32", toolchain.vector_bytes(march))[-1], kernel=kernel)
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        ulp = np.exp2(np.floor(np.log2(np.maximum(np.abs(want), TINY))) - 23)
        off = np.abs(z - want) / ulp
    off[(z == rounded) | np.isnan(z) & np.isnan(rounded)] = 0
    ordinary = (np.abs(x) >= TINY) | (x == 0)  # subnormal numbers may count as 0
    ordinary &= (np.abs(y) >= TINY) | (y == 0)
    kept = ordinary & ~((np.abs(want) < TINY) & (z == 0))
    worst = int(np.argmax(np.where(kept, np.where(np.isnan(off), np.inf, off), 0)))
    assert off[worst] <= MOST, (x[worst], y[worst], z[worst], want[worst])
    signed = kept & ~np.isnan(rounded)
    np.testing.assert_array_equal(np.signbit(z[signed]), np.signbit(rounded[signed]))


def test_lanes_have_the_bits_of_scalars(march: str):
    code = library(march)
    alone = run(code, 1, kernel=True)
    for w in widths("f32", toolchain.vector_bytes(march))[1:]:
        z = run(code, w, kernel=True)
        differ = (z.view(np.uint32) != alone.view(np.uint32)) & ~(np.isnan(z) & np.isnan(alone))
        assert not differ.any(), w
