"""The sets of a running function, and how rows stored on one domain are read on another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inter.sets import SetEnv
from ..inter.types import UNIT, Dom

Array = NDArray[Any]
Index = NDArray[np.int64]


@dataclass
class SetVal:
    """A finite set: its size and the index array of each map (-1 where a partial map has none)."""

    n: int
    maps: dict[str, Index] = field(default_factory=dict[str, Index])


def check_map(what: str, index: Index, n: int, partial: bool, codomain: str) -> None:
    """Raises IndexError where a map leads out of its codomain of `n` rows."""
    low = -1 if partial else 0
    bad = np.flatnonzero((index < low) | (index >= n))
    if len(bad):
        raise IndexError(
            f"{what}: value {index[bad[0]]} at row {bad[0]} is out of range, set {codomain} has "
            f"{n} rows"
        )


@dataclass
class World:
    """Sets by name: `env` says what is declared, `lookup` finds what they are."""

    env: SetEnv
    lookup: Callable[[str], SetVal]

    def size(self, name: str) -> int:
        """How many rows the set `name` has."""
        return self.lookup(name).n

    def step(self, name: str, label: str) -> Index:
        """One map of a set, with its bounds checked."""
        value, m = self.lookup(name), self.env.info(name).maps[label]
        if label not in value.maps:
            raise ValueError(f"set {name} was given without its map {label}")
        index = value.maps[label]
        if index.shape != (value.n,):
            raise ValueError(
                f"map {label} of set {name} has shape {index.shape}, the set has {value.n} rows"
            )
        check_map(
            f"map {label} of set {name}",
            index,
            self.size(m.codomain),
            "partial" in m.flags,
            m.codomain,
        )
        return index

    def path(self, name: str, path: str) -> Index:
        """A path of maps, composed; -1 where one of them has no value. "" is the identity."""
        index = np.arange(self.size(name))
        for label in path.split(".") if path else ():
            m = self.step(name, label)
            if len(m):
                index = np.where(index >= 0, m[np.maximum(index, 0)], -1)
            name = self.env.info(name).maps[label].codomain
        return index

    # ------------------------------------------------------------ storage

    def stored(self, d: Dom) -> tuple[Index, int]:
        """(stored row of every row of the set, number of stored rows)"""
        if d.set == UNIT:
            raise ValueError("unit has no set")
        if not d.keys:
            n = self.size(d.set)
            return np.arange(n), n
        if len(d.keys) == 1:
            return self.path(d.set, d.keys[0]), self.size(self.env.codomain(d.set, d.keys[0]))
        tuples = np.stack([self.path(d.set, k) for k in d.keys], 1)
        distinct, inverse = np.unique(tuples, axis=0, return_inverse=True)
        return inverse.reshape(-1).astype(np.int64), len(distinct)

    def count(self, d: Dom) -> int:
        """How many rows are stored on a domain."""
        return 1 if d.set == UNIT else self.stored(d)[1]

    def witness(self, d: Dom) -> Index | None:
        """A row of the set for every stored row; None where a stored row has none."""
        index, n = self.stored(d)
        rows = np.full(n, -1, np.int64)
        rows[index[::-1]] = np.arange(len(index))[::-1]  # the first row wins
        return None if np.any(rows < 0) else rows

    def index(self, fine: Dom, coarse: Dom) -> Index:
        """The stored row of `coarse` for every stored row of `fine`."""
        if coarse.set == UNIT:
            return np.zeros(self.count(fine), np.int64)
        if fine == coarse:
            return np.arange(self.count(fine))
        rows = self.witness(fine)
        if rows is not None:
            return self.stored(coarse)[0][rows]
        return self._unread(fine, coarse.keys[0])

    def through(self, d: Dom, path: str, x: Dom) -> Index:
        """The stored row of `x` that each stored row of `d` sees through a path of its set."""
        if x.set == UNIT:
            return np.zeros(self.count(d), np.int64)
        rows = self.witness(d)
        if rows is not None:
            seen = self.path(d.set, path)[rows]
            return self.stored(x)[0][seen] if x.keys else seen
        return self._unread(d, f"{path}.{x.keys[0]}" if x.keys else path)

    def _unread(self, d: Dom, path: str) -> Index:
        """`path` for every stored row of `d`, a single key of whose rows some occur nowhere: they
        take their value through the rest of the path."""
        (key,) = d.keys
        rest = self.env.determines(d.set, key, path)
        if rest is None:
            raise ValueError(f"{path} of set {d.set} does not follow from {key}")
        return self.path(self.env.codomain(d.set, key), rest)

    def read(self, x: Array, at: Dom, dom: Dom, what: str = "a value") -> Array:
        """`x`, stored on `at`, with one row per stored row of `dom`."""
        n = self.count(at)
        if x.shape[0] != n:
            raise ValueError(f"{what} on {at} has {x.shape[0]} rows, {at} stores {n}")
        return x if at == dom else x[self.index(dom, at)]

    def groups(self, over: Dom, along: Sequence[str]) -> tuple[Index, int]:
        """(group of every stored row of `over`, -1: none; number of groups)"""
        if not along:
            return np.zeros(self.count(over), np.int64), 1
        if len(along) > 1:
            d = self.env.along(over.set, along)
            return self.index(over, d), self.count(d)
        n = self.size(self.env.codomain(over.set, along[0]))
        rows = self.witness(over)
        if rows is not None:
            return self.path(over.set, along[0])[rows], n
        return self._unread(over, along[0]), n
