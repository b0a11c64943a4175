"""The sets of a whole graph, and chunks of their rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ....dialects.inter.sets import SetEnv
from ....passes.inter.layerwise.bindings import TILE, Chunk, Path
from ....runtime.sets.sets import Group, MapData, SetData


class WholeSets:
    """The sets of a call by name, grouped once by each path that chunks are taken by."""

    def __init__(self, env: SetEnv, sets: Mapping[str, SetData]) -> None:
        self.env = env
        self.sets = dict(sets)
        self.groups: dict[tuple[str, str], Group] = {}

    def size(self, name: str) -> int:
        """How many rows a set has."""
        return self.sets[name].size

    def chunk(self, c: Chunk, lo: int, hi: int) -> SetData:
        """The rows of a chunk as a set, with the maps that it needs."""
        place = c.place
        if place.key is None:
            for parts in place.within:
                *before, n = (self.size(p) for p in parts)
                lo, hi = (min(max(end - sum(before), 0), n) for end in (lo, hi))
            rows = np.arange(lo, hi, dtype=np.int32)
            maps: dict[str, MapData] = {}
        else:
            group = self.group(place.of, place.key)
            ends = group.ptr[lo : hi + 1]
            rows = group.rows[ends[0] : ends[-1]]
            places = np.repeat(np.arange(hi - lo, dtype=np.int32), np.diff(ends))
            maps = {TILE: MapData.trusted(places, hi - lo)}
        maps |= {label: self.along(place.of, path, rows) for label, path in c.maps}
        return SetData(rows.size, maps, name=c.name)

    def group(self, name: str, path: str) -> Group:
        """The rows of a set by the row that a path leads to."""
        if (name, path) not in self.groups:
            key = self.path(name, path)
            grouped = SetData(key.size, {"key": key}, name=name).grouped("key")
            self.groups[name, path] = grouped
        return self.groups[name, path]

    def path(self, name: str, path: str) -> MapData:
        """A path of maps as one."""
        step, _, rest = path.partition(".")
        first = self.sets[name].map(step)
        return first.then(self.path(self.env.codomain(name, step), rest)) if rest else first

    def along(self, name: str, path: Path, rows: NDArray[np.int32]) -> MapData:
        """A path from some rows of a set."""
        if not path.steps:
            first = sum(self.size(p) for p in path.before)
            return MapData.trusted(rows + np.int32(first), self.size(path.end))
        out: MapData | None = None
        for step in path.steps.split("."):
            step_map = self.sets[name].map(step)
            out = step_map.of_rows(rows) if out is None else out.then(step_map)
            name = self.env.codomain(name, step)
        assert out is not None
        return out
