"""Finite sets with named maps, as data: what a `!inter.set` is when a program runs.

A graph is a set of edges with the maps ``src`` and ``dst`` into its nodes. A map is an int32 array,
checked against the size of the set it points into when it is first read, or the identity, which
needs no array. Orders and groups (edges by destination, by source, distinct (relation, source)
pairs) are made when first asked for and kept with the set. Everything here is read-only and may be
shared by threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .kernels import Int32s, Int64s

if TYPE_CHECKING:
    from .arrangement import MadeAhead

Fill: TypeAlias = Callable[[Int32s], object]
GIVEN_UP = "what this set says of each row was given up when the tables of its graph were made"


def _given_up(out: Int32s) -> None:
    raise RuntimeError(GIVEN_UP)


class MapData:
    """A map from the `size` rows of one set to the `codomain` rows of another.

    Make one with :meth:`of` (integers of a user, checked when first read), :meth:`identity`, or
    :meth:`trusted` (int32 values already known to be in range). A partial map has the value -1
    where it is not defined.
    """

    def __init__(
        self,
        size: int,
        codomain: int,
        fill: Fill,
        *,
        partial: bool = False,
        identity: bool = False,
    ) -> None:
        """`fill` writes the values to an int32 array of shape (size,)."""
        self.size = kernels.check_rows(size, "the number of rows of a map")
        self.codomain = kernels.check_rows(codomain, "the number of rows that a map points into")
        self.partial = partial
        self.is_identity = identity
        self.given: NDArray[Any] | None = None
        """The integers of a user, contiguous, as long as they are not checked, where each is to be
        the number of a row: of such a map what a set is asked for can be made at once."""
        self._fill: Fill | None = fill
        self._array: Int32s | None = None
        self._outline: MapData | None = None
        self._lock = threading.Lock()

    @staticmethod
    def of(
        values: NDArray[Any],
        codomain: int,
        *,
        what: str = "map",
        partial: bool = False,
        first: int = 0,
    ) -> MapData:
        """A map given by integers of any width, shape (size,); `what` names the argument in errors.
        The rows that it leads to are counted from `first`.

        Raises ``TypeError`` or ``ValueError`` here for a wrong type or shape; reading :attr:`array`
        raises ``IndexError`` for a value that leads to no row (-1 is allowed where `partial`).
        """
        x = kernels.integers(values, what)
        low = -1 if partial else first

        def fill(out: Int32s) -> None:
            kernels.narrow(x, first + codomain, low=low, what=what, out=out)
            if first:
                out -= np.int32(first)

        result = MapData(x.size, codomain, fill, partial=partial)
        result.given = x if low == 0 else None
        return result

    @staticmethod
    def identity(size: int) -> MapData:
        """The map of every row to itself."""

        def fill(out: Int32s) -> None:
            out[:] = np.arange(size, dtype=np.int32)

        return MapData(size, size, fill, identity=True)

    @staticmethod
    def trusted(array: Int32s, codomain: int, *, partial: bool = False) -> MapData:
        """A map given by an int32 array whose values are known to be in range; it must not be
        changed afterwards.
        """
        result = MapData(array.size, codomain, _given_up, partial=partial)
        result._array, result._fill = kernels.frozen(array), None
        return result

    @property
    def array(self) -> Int32s:
        """The values, int32 of shape (size,), read-only. The first read checks them: ``IndexError``
        shows the first one out of range.
        """
        with self._lock:
            if self._array is None:
                assert self._fill is not None
                out = np.empty(self.size, np.int32)
                self._fill(out)
                self._array = kernels.frozen(out)
                self._fill = self.given = None  # what it was made from is not kept alive
            return self._array

    def check(self) -> None:
        """Check it now, rather than when it is first read. Raises ``IndexError``."""
        if not self.is_identity:
            _ = self.array

    def check_by(self, array: Int32s) -> None:
        """Takes what somebody has made of the integers `given`, and checked."""
        with self._lock:
            self._array = array
            self._fill = self.given = None

    def write(self, out: Int32s) -> None:
        """Writes the values to `out`; what was not read yet is not kept beside it."""
        with self._lock:
            array, fill = self._array, self._fill
        if array is not None:
            out[:] = array
            return
        assert fill is not None
        fill(out)

    def then(self, other: MapData) -> MapData:
        """This map followed by `other`."""
        if self.codomain != other.size:
            raise ValueError(
                f"a map into {self.codomain} rows cannot be followed by a map of {other.size} rows"
            )
        if self.is_identity:
            return other
        if other.is_identity:
            return self
        partial = self.partial or other.partial
        return MapData(
            self.size,
            other.codomain,
            lambda out: kernels.take(other.array, self.array, out=out),
            partial=partial,
        )

    def of_rows(self, rows: Int32s) -> MapData:
        """This map on chosen rows only: value ``p`` is the value of row ``rows[p]``."""
        if self.is_identity:
            return MapData.trusted(rows, self.codomain)
        return MapData(
            rows.size,
            self.codomain,
            lambda out: kernels.take(self.array, rows, out=out),
            partial=self.partial,
        )

    def between(self, start: int, stop: int) -> MapData:
        """This map on the rows from `start` to `stop` - 1 only, which there are."""

        def fill(out: Int32s) -> None:
            if self.is_identity:  # its array would have the rows in front of these too
                out[:] = np.arange(start, stop, dtype=np.int32)
            else:
                out[:] = self.array[start:stop]

        return MapData(stop - start, self.codomain, fill, partial=self.partial)

    def into(self, codomain: int, *, what: str, partial: bool = False) -> MapData:
        """The map as one that leads to so many rows; checked as by :meth:`of`, where its codomain
        does not say that they are."""
        within = codomain >= self.codomain and (partial or not self.partial)
        if within and codomain == self.codomain:
            return self
        x = self.array
        least, most = (int(x.min()), int(x.max())) if x.size and not within else (0, -1)
        if most >= codomain or (least < 0 and not partial):
            return MapData.of(x, codomain, what=what, partial=partial)  # says which row it is
        return MapData.trusted(x, codomain, partial=partial)

    def of_group(self, group: Group | Pairs) -> MapData:
        """This map on the rows of all groups, one after the other; itself where that is their
        order."""
        return self if group.in_order else self.of_rows(group.rows)

    def over(self, rows: Int32s) -> Int32s:
        """The values on chosen rows, written over `rows`, which nobody else may have."""
        return rows if self.is_identity else kernels.take(self.array, rows, out=rows)

    def outline(self) -> MapData:
        """The map without its values, which cannot be read; the identity has none."""
        if self._array is None and (self.is_identity or self._fill is _given_up):
            return self
        if self._outline is None:  # one for all sets that have the map
            if self.is_identity:
                self._outline = MapData.identity(self.size)
            else:
                self._outline = MapData(self.size, self.codomain, _given_up, partial=self.partial)
        return self._outline

    def __repr__(self) -> str:
        kind = "identity" if self.is_identity else "partial map" if self.partial else "map"
        return f"<{kind} {self.size} -> {self.codomain}>"


class Group:
    """The rows of a set sorted by one of its maps: group ``k`` is ``rows[ptr[k]:ptr[k + 1]]``, and
    its rows are the ones mapped to ``k``.

    `ptr` is int64 of shape (number of groups + 1,), `rows` int32 of shape (rows in some group,):
    all rows of the set, unless the map is partial. `in_order` says that they are known to be 0, 1,
    2, ..
    """

    def __init__(self, ptr: Int64s, rows: Int32s | None, in_order: bool = False) -> None:
        self.ptr = ptr
        self._rows = rows
        self.in_order = in_order

    @property
    def rows(self) -> Int32s:
        """See above. Raises RuntimeError where only an outline is left."""
        if self._rows is None:
            raise RuntimeError(GIVEN_UP)
        return self._rows

    def outline(self) -> Group:
        """The group without its rows, which cannot be read."""
        return Group(self.ptr, None, self.in_order)


@dataclass(frozen=True)
class Pairs:
    """The distinct tuples of several maps of a set, in lexicographic order: the storage of
    `rows<g[rel, src]>`.
    """

    keys: tuple[str, ...]
    set: SetData
    """The tuples as a set of their own, with the maps `keys`."""
    first: Int32s
    """The first row that has each tuple, int32 of shape (count,)."""
    row_map: MapData
    """The tuple of each row of the set."""
    group: Group
    """Rows by tuple, ascending."""

    @property
    def count(self) -> int:
        return self.set.size

    @property
    def ptr(self) -> Int64s:
        return self.group.ptr

    @property
    def in_order(self) -> bool:
        return self.group.in_order

    @property
    def rows(self) -> Int32s:
        return self.group.rows

    def outline(self) -> Pairs:
        """The tuples without what has an entry a row of the set, and without their maps."""
        return replace(
            self,
            set=self.set.outline(),
            row_map=self.row_map.outline(),
            group=self.group.outline(),
        )


class SetData:
    """A finite set: its number of rows, its maps by name, and for a union the sizes of its `parts`,
    in order.
    """

    def __init__(
        self,
        n: int,
        maps: Mapping[str, MapData] | None = None,
        *,
        parts: tuple[int, ...] = (),
        name: str = "set",
    ) -> None:
        self.size = kernels.check_rows(n, f"the number of rows of the {name}")
        self.maps: dict[str, MapData] = dict(maps or {})
        self.parts = parts
        self.name = name
        for key, value in self.maps.items():
            if value.size != n:
                raise ValueError(
                    f"the map {key!r} has {value.size} entries, but the {name} has {n} rows"
                )
        if parts and sum(parts) != n:
            raise ValueError(f"parts of {parts} rows do not make a {name} of {n} rows")
        self.tails: dict[tuple[str, str], MapData] = {}
        self.ahead: MadeAhead | None = None
        """What was made of the maps before they were given, if anything was."""
        self._groups: dict[str, Group] = {}
        self._pairs: dict[tuple[str, ...], Pairs] = {}
        self._outlined = False
        self._lock = threading.RLock()

    def map(self, name: str) -> MapData:
        """The map of that name; ``KeyError`` says which there are."""
        if name not in self.maps:
            raise KeyError(
                f"the {self.name} has no map {name!r}; "
                f"it has {', '.join(sorted(self.maps)) or 'none'}"
            )
        return self.maps[name]

    def check(self) -> None:
        """Check every map now, rather than when it is first read. Raises ``IndexError``."""
        for value in self.maps.values():
            value.check()

    def group(self, by: str) -> Group:
        """The rows grouped by the map `by`, in their order within a group. Kept after the first
        call.
        """
        with self._lock:
            if by not in self._groups:
                self._groups[by] = self.grouped(by)
            return self._groups[by]

    def grouped(self, by: str) -> Group:
        """The same, made anew, for one who has it to himself."""
        key = self.map(by)
        if key.is_identity:
            ptr = np.arange(self.size + 1, dtype=np.int64)
            rows = np.arange(self.size, dtype=np.int32)
            return Group(kernels.frozen(ptr), kernels.frozen(rows), in_order=True)
        found = kernels.group_with_order(key.array, key.codomain, partial=key.partial)
        return Group(*found)

    def in_order_of(self, by: str) -> SetData:
        """The set with its rows grouped by the map `by`, in their order within a group. Raises
        ``IndexError`` for a value of this map that leads to no row."""
        rows = self.grouped(by).rows
        maps = {label: m.of_rows(rows) for label, m in self.maps.items()}
        return SetData(self.size, maps, name=self.name)

    def pairs(self, keys: tuple[str, ...]) -> Pairs:
        """The distinct tuples of the maps `keys`, sorted lexicographically in the order that `keys`
        has. Kept after the first call.
        """
        with self._lock:
            if keys not in self._pairs:
                self._pairs[keys] = self._distinct(keys)
            return self._pairs[keys]

    def with_maps(
        self, maps: Mapping[str, MapData], tails: Mapping[tuple[str, str], MapData] | None = None
    ) -> SetData:
        """The same rows with further maps; map b is a followed by ``tails[a, b]``."""
        result = SetData(self.size, {**self.maps, **maps}, parts=self.parts, name=self.name)
        result.tails.update(self.tails)
        result.tails.update(tails or {})
        return result

    def _distinct(self, keys: tuple[str, ...]) -> Pairs:
        found = kernels.runs(
            [self.map(key).array for key in keys], [self.map(key).codomain for key in keys]
        )
        maps = {key: self.map(key).of_rows(found.first) for key in keys}
        name = f"pairs ({', '.join(keys)}) of the {self.name}"
        pairs = SetData(found.found, maps, name=name)
        row_map = MapData.trusted(found.run, found.found)
        return Pairs(keys, pairs, found.first, row_map, Group(found.start, found.order))

    def outline(self) -> SetData:
        """The set as it is without what its maps and groups say of each row: sizes, and where the
        groups begin that were made. Reading anything else raises RuntimeError."""
        if self._outlined or not self.maps:
            return self
        maps = {name: value.outline() for name, value in self.maps.items()}
        result = SetData(self.size, maps, parts=self.parts, name=self.name)
        result.tails.update({key: value.outline() for key, value in self.tails.items()})
        with self._lock:
            result._groups.update({k: v.outline() for k, v in self._groups.items()})
            result._pairs.update({k: v.outline() for k, v in self._pairs.items()})
        result._outlined = True
        return result

    def __repr__(self) -> str:
        return f"<{self.name} of {self.size} rows: {self.maps}>"
