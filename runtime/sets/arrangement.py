"""What kernels read of a set that is small, made by one call of C: its maps checked and narrowed,
its rows grouped by some of them, and other maps in the order of these groups.

A graph that is met once, a batch, is to cost little beside its kernels. Larger sets, maps that are
made of others, and tables of other kinds are made one by one (sets.py, tables.py): the numbers are
the same.
"""

from __future__ import annotations

import functools
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


Column = tuple[int, int]
"""The address of integers that lie side by side, and the bytes of one, 8 or 4."""


class Arranged(NamedTuple):
    """What was made of a set: the maps, then for each order where its groups begin, then for each
    order the rows where they are wanted, and the maps in that order. `addresses` are those of the
    `arrays`."""

    by: Arrangement
    arrays: tuple[NDArray[Any], ...]
    addresses: tuple[int, ...]

    @property
    def maps(self) -> tuple[Int32s, ...]:
        return self.arrays[: len(self.by.maps)]

    @property
    def orders(self) -> tuple[tuple[Int64s, Int32s | None, tuple[Int32s, ...]], ...]:
        """Of each order where groups begin, the rows, and the maps."""
        arrays = iter(self.arrays[len(self.by.maps) :])
        starts = [next(arrays) for _ in self.by.orders]
        return tuple(
            (ptr, next(arrays) if o.rows else None, tuple(next(arrays) for _ in o.taken))
            for o, ptr in zip(self.by.orders, starts, strict=True)
        )

    def starts(self) -> Arranged:
        """Where groups begin, and nothing of each row."""
        first = len(self.by.maps)
        none = np.empty(0, np.int32)
        ptrs = self.arrays[first : first + len(self.by.orders)]
        return Arranged(self.by, (*[none] * first, *ptrs), self.addresses)


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
        columns = [(_address(x), x.itemsize) for x in given]
        return self.of_columns(columns, given[0].size, codomains, threads)

    def of_columns(
        self,
        columns: Sequence[Column],
        e: int,
        codomains: Sequence[int],
        threads: int | None = None,
    ) -> Arranged | int | None:
        """The same of `e` integers in each of these places."""
        if e > LARGEST or max(codomains) > LARGEST:
            return None
        layout = self._layout
        maps, at_maps = _block(len(columns), e)
        read, at_read = _block(layout.read, e)
        lengths = [codomains[o.by] + 1 for o in self.orders]
        starts = frozen(np.empty(sum(lengths), np.int64))
        at_ptr = _address(starts)
        addresses = [at_maps + 4 * e * k for k in range(len(columns))]
        numbers: list[int] = []
        for (address, width), n, out in zip(columns, codomains, addresses, strict=True):
            numbers += (address, width, n, out)
        ptrs: list[Int64s] = []
        first = 0
        for length, (by, rows, count, taken) in zip(lengths, layout.orders, strict=True):
            at_rows = 0 if rows is None else at_read + 4 * e * rows
            addresses.append(at_ptr + 8 * first)
            numbers += (by, addresses[-1], at_rows, count, taken)
            ptrs.append(starts[first : first + length])
            first += length
        for number, column in layout.taken:
            numbers += (number, at_read + 4 * e * column)
        wrong = kernels.arrange(numbers, len(columns), len(lengths), e, threads)
        if wrong is not None:
            return wrong
        addresses += [at_read + 4 * e * column for column in range(layout.read)]
        return Arranged(self, (*maps, *ptrs, *read), tuple(addresses))

    @functools.cached_property
    def _layout(self) -> _Layout:
        """Where the maps that orders read lie, each a column of one block."""
        orders: list[tuple[int, int | None, int, int]] = []
        taken: list[tuple[int, int]] = []
        column = 0
        for o in self.orders:
            orders.append((o.by, column if o.rows else None, len(o.taken), len(taken)))
            column += o.rows
            taken += [(k, column + i) for i, k in enumerate(o.taken)]
            column += len(o.taken)
        return _Layout(tuple(orders), tuple(taken), column)

    # ------------------------------------------------------------ where tables are

    def ptr_at(self, by: str) -> int:
        """Where in `Arranged.arrays` the groups by a map begin."""
        return len(self.maps) + self._order(by)

    def number(self, b: Mapping[str, Any]) -> int | None:
        """Where there a table of the set's own rows is; None where it is not among these."""
        if b["kind"] == "index_map":
            return self.maps.index(b["path"]) if b["path"] in self.maps else None
        along = b.get("along", ())
        if len(along) != 1 or along[0] not in [self.maps[o.by] for o in self.orders]:
            return None
        order = self._order(along[0])
        column: int | None = None
        match b["kind"]:
            case "offsets":
                return len(self.maps) + order
            case "members":
                column = self._layout.orders[order][1]
            case "member_map" if b["path"] in self.maps:
                taken, number = self.orders[order].taken, self.maps.index(b["path"])
                first = self._layout.orders[order][3]
                if number in taken:
                    column = self._layout.taken[first + taken.index(number)][1]
            case _:
                pass
        return None if column is None else len(self.maps) + len(self.orders) + column

    def _order(self, by: str) -> int:
        return [self.maps[o.by] for o in self.orders].index(by)


class _Layout(NamedTuple):
    """Of each order its map, the column of its rows, how many maps it takes and which is the first
    of these; then the maps that are taken, with their columns, and how many columns there are."""

    orders: tuple[tuple[int, int | None, int, int], ...]
    taken: tuple[tuple[int, int], ...]
    read: int


def _block(columns: int, rows: int) -> tuple[NDArray[Any], int]:
    """An int32 array a column, for C to fill and nobody else to change, and the address of the
    first."""
    block = frozen(np.empty((columns, rows), np.int32))
    return block, _address(block)


def _address(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]
