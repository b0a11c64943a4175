"""What kernels read of a set that is small, made by one call of C: its maps checked and narrowed,
its rows grouped by some of them, and other maps in the order of these groups.

A graph that is met once, a batch, is to cost little beside its kernels. Larger sets, maps that are
made of others, and tables of other kinds are made one by one (sets.py, tables.py): the numbers are
the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .kernels import Int32s, Int64s, frozen
from .sets import SetData

LARGEST = 1 << 18
"""Rows of a set, and of those that its maps lead to, above which it is not small: where they go
would not stay in the caches (structure.c sorts in two steps then)."""
READING_ROWS = ("members", "witness", "member_map", "member_pair")
"""Kinds of tables that read the rows of groups."""


class Order(NamedTuple):
    """Rows by the values of the map `by`: whether they are read themselves, and the maps that are
    read in their order."""

    by: int
    rows: bool
    taken: tuple[int, ...]


class Arranged(NamedTuple):
    """The maps of a set, and for each order where its groups begin, the rows where they are wanted,
    and the maps in that order."""

    maps: tuple[Int32s, ...]
    orders: tuple[tuple[Int64s, Int32s | None, tuple[Int32s, ...]], ...]


class MadeAhead(Protocol):
    """What somebody knows of the maps of a set."""

    def arranged(self, arrangement: Arrangement, codomains: Sequence[int]) -> Arranged | None:
        """The set with maps to so many rows, arranged; None where nobody has made that."""
        ...


@dataclass(frozen=True)
class Arrangement:
    """What is to be made of sets with these `maps`, which orders and other maps are numbered by."""

    maps: tuple[str, ...]
    orders: tuple[Order, ...]

    @staticmethod
    def of(
        name: str, maps: Sequence[str], tables: Sequence[Mapping[str, Any]]
    ) -> Arrangement | None:
        """What these descriptions of tables (tables.py) ask of the set's own maps; None where they
        ask nothing."""
        number = {label: k for k, label in enumerate(maps)}
        rows: dict[int, bool] = {}
        taken: dict[int, list[int]] = {}
        for b in tables:
            along = b.get("along", ())
            if b.get("domain") != [name, []] or len(along) != 1 or along[0] not in number:
                continue
            by = number[along[0]]
            mine = taken.setdefault(by, [])
            direct = b["kind"] == "member_map" and b["path"] in number
            if direct and number[b["path"]] not in mine:
                mine.append(number[b["path"]])
            rows[by] = rows.get(by, False) or (b["kind"] in READING_ROWS and not direct)
        # C places one map by itself, and several by the rows
        orders = [Order(by, rows[by] or len(mine) != 1, tuple(mine)) for by, mine in taken.items()]
        return Arrangement(tuple(maps), tuple(orders)) if orders else None

    def of_set(self, s: SetData) -> Arranged | None:
        """The set's maps, which know then that they are checked, and its rows in orders. None where
        the set is not small, or its maps are not as a user gave them.

        Raises:
            IndexError: a value that leads to no row, naming the argument.
        """
        maps = [s.maps[name] for name in self.maps]
        given = [m.given for m in maps if m.given is not None]
        if len(given) < len(maps):
            return None
        codomains = [m.codomain for m in maps]
        found = None if s.ahead is None else s.ahead.arranged(self, codomains)
        found = found or self.arranged(given, codomains)
        if isinstance(found, int):
            _ = maps[found].array  # which says what is wrong
        if not isinstance(found, Arranged):
            return None
        for m, array in zip(maps, found.maps, strict=True):
            m.check_by(array)
        return found

    def arranged(
        self,
        given: Sequence[NDArray[Any]],
        codomains: Sequence[int],
        threads: int | None = None,
    ) -> Arranged | int | None:
        """The same of the integers of maps (contiguous, int64 or int32) and the numbers of rows
        that they lead to: or the number of a map with a value that leads to no row. By default as
        many threads are used as by compiled code.
        """
        e = given[0].size
        if e > LARGEST or max(codomains) > LARGEST:
            return None
        checked, at_checked = _pieces([e] * len(given), np.int32)
        ptrs, at_ptrs = _pieces([codomains[o.by] + 1 for o in self.orders], np.int64)
        read, at_read = _pieces([e] * sum(o.rows + len(o.taken) for o in self.orders), np.int32)
        maps = [
            (_address(x), x.itemsize, n, out)
            for x, n, out in zip(given, codomains, at_checked, strict=True)
        ]
        orders: list[tuple[int, ...]] = []
        taken: list[tuple[int, int]] = []
        made: list[tuple[Int64s, Int32s | None, tuple[Int32s, ...]]] = []
        at = 0
        for o, ptr, at_ptr in zip(self.orders, ptrs, at_ptrs, strict=True):
            first = at + o.rows
            orders.append((o.by, at_ptr, at_read[at] if o.rows else 0, len(o.taken), len(taken)))
            made.append(
                (ptr, read[at] if o.rows else None, tuple(read[first : first + len(o.taken)]))
            )
            at = first + len(o.taken)
            taken += zip(o.taken, at_read[first:at], strict=True)
        if (wrong := kernels.arrange(maps, orders, taken, e, threads)) is not None:
            return wrong
        return Arranged(tuple(checked), tuple(made))


def _pieces(lengths: Sequence[int], dtype: Any) -> tuple[list[NDArray[Any]], list[int]]:
    """Arrays in one block, for C to fill and nobody else to change, and their addresses."""
    block = frozen(np.empty(sum(lengths), dtype))
    address, size = _address(block), block.itemsize
    ends = list(itertools.accumulate(lengths, initial=0))
    arrays = [block[first:last] for first, last in itertools.pairwise(ends)]
    return arrays, [address + size * first for first in ends[:-1]]


def _address(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]
