"""Products of tiles and sums of outer products: numbers by fibers, registers by ptxas."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from gnnc.codegen.cuda.device_text import device_text
from gnnc.codegen.cuda.tiles import SLAB_BYTES, far_numbers

from .build import on_processor, with_nvcc
from .test_scalars import pointer

CTYPES = {"float": np.float32, "double": np.float64}
GUARD = 12345.0
"""What lies where nothing may be written."""


class Size(NamedTuple):
    """A product of rows [r][l][b][k] and weights [b][k][f], in a layout by permuted strides."""

    t: str
    threads: int
    rows: int
    l: int  # noqa: E741 (as in the header)
    b: int
    k: int
    f: int
    layout: str = "bkf"
    gap: tuple[int, int] = (0, 0)
    """Numbers between two rows of the left operand, and of the right one or the result."""

    @property
    def name(self) -> str:
        shape = f"{self.rows}_{self.l}_{self.b}_{self.k}_{self.f}"
        return f"{self.t}_{self.threads}_{shape}_{self.layout}_{self.gap[0]}_{self.gap[1]}"

    @property
    def strides(self) -> tuple[int, int, int]:
        """Of b, k and f."""
        sizes = {"b": self.b, "k": self.k, "f": self.f}
        steps = {
            d: int(np.prod([sizes[x] for x in self.layout[i + 1 :]]))
            for i, d in enumerate(self.layout)
        }
        return steps["b"], steps["k"], steps["f"]

    @property
    def pitches(self) -> tuple[int, int]:
        left, right = self.l * self.b * self.k, self.l * self.b * self.f
        return left + self.gap[0], right + self.gap[1]

    @property
    def shape(self) -> str:
        return ", ".join(map(str, (self.t, *self[1:7])))

    @property
    def product(self) -> str:
        return ", ".join(map(str, (self.shape, *self.strides, *self.pitches)))

    @property
    def outer(self) -> str:
        return f"OuterTile<{self.shape}, {self.pitches[0]}, {self.pitches[1]}>"


CLOSE = {"float": 1e-6, "double": 1e-14}
"""How near results are to those of doubles: a part of the sum of absolute terms and of the root of
their number."""


SIZES = [
    Size("float", 64, 16, 1, 1, 1, 1),
    Size("float", 64, 16, 1, 1, 16, 7),
    Size("float", 64, 16, 1, 1, 7, 16, "bfk"),
    Size("float", 256, 64, 1, 1, 64, 64),
    Size("float", 256, 64, 1, 1, 64, 64, "bfk", (3, 1)),
    Size("float", 256, 32, 1, 1, 602, 41, "bkf", (1, 0)),
    Size("float", 128, 32, 1, 1, 602, 128, "bfk"),
    Size("float", 128, 8, 3, 4, 5, 6),
    Size("float", 128, 8, 3, 4, 5, 8, "kbf"),
    Size("float", 128, 8, 3, 4, 8, 12, "fbk", (0, 4)),
    Size("float", 96, 20, 1, 8, 16, 16, "kfb", (2, 3)),
    Size("float", 256, 16, 1, 1, 1, 300),
    Size("float", 256, 16, 1, 1, 300, 1),
    Size("float", 32, 4, 1, 1, 33, 17),
    Size("float", 64, 64, 1, 1, 9, 22, "bkf", (0, 2)),
    Size("float", 256, 300, 1, 1, 9, 4),
    Size("float", 128, 16, 1, 1, 130, 260),
    Size("float", 512, 64, 2, 1, 40, 24, "bfk"),
    Size("float", 64, 8, 1, 1, 2, 1100),
    Size("float", 64, 8, 1, 1, 1, 2900),
    Size("double", 64, 16, 1, 1, 1, 7),
    Size("double", 256, 64, 1, 1, 64, 64),
    Size("double", 256, 64, 1, 1, 37, 64, "bfk", (1, 1)),
    Size("double", 128, 8, 3, 4, 5, 6, "fkb"),
    Size("double", 128, 16, 1, 1, 100, 70),
    Size("double", 1024, 1030, 1, 1, 4, 1),
    Size("double", 64, 8, 1, 2, 3, 150),
]
"""Every way of the cut: whole and partial tiles, packs and single numbers, slabs and rows too long
for one, sums in registers and far."""


def function(size: Size) -> str:
    """What runs the product and the sum of one size in a block, with threads in order or not."""
    sb, sk, sf = size.strides
    t = size.t
    return f"""
