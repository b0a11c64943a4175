"""Buffers that are not in use at the same time share memory: how much they need at least, and where
they lie (arena.c)."""

from __future__ import annotations

import ctypes
import functools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from .cpu import toolchain

ALWAYS = 2**62
"""The last step of what is in use to the end, and longer."""


class Use(NamedTuple):
    """So many bytes are in use from a step to a step, both with it."""

    size: int
    first: int
    last: int


class Arena(NamedTuple):
    """The bytes of rooms, and for each buffer its room and how far in it begins."""

    rooms: list[int]
    places: list[tuple[int, int]]


def most_in_use(uses: Iterable[Use]) -> int:
    """The most bytes that are in use at a step: no plan takes fewer. O(n log n)."""
    changes: defaultdict[int, int] = defaultdict(int)
    for use in uses:
        changes[use.first] += use.size
        changes[use.last + 1] -= use.size
    most = now = 0
    for step in sorted(changes):
        now += changes[step]
        most = max(most, now)
    return most


def arena(there: Sequence[Use], uses: Sequence[Use], alone: int) -> Arena:
    """Places buffers (`uses`) in rooms. `there` are rooms that exist, each for what it is in use
    for itself: the first grows as it has to, the others are as long as they are. A buffer of
    `alone` bytes or more that fits nowhere has a room of its own, as long as it is; a shorter one
    lies in the first room. O(n^2) for n buffers.

    Raises:
        MemoryError: there is no memory for the plan.
        CompileError, NoCompiler: from the tool chain.
    """
    count, given = len(there) + len(uses), len(there)
    flat = [number for use in (*there, *uses) for number in use]
    places, sizes = (ctypes.c_int64 * (2 * count))(), (ctypes.c_int64 * count)()
    rooms = _function()(count, given, (ctypes.c_int64 * len(flat))(*flat), alone, places, sizes)
    if rooms < 0:
        raise MemoryError("no memory for the plan of a program's memory")
    found = places[2 * given :]
    return Arena(sizes[:rooms], list(zip(found[::2], found[1::2], strict=True)))


def source() -> str:
    """The C text."""
    return Path(__file__).with_name("arena.c").read_text()


@functools.cache
def _function() -> ctypes._NamedFuncPointer:  # pyright: ignore[reportPrivateUsage]
    library = toolchain.load(toolchain.compile_source(source()))
    function = library.gnnc_arena
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    function.argtypes = [number, number, pointer, number, pointer, pointer]
    function.restype = number
    return function
