"""Scratch memory is reserved for as many chunks as kernels cut rows into, in Python and in programs
without it."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from gnnc.runtime import standalone
from gnnc.runtime.arena import ALWAYS
from gnnc.runtime.cpu.toolchain import compiler, program_flags
from gnnc.runtime.layout import Layout
from gnnc.runtime.reserves import BEHIND, Reserve

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


class Cut(ctypes.Structure):
    """How rows are cut (places.h)."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in ("rows", "members", "row_cost", "grain", "most", "bytes", "room")
    ] + [(name, ctypes.c_int64) for name in ("block", "round")]


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
    found.reserved.restype = found.room_at.restype = found.counted.restype = ctypes.c_int64
    found.reserved.argtypes = [ctypes.c_int, Cut]
    found.room_at.argtypes = [ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
    found.counted.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 4]
    return found


@pytest.mark.parametrize("most", [1, 6, 7, 256])
def test_as_many_as_kernels_find(library: ctypes.CDLL, most: int) -> None:
    for rows, members, cost, grain in NUMBERS:
        found = reserve("chunks", row_cost=cost, grain=grain, most=most)
        offsets = np.zeros(rows + 1, np.int64)
        offsets[-1] = members
        expected = library.counted(offsets.ctypes.data, rows, cost, grain, most)
        assert found.length([rows, members], no_room) == expected


def test_programs_reserve_as_much(library: ctypes.CDLL) -> None:
    """Of every kind, with much room and little, with rounds and without."""
    seen: set[tuple[str, bool, bool]] = set()
    cuts = itertools.product((0, 1, 300, 30000), (0, 900), (0, 2000, 200_000), (-7, 10**6), (0, 12))
    for rows, members, of_chunk, room, round_ in cuts:
        for what, of in enumerate(("chunks", "sums", "rows")):
            numbers = {"row_cost": 66, "grain": 62500, "most": 64, "bytes": of_chunk}
            numbers |= {"block": 48, "round": round_}
            found = reserve(of, **numbers).length([rows, members], lambda _, room=room: room)
            cut = Cut(rows=rows, members=members, room=room, **numbers)
            assert found == library.reserved(what, cut)
            seen.add((of, bool(round_), found == 0))
    assert ("sums", True, True) in seen and ("rows", True, False) in seen
    assert ("sums", True, False) in seen and ("rows", True, True) in seen


def test_members_without_a_group_take_no_more(library: ctypes.CDLL) -> None:
    found = reserve("chunks", row_cost=4, grain=64, most=256)
    offsets = np.array([0, 500], np.int64)  # of 900 rows some have no group
    assert library.counted(offsets.ctypes.data, 1, 4, 64, 256) <= found.length([1, 900], no_room)


def test_rows_of_several_sets_and_pieces() -> None:
    found = Reserve("chunks", 3, [0, 1], None, 1, 1, 256, 0, 0, 0, 0)
    assert found.length([10, 4], no_room) == 16


def test_chunks_take_little_beside_what_a_step_needs() -> None:
    """As many as there is room for, but a few; rounds, where there are some, instead of few."""
    numbers = {"row_cost": 66, "grain": 62500, "most": 64, "bytes": 100_000}
    counts, few, many = [30000, 0], 250_000, 1_290_000
    found = reserve("sums", **numbers)
    assert [found.length(counts, lambda _, n=n: n) for n in (0, few, many, 10**9)] == [4, 4, 12, 30]
    rounds = reserve("sums", **numbers, block=48, round=12)
    assert [rounds.length(counts, lambda _, n=n: n) for n in (0, few, many)] == [0, 0, 12]


def test_rounds_keep_no_more_rows_than_there_are() -> None:
    numbers = {"row_cost": 66, "grain": 62500, "most": 64, "bytes": 100_000}
    found = reserve("rows", **numbers, block=48, round=12)
    lengths = [found.length([rows, 0], no_room) for rows in (0, 300, 30000)]
    assert lengths == [BEHIND, 300 + BEHIND, 2 * 48 * 12 + BEHIND]


def test_room_beside_what_is_in_use(library: ctypes.CDLL) -> None:
    """What no buffer takes at a step of the most that any step takes, and an eighth of that; what
    forward passes on counts."""
    lives = [(1000, 0, 4), (600, 2, 3), (200, 3, ALWAYS), (0, 5, 5)]
    buffers = [
        {"kind": "temporary", "domain": None, "row": [size], "bytes": 1, "lives": [first, last]}
        for size, first, last in lives
    ]
    buffers.append({**buffers[0], "row": [5000], "lives": [3, 3], "scratch": True})
    buffers.append({**buffers[0], "kind": "input", "row": [9000]})  # the caller's
    lives.append((400, 0, 1))
    passed = {"kind": "input", "row": [400], "lives": [0, 1], "passed": True}
    buffers.append({**buffers[0], **passed})
    layout = Layout(buffers, [])
    uses = np.array(lives, np.int64)
    for step, free in {0: 400, 2: 200, 3: 0, 5: 1600}.items():
        assert layout.rooms(lambda rows: rows[3])(step) == free + 225
        assert library.room_at(len(lives), uses.ctypes.data, step) == free + 225


def reserve(of: str, **numbers: int) -> Reserve:
    """Of the rows of a set, whose work is the members of another."""
    spec: dict[str, Any] = {
        "of": of,
        "rows": [["N", []]],
        "pieces": 0,
        "work": ["g", []],
        "step": 0,
        "bytes": 0,
    }
    spec |= {"block": 0, "round": 0} | numbers
    return Reserve.of_spec({**spec, "chunks": spec["most"]}, _number)


def no_room(step: int) -> int:
    return 0


def _number(domain: list[object]) -> int:
    return ["N", "g"].index(str(domain[0]))
