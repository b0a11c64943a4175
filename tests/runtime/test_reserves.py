"""Scratch memory is reserved for as many chunks as kernels cut rows into, in Python and in programs
without it."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from importlib.resources import files

import numpy as np
import pytest

from gnnc.runtime import standalone
from gnnc.runtime.cpu.toolchain import compiler, program_flags
from gnnc.runtime.reserves import Reserve

USED = ("arena.c", "base.c", "base.h", "places.c", "places.h")
NUMBERS = list(itertools.product((0, 1, 5, 300, 7650), (0, 1, 900, 10**6), (1, 4, 194), (1, 8192)))
"""Rows, members of their groups, costs of a row, and grains."""
KERNELS = """
#include <stdint.h>
#define INLINE static inline
INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
%s
int64_t counted(const int64_t *offsets, int64_t n, int64_t cost, int64_t grain, int64_t most)
{
    return chunk_count(offsets, n, cost, grain, most);
}
"""


def chunk_count() -> str:
    """The function of kernels."""
    text = files("gnnc.codegen.openmp").joinpath("prelude.h").read_text()
    start = text.index("INLINE int64_t chunk_count(")
    return text[start : text.index("\n}", start) + 2]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("reserves")
    sources = {name: standalone.sources()[name] for name in USED}
    for name, text in {**sources, "kernels.c": KERNELS % chunk_count()}.items():
        (folder / name).write_text(text)
    command = [*compiler().command, *program_flags(), "-Wall", "-shared", "-fPIC"]
    subprocess.run(
        [*command, "-o", str(folder / "all.so"), *map(str, folder.glob("*.c"))], check=True
    )
    found = ctypes.CDLL(str(folder / "all.so"))
    found.most_chunks.restype = found.counted.restype = ctypes.c_int64
    found.most_chunks.argtypes = [ctypes.c_int64] * 5
    found.counted.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 4]
    return found


@pytest.mark.parametrize("most", [1, 6, 7, 256])
def test_as_many_as_kernels_find(library: ctypes.CDLL, most: int) -> None:
    for rows, members, cost, grain in NUMBERS:
        spec = {"rows": [["N", []]], "pieces": 0, "work": ["g", []]}
        spec |= {"row_cost": cost, "grain": grain, "chunks": most}
        found = Reserve.of(spec, _number).chunks([rows, members])
        offsets = np.zeros(rows + 1, np.int64)
        offsets[-1] = members
        assert found == library.counted(offsets.ctypes.data, rows, cost, grain, most)
        assert found == library.most_chunks(rows, members, cost, grain, most)


def test_members_without_a_group_take_no_more(library: ctypes.CDLL) -> None:
    reserve = Reserve(0, [0], 1, 4, 64, 256)
    offsets = np.array([0, 500], np.int64)  # of 900 rows some have no group
    assert library.counted(offsets.ctypes.data, 1, 4, 64, 256) <= reserve.chunks([1, 900])


def test_rows_of_several_sets_and_pieces() -> None:
    assert Reserve(3, [0, 1], None, 1, 1, 256).chunks([10, 4]) == 16


def _number(domain: list[object]) -> int:
    return ["N", "g"].index(str(domain[0]))