extern "C" int slab_{size.name}()
{{
    return matmul_slab<{size.product}>();
}}
extern "C" void matmul_{size.name}(
    int rows, const {t} *x, const {t} *w, {t} *y, {t} *slab, int back)
{{
    run_block({size.threads}, back, [=] {{ matmul_tile<{size.product}>(rows, x, w, y, slab); }});
}}
extern "C" void outer_sizes_{size.name}(int *sizes)
{{
    using Tile = {size.outer};
    sizes[0] = Tile::SLAB, sizes[1] = Tile::FAR_NUMBERS;
}}
extern "C" void outer_{size.name}(
    const int *rows, int tiles, const {t} *a, const {t} *c, {t} *to, {t} *slab, {t} *far, int back)
{{
    run_block({size.threads}, back, [=] {{
        {size.outer} tile;
        const {t} *at = a, *ct = c;
        tile.clear(far);
        for (int i = 0; i < tiles; ++i) {{
            tile.add(rows[i], at, ct, slab, far);
            at += rows[i] * {size.pitches[0]}, ct += rows[i] * {size.pitches[1]};
        }}
        tile.store<{sb}, {sk}, {sf}>(to, far);
    }});
}}"""


CUTS = """
using namespace tiles;
template <class T> static const char *cut_fault(int threads, int m, int n, int products)
{
    const Cut c = best_cut<T>(threads, m, n, products);
    const int rows = c.ty * c.tm, columns = c.tx * c.tn + Slab<T>::PACK;
    if (c.tm < 1 || c.tn < 1 || c.depth < 1) return "no cut";
    if (c.ty * c.tx > threads) return "more threads than there are";
    const int left = rounded(rows * row_pitch<T>(c.depth), Slab<T>::PACK);
    if (left + c.depth * columns > Slab<T>::NUMBERS) return "more than the slab";
    if (c.tm * c.tn * sizeof(T) > 128) return "more sums than registers";
    if (c.tm / 2 >= m || c.tn / 2 >= n) return "more than there is";
    if (n > Slab<T>::SUMS * threads) return 0;
    for (int b = 1; b <= Slab<T>::SUMS * threads / n; b = 2 * b + 1) {
        const MicroTiles s = micro_tiles<T>(threads, b, 1, n);
        if (!s.count || s.count * s.tk * s.tf > Slab<T>::SUMS) return "sums without registers";
        if (s.count * threads < b * parts(1, s.tk) * parts(n, s.tf)) return "sums without a thread";
    }
    return 0;
}
extern "C" const char *cut_fault_float(int threads, int m, int n, int products)
{
    return cut_fault<float>(threads, m, n, products);
}
extern "C" const char *cut_fault_double(int threads, int m, int n, int products)
{
    return cut_fault<double>(threads, m, n, products);
}"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    text = "\n".join([device_text(), CUTS, *map(function, SIZES)])
    return on_processor(text, tmp_path_factory.mktemp("products"))


def aligned(count: int, dtype: np.dtype, shift: int = 0) -> np.ndarray:
    """NaN, at a multiple of 16 bytes and `shift` numbers more."""
    room = np.full(count + 64, np.nan, dtype)
    start = -room.ctypes.data % 64 // room.itemsize + shift
    return room[start : start + count]


def rows_of(values: np.ndarray, pitch: int, shift: int) -> np.ndarray:
    """Rows in memory, `pitch` apart, with NaN between them."""
    out = aligned(len(values) * pitch, values.dtype, shift).reshape(len(values), pitch)
    out[:, : values[0].size] = values.reshape(len(values), -1)
    return out


def weights_of(values: np.ndarray, layout: str) -> np.ndarray:
    return np.ascontiguousarray(values.transpose(["bkf".index(d) for d in layout]))


@pytest.mark.parametrize("t", CTYPES)
def test_every_size_has_a_cut(t: str, compiled: ctypes.CDLL):
    fault = getattr(compiled, f"cut_fault_{t}")
    fault.restype = ctypes.c_char_p
    sizes = (1, 2, 3, 7, 8, 31, 64, 65, 255, 602, 1024, 8191, 8192)
    rows = (1, 5, 16, 64, 100, 1024, 4096)
    for size in itertools.product((32, 96, 128, 256, 512, 1024), rows, sizes, sizes):
        assert fault(*size) is None, (size, fault(*size))


