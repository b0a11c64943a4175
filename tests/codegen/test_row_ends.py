"""The last vector of a row that does not fill it: values, and nothing beside the row is touched."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gnnc.codegen.common.c_types import F32, F64, I1, CType, Piece, Vectors, pieces
from gnnc.codegen.openmp.printer import prelude
from gnnc.codegen.openmp.row_values import keep, load, load_mask, store
from gnnc.runtime.cpu import toolchain

from .compiled import FORMATS, TRAIN, Case
from .generate import rows
from .shared import program

DTYPES = {F32: np.float32, F64: np.float64, I1: np.uint8}


def ends(most: int) -> list[Piece]:
    """Every last piece of a row that has dead lanes, at the row's beginning."""
    found = {pieces(n, most, masked=True)[-1] for n in range(1, most)}
    return sorted((p for p in found if p.dead), key=lambda p: p.count)


def name(c: CType, p: Piece, what: str) -> str:
    return f"{what}_{c.bytes}_{p.count}"


def functions(vector_bytes: int) -> str:
    """Copies of a piece, what a fold reads of it, and copies of truth values beside numbers."""
    text = [prelude(vector_bytes)]
    for c in (F32, F64):
        for p in ends(vector_bytes // c.bytes):
            of = f"const {c.name} *x, {c.name} *y"
            text += [
                f"void {name(c, p, 'copy')}({of}) {{ {store(c, p, 'y', load(c, p, 'x'))} }}",
                f"void {name(c, p, 'kept')}({of}) {{ {p.type(c)} v = {load(c, p, 'x')};",
                f"STORE({p.type(c)}, y, {keep(c, p, 'v + 1', f'SPLAT({p.type(c)}, 5)')}); }}",
                f"void {name(c, p, 'truth')}(const uint8_t *x, uint8_t *y) {{",
                f"{store(I1, p, 'y', load_mask(c, p, 'x'))} }}",
            ]
    return "\n".join(text)


class Fence:
    """Memory that ends, and begins, at pages that nobody may touch."""

    def __init__(self) -> None:
        self.room = mmap.mmap(-1, 3 * mmap.PAGESIZE)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(self.room))
        libc = ctypes.CDLL(None)
        for page in (0, 2):
            at = ctypes.c_void_p(begin + page * mmap.PAGESIZE)
            assert libc.mprotect(at, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0

    def row(self, count: int, dtype: Any, last: bool) -> NDArray[Any]:
        """`count` numbers against the page behind, or against the one before."""
        size = count * np.dtype(dtype).itemsize
        at = 2 * mmap.PAGESIZE - size if last else mmap.PAGESIZE
        return np.frombuffer(self.room, dtype, count, at)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_nothing_beside_a_row_is_touched(march: str, size: int) -> None:
    """Also where vectors are longer than the machine's."""
    code = toolchain.load(toolchain.compile_source(functions(size), march=march))
    fences = Fence(), Fence()
    for c in (F32, F64):
        for p in ends(size // c.bytes):
            for what, kind in (("copy", c), ("truth", I1)):
                for last in (True, False):
                    x, y = (f.row(p.count, DTYPES[kind], last) for f in fences)
                    x[:] = np.arange(p.count) % (2 if kind is I1 else 99)
                    y[:] = 9
                    getattr(code, name(c, p, what))(*map(pointer, (x, y)))
                    np.testing.assert_array_equal(x, y)
            x, y = fences[0].row(p.count, DTYPES[c], last=True), np.zeros(p.width, DTYPES[c])
            x[:] = 1 + np.arange(p.count)
            getattr(code, name(c, p, "kept"))(*map(pointer, (x, y)))
            np.testing.assert_array_equal(y, [*(x + 1), *[5] * p.dead])


def pointer(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def test_the_rest_of_a_row_is_one_vector() -> None:
    assert pieces(7, 16, masked=True) == [Piece(0, 8, 1)]
    assert pieces(47, 16, masked=True) == [Piece(0, 16), Piece(16, 16), Piece(32, 16, 1)]
    assert pieces(40, 16, masked=True) == [Piece(0, 16), Piece(16, 16), Piece(32, 8)]
    assert pieces(18, 16, masked=True) == [Piece(0, 16), Piece(16, 2)]
    assert pieces(17, 16, masked=True) == [Piece(0, 16), Piece(16, 1)]
    assert pieces(7, 4) == [Piece(0, 4), Piece(4, 2), Piece(6, 1)]


def test_memory_of_whole_vectors() -> None:
    vectors = Vectors(64, masked=True)
    assert [vectors.padded(n, F32) for n in (1, 2, 3, 7, 18, 47)] == [1, 2, 4, 8, 18, 48]
    assert vectors.padded(47, I1) == 48
    assert Vectors(16, masked=False).padded(7, F32) == 7


WIDTHS = (*range(1, 18), 31, 33, 47)
QUICK = (3, 7, 47)
LAYER = """
%s = inter.at %g[src], %x : {edges}
%m = inter.reduce mean %s over %g along dst : {nodes}
%h = inter.elu %m {{alpha = 1.0}} : {nodes}
%most = inter.reduce max %s over %g along dst : {nodes}
%some = inter.relu %h : {nodes}
%both = inter.mul %some, %most : {nodes}
%y = inter.add %both, %b : {nodes}
%p = inter.row_reduce sum %y [0] : {each}
%q = inter.row_reduce max %y [0] : {each}
%d = inter.contract "k,k->" %y, %h : {each}
"""


def layer(width: int, elem: str) -> str:
    """Gathers, sums and maxima of edges, an exponential, a mask, and folds of the row."""
    nodes, edges = rows("N", f"{width}", elem), rows("g[src]", f"{width}", elem)
    bias, each = rows("unit", f"{width}", elem), rows("N", "", elem)
    return program(
        f"%x : {nodes} {{inter.needs_grad}}, %b : {bias} {{inter.needs_grad}}",
        f"%y : {nodes}; %p : {each}; %q : {each}; %d : {each}",
        LAYER.format(nodes=nodes, edges=edges, each=each),
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("elem", ["f32", "f64"])
@pytest.mark.parametrize(
    "width", [w if w in QUICK else pytest.param(w, marks=pytest.mark.long) for w in WIDTHS]
)
@pytest.mark.parametrize("format_", ["avx", "native"])
@pytest.mark.usefixtures("openmp")
def test_values_and_gradients(width: int, elem: str, format_: str) -> None:
    """Also of nodes without edges, and of one whose edges are summed in parts."""
    vector_bytes, march = FORMATS[format_]
    case = Case.of(layer(width, elem), TRAIN, vector_bytes=vector_bytes, march=march)
    for seed, sizes in ((0, {"N": 20, "g": 90}), (1, {"N": 5, "g": 0}), (2, {"N": 2, "g": 70})):
        close = 1e-3 if elem == "f32" else 1e-9
        case.check(case.values(seed, sizes), tolerance=close)


def test_dead_lanes_call_no_library() -> None:
    """A sine of seven numbers is seven calls, however long the vector is."""
    row = rows("N", "7", "f64")
    case = Case.of(
        program(f"%x : {row}", f"%y : {row}", f"%y = inter.sin %x : {row}"), "split-phases"
    )
    assert "LANES(f64x8, 7, " in case.program.source
    case.check(case.values(0, {"N": 9, "g": 3}))
