"""Products of tiles and sums of outer products: their numbers on fibers, their registers by ptxas."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from gnnc.codegen.cuda.device_text import device_text

from .build import on_processor, with_nvcc
from .test_scalars import pointer

CTYPES = {"float": np.float32, "double": np.float64}
GUARD = 12345.0
"""What lies where nothing may be written."""
SLAB_BYTES = 16 << 10


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


def check(size: Size, elem: np.dtype) -> float:
    """How near results are to those of doubles, a part of the sum of absolute terms."""
    return 1e-6 if elem == np.float32 else 1e-14


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
extern "C" void matmul_{size.name}(int rows, const {t} *x, const {t} *w, {t} *y, {t} *slab, int back)
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


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    text = "\n".join([device_text(), *map(function, SIZES)])
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


@pytest.mark.parametrize("size", SIZES, ids=lambda s: s.name)
def test_products(size: Size, compiled: ctypes.CDLL):
    dtype, rng = np.dtype(CTYPES[size.t]), np.random.default_rng(size.k)
    numbers = getattr(compiled, f"slab_{size.name}")()
    assert 0 < numbers * dtype.itemsize <= SLAB_BYTES
    w = rng.normal(size=(size.b, size.k, size.f)).astype(dtype)
    weights = weights_of(w, size.layout)
    for rows, (shift, back) in itertools.product(
        {size.rows, size.rows // 2 + 1, 1, 0}, ((0, 0), (1, 1))
    ):
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
        close = check(size, dtype)
        want = np.einsum("rlbk,bkf->rlbf", x.astype(float), w.astype(float))
        scale = np.einsum("rlbk,bkf->rlbf", abs(x).astype(float), abs(w).astype(float))
        assert (abs(got - want) <= close * scale * np.sqrt(size.k) + 1e-30).all()
        assert (y[:rows, width:] == GUARD).all() and (y[rows] == GUARD).all()
        assert (slab[numbers:] == GUARD).all()


@pytest.mark.parametrize("size", SIZES, ids=lambda s: s.name)
def test_sums_of_outer_products(size: Size, compiled: ctypes.CDLL):
    dtype, rng = np.dtype(CTYPES[size.t]), np.random.default_rng(size.f)
    sizes = np.zeros(2, np.int32)
    getattr(compiled, f"outer_sizes_{size.name}")(pointer(sizes))
    numbers, far_numbers = map(int, sizes)
    total = size.b * size.k * size.f
    assert 0 <= numbers * dtype.itemsize <= SLAB_BYTES
    assert far_numbers == (total if total * dtype.itemsize > 192 * size.threads else 0)
    tiles = np.array([size.rows, 1, size.rows // 2, 0, size.rows], np.int32)
    rows = int(tiles.sum())
    a = rng.normal(size=(rows, size.l, size.b, size.k)).astype(dtype)
    c = rng.normal(size=(rows, size.l, size.b, size.f)).astype(dtype)
    want = np.einsum("rlbk,rlbf->bkf", a.astype(float), c.astype(float))
    scale = np.einsum("rlbk,rlbf->bkf", abs(a).astype(float), abs(c).astype(float))
    seen = []
    for back in (0, 1):
        left, right = (rows_of(v, p, back) for v, p in zip((a, c), size.pitches, strict=True))
        slab, far = aligned(numbers + 8, dtype), aligned(far_numbers + 8, dtype)
        slab[numbers:] = far[far_numbers:] = GUARD
        to = np.full(total + 1, GUARD, dtype)
        call = getattr(compiled, f"outer_{size.name}")
        call(pointer(tiles), len(tiles), *map(pointer, (left, right, to, slab, far)), back)
        got = to[:total].reshape([(size.b, size.k, size.f)["bkf".index(d)] for d in size.layout])
        got = got.transpose([size.layout.index(d) for d in "bkf"])
        assert (abs(got - want) <= check(size, dtype) * scale * np.sqrt(rows * size.l)).all()
        assert to[total] == GUARD
        assert (slab[numbers:] == GUARD).all() and (far[far_numbers:] == GUARD).all()
        seen.append(got)
    np.testing.assert_array_equal(*seen)