@pytest.mark.parametrize("size", SIZES, ids=lambda s: s.name)
def test_products(size: Size, compiled: ctypes.CDLL):
    dtype, rng = np.dtype(CTYPES[size.t]), np.random.default_rng(size.k)
    numbers = getattr(compiled, f"slab_{size.name}")()
    assert 0 < numbers * dtype.itemsize <= SLAB_BYTES
    w = rng.normal(size=(size.b, size.k, size.f)).astype(dtype)
    weights = weights_of(w, size.layout)
    counts = {size.rows, size.rows // 2 + 1, 1, 0}
    for rows, (shift, back) in itertools.product(counts, ((0, 0), (1, 1))):
        x = rng.normal(size=(rows, size.l, size.b, size.k)).astype(dtype)
        left = rows_of(x, size.pitches[0], shift) if rows else x
        slab = aligned(numbers + 8, dtype)
        slab[numbers:] = GUARD
        y = aligned((rows + 1) * size.pitches[1], dtype, shift).reshape(rows + 1, -1)
        y[:] = GUARD
        call = getattr(compiled, f"matmul_{size.name}")
        call(rows, *map(pointer, (left, weights, y, slab)), back)
        width = size.l * size.b * size.f
        got = y[:rows, :width].reshape(rows, size.l, size.b, size.f)
        want = np.einsum("rlbk,bkf->rlbf", x.astype(float), w.astype(float))
        scale = np.einsum("rlbk,bkf->rlbf", abs(x).astype(float), abs(w).astype(float))
        assert (abs(got - want) <= CLOSE[size.t] * scale * np.sqrt(size.k) + 1e-30).all()
        assert compiled.misaligned() == 0
        assert (y[:rows, width:] == GUARD).all() and (y[rows] == GUARD).all()
        assert (slab[numbers:] == GUARD).all()


@pytest.mark.parametrize("size", SIZES, ids=lambda s: s.name)
def test_sums_of_outer_products(size: Size, compiled: ctypes.CDLL):
    dtype, rng = np.dtype(CTYPES[size.t]), np.random.default_rng(size.f)
    sizes = np.zeros(2, np.int32)
    getattr(compiled, f"outer_sizes_{size.name}")(pointer(sizes))
    numbers, far_count = map(int, sizes)
    total = size.b * size.k * size.f
    assert 0 <= numbers * dtype.itemsize <= SLAB_BYTES
    assert far_count == far_numbers(dtype.itemsize, size.threads, total)
    tiles = np.array([size.rows, 1, size.rows // 2, 0, size.rows], np.int32)
    rows = int(tiles.sum())
    a = rng.normal(size=(rows, size.l, size.b, size.k)).astype(dtype)
    c = rng.normal(size=(rows, size.l, size.b, size.f)).astype(dtype)
    want = np.einsum("rlbk,rlbf->bkf", a.astype(float), c.astype(float))
    scale = np.einsum("rlbk,rlbf->bkf", abs(a).astype(float), abs(c).astype(float))
    seen = []
    for back in (0, 1):
        left, right = (rows_of(v, p, back) for v, p in zip((a, c), size.pitches, strict=True))
        slab, far = aligned(numbers + 8, dtype), aligned(far_count + 8, dtype)
        slab[numbers:] = far[far_count:] = GUARD
        to = np.full(total + 1, GUARD, dtype)
        call = getattr(compiled, f"outer_{size.name}")
        call(pointer(tiles), len(tiles), *map(pointer, (left, right, to, slab, far)), back)
        got = to[:total].reshape([(size.b, size.k, size.f)["bkf".index(d)] for d in size.layout])
        got = got.transpose([size.layout.index(d) for d in "bkf"])
        assert (abs(got - want) <= CLOSE[size.t] * scale * np.sqrt(rows * size.l)).all()
        assert to[total] == GUARD and compiled.misaligned() == 0
        assert (slab[numbers:] == GUARD).all() and (far[far_count:] == GUARD).all()
        seen.append(got)
    np.testing.assert_array_equal(*seen)


TYPICAL = [
    Size("float", 256, 64, 1, 1, 16, 16),
    Size("float", 256, 64, 1, 1, 64, 64),
    Size("float", 256, 64, 1, 1, 64, 64, "bfk"),
    Size("float", 256, 64, 1, 1, 16, 128),
    Size("float", 256, 64, 1, 1, 256, 256),
    Size("float", 256, 32, 1, 1, 96, 128),
    Size("float", 256, 32, 1, 1, 602, 128, "bfk"),
    Size("float", 256, 64, 1, 8, 16, 16),
    Size("float", 128, 32, 1, 1, 64, 7),
    Size("double", 256, 64, 1, 1, 64, 64),
    Size("double", 256, 64, 1, 1, 256, 256),
    Size("double", 128, 32, 1, 1, 602, 41),
]


def kernels(size: Size) -> str:
    """A product and a sum of all rows, tile after tile; as a kernel has them."""
    t, (left, right), (sb, sk, sf) = size.t, size.pitches, size.strides
    loop = f"for (int r = {size.rows} * blockIdx.x; r < n; r += {size.rows} * gridDim.x)"
    rows = f"tiles::least({size.rows}, n - r)"
    head = f'extern "C" __global__ void __launch_bounds__({size.threads})'
    slab = f"__shared__ alignas(16) {t} slab[{SLAB_BYTES} / sizeof({t})]"
    return f"""
{head} matmul_{size.name}(int n, const {t} *x, const {t} *w, {t} *y)
{{
    {slab};
    {loop} matmul_tile<{size.product}>({rows}, x + {left} * r, w, y + {right} * r, slab);
}}
{head} outer_{size.name}(int n, const {t} *a, const {t} *c, {t} *to, {t} *far)
{{
    {slab};
    {size.outer} tile;
    tile.clear(far);
    {loop} tile.add({rows}, a + {left} * r, c + {right} * r, slab, far);
    tile.store<{sb}, {sk}, {sf}>(to, far);
}}"""


def test_all_numbers_of_a_thread_are_in_registers(tmp_path: Path):
    found = with_nvcc("\n".join([device_text(), *map(kernels, TYPICAL)]), tmp_path)
    assert len(found) == 2 * len(TYPICAL)
    for name, resources in found.items():
        assert (resources.stack, resources.spilled) == (0, 0), name
        assert resources.registers <= 128, name
