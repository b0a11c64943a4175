"""Steps that make sets, and the ones that move values between the domains of a set.

A value on ``g[keys]`` has one row for every row of the key's codomain where there is one key, and
one for every distinct tuple, in lexicographic order of the keys as given, where there are several.

These are the fast meaning of the ops, that of dialects/meaning is the oracle: tests/runtime/
test_structure_meaning.py compares the two op by op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .sets import MapData, SetData

Array: TypeAlias = NDArray[Any]
Value: TypeAlias = SetData | Array
Attrs: TypeAlias = Mapping[str, Any]
Rule: TypeAlias = Callable[[Sequence[Any], Attrs], "Value | Images"]


@dataclass(frozen=True)
class Images:
    """The numbers of the rows that a map leads to, before they are 64 bits wide each: most steps
    that read them compare them, or make a map of them again."""

    map: MapData

    def rows(self) -> Array:
        """As rows, i64."""
        return self.map.array.astype(np.int64)


def _filter(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """filter (g) {no_loops} | (g, mask): the rows with src != dst, or with a true mask, in order;
    `parent` leads to g.
    """
    g: SetData = inputs[0]
    if attrs.get("no_loops", len(inputs) == 1):
        kept = kernels.where_different(g.map("src").array, g.map("dst").array)
    else:
        mask = on_rows(inputs[1], g.size)
        kept = None if mask.all() else kernels.where(mask)
    if kept is None or kept.size == g.size:
        return SetData(g.size, {**g.maps, "parent": MapData.identity(g.size)}, name=g.name)
    return _of_rows(g, kept)


def _of_rows(g: SetData, kept: kernels.Int32s) -> SetData:
    """The subset of these rows."""
    maps = {name: value.of_rows(kept) for name, value in g.maps.items()}
    return SetData(kept.size, {**maps, "parent": MapData.trusted(kept, g.size)}, name=g.name)


def _interval(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """interval (S, lo, hi): the rows lo .. hi - 1 as a slice has them; `parent` leads to S."""
    base: SetData = inputs[0]
    lo, hi = (int(x.reshape(())) for x in inputs[1:])
    start, stop, _ = slice(lo, hi).indices(base.size)
    stop = max(start, stop)
    maps = {name: value.between(start, stop) for name, value in base.maps.items()}
    parent = MapData.identity(base.size).between(start, stop)
    return SetData(stop - start, {**maps, "parent": parent}, name=base.name)


def _loops(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """loops (g) {remaining}: a loop at every node; with `remaining` the map `old` leads to the
    node's last loop in g (-1: none).
    """
    g: SetData = inputs[0]
    src, dst = g.map("src"), g.map("dst")
    if src.codomain != dst.codomain:
        raise ValueError(
            f"loops need one node set, but src has {src.codomain} nodes and dst has {dst.codomain}"
        )
    identity = MapData.identity(src.codomain)
    maps = {"src": identity, "dst": identity}
    if attrs.get("remaining"):
        maps["old"] = MapData.trusted(
            kernels.last_loop(src.array, dst.array, src.codomain), g.size, partial=True
        )
    return SetData(src.codomain, maps, name="loops")


def _union(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """union (a, b, .., U, ..) {maps, places}: the rows of a, then those of b; only the named maps.
    Those of `places`, for each of which there is a union U, lead to where the rows lie in it: for
    each part its map leads to the part of U with that number.
    """
    places: dict[str, list[int]] = attrs.get("places", {})
    parts: tuple[SetData, ...] = tuple(inputs[: len(inputs) - len(places)])
    unions = dict(zip(places, inputs[len(parts) :], strict=True))
    maps: dict[str, MapData] = {}
    for name in attrs["maps"]:
        of_parts = [part.map(name) for part in parts]
        if (union := unions.get(name)) is None:
            maps[name] = _joined(name, of_parts)
        else:
            maps[name] = _into_union(of_parts, union, places[name])
    return SetData(
        sum(part.size for part in parts),
        maps,
        parts=tuple(part.size for part in parts),
        name=parts[0].name,
    )


def _joined(name: str, maps: Sequence[MapData]) -> MapData:
    codomains = {value.codomain for value in maps}
    if len(codomains) > 1:
        raise ValueError(
            f"the parts of a union map {name!r} into sets of different sizes: {sorted(codomains)}"
        )

    def fill(out: kernels.Int32s) -> None:
        first = 0
        for value in maps:
            value.write(out[first : first + value.size])
            first += value.size

    size = sum(value.size for value in maps)
    return MapData(size, maps[0].codomain, fill, partial=any(value.partial for value in maps))


def _into_union(maps: Sequence[MapData], union: SetData, places: Sequence[int]) -> MapData:
    """Maps that lead to parts of a union, one behind the other, as one that leads to it."""

    def fill(out: kernels.Int32s) -> None:
        first = 0
        for value, place in zip(maps, places, strict=True):
            some = out[first : first + value.size]
            value.write(some)
            some[some >= 0] += sum(union.parts[:place])
            first += value.size

    size = sum(value.size for value in maps)
    return MapData(size, union.size, fill, partial=any(value.partial for value in maps))


def _attach(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """attach (S, values.., codomains..) {maps, what, partial, mono, onto}: the rows of S with
    integer rows as maps; `parent` leads to S.

    `maps` names them; the codomains are sets. `what` (same length, optional) names the arguments in
    errors. `partial`, `mono` and `onto` (optional) name the maps that are declared so. Every value
    is checked now.
    """
    names: list[str] = attrs["maps"]
    base: SetData = inputs[0]
    values, codomains = inputs[1 : 1 + len(names)], inputs[1 + len(names) :]
    maps: dict[str, MapData] = {"parent": MapData.identity(base.size)}
    for name, what, value, codomain in zip(
        names, attrs.get("what", names), values, codomains, strict=True
    ):
        partial = name in attrs.get("partial", ())
        if isinstance(value, Images) and value.map.size == base.size:
            maps[name] = value.map.into(codomain.size, what=what, partial=partial)
            continue
        rows = on_rows(value.rows() if isinstance(value, Images) else value, base.size)
        maps[name] = MapData.of(rows, codomain.size, what=what, partial=partial)
    result = base.with_maps(maps)
    for made in maps.values():  # those of the base are checked
        made.check()
    for name in attrs.get("mono", ()):
        if np.any(_images(maps[name]) > 1):
            raise ValueError(f"map {name} is declared mono, but two rows have the same image")
    for name in attrs.get("onto", ()):
        if np.any(_images(maps[name]) == 0):
            raise ValueError(f"map {name} is declared onto, but misses rows")
    return result


def _images(m: MapData) -> Array:
    """How many rows lead to each row of the codomain."""
    return np.bincount(m.array[m.array >= 0], minlength=m.codomain)


def _range(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """range () {size}: a set of constant size."""
    return SetData(attrs["size"])


def _sized(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """sized (n): a set whose size is an integer."""
    return SetData(int(inputs[0].reshape(())))


def _derive(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """derive (g, s1, ..) {path: [a, b, ..], name}: g with one map more, the composition of g's a,
    s1's b, .. (default name "a.b").
    """
    path: list[str] = attrs["path"]
    name: str = attrs.get("name", ".".join(path))
    rest = follow(inputs[1:], path[1:])
    return inputs[0].with_maps({name: inputs[0].map(path[0]).then(rest)}, {(path[0], name): rest})


def follow(sets: Sequence[SetData], path: Sequence[str]) -> MapData:
    result = sets[0].map(path[0])
    for owner, name in zip(sets[1:], path[1:]):
        result = result.then(owner.map(name))
    return result


# ---- domains ----


def _classes(g: SetData, keys: Sequence[str] | None) -> tuple[kernels.Int32s | None, int]:
    """The stored row of every row of g (None: itself), and the number of stored rows."""
    if keys is None:
        return None, g.size
    if not keys:
        return np.zeros(g.size, np.int32), 1
    if len(keys) == 1:
        return g.map(keys[0]).array, g.map(keys[0]).codomain
    pairs = g.pairs(tuple(keys))
    return pairs.row_map.array, pairs.count


def between(
    g: SetData, fine: Sequence[str] | None, coarse: Sequence[str]
) -> tuple[kernels.Int32s, int]:
    """The row stored for `coarse` of each row stored for `fine` (which determines it), and the
    number of rows stored for `coarse`. A key of `fine` that no row of g has gets -1, unless both
    are one path and its beginning, where the rest of the path is defined on it too.
    """
    target, count = _classes(g, coarse)
    assert target is not None
    if fine is None:
        return target, count
    if list(fine) == list(coarse):
        return np.arange(count, dtype=np.int32), count
    source, size = _classes(g, fine)
    if not coarse:
        return np.zeros(size, np.int32), count
    if len(fine) > 1:
        return target[g.pairs(tuple(fine)).first], count
    if len(coarse) == 1 and (fine[0], coarse[0]) in g.tails:
        return g.tails[fine[0], coarse[0]].array, count
    assert source is not None
    out = np.full(size, -1, np.int32)
    out[source[source >= 0]] = target[source >= 0]
    return out, count


def _read(inputs: Sequence[Any], attrs: Attrs) -> Value:
    """read (g, x) {from: keys, to: keys | null}: x on g[from] as a value on the finer g[to] (null:
    every row of g; []: unit).
    """
    g, x = inputs
    index, count = between(g, attrs.get("to"), attrs["from"])
    x = on_rows(x, count)
    if count == 0:
        return np.zeros((index.size, *x.shape[1:]), x.dtype)
    return x[index]  # a key without rows reads some row: what it gives is never used


def on_rows(x: Array, count: int) -> Array:
    """x with `count` rows: itself, or its only row repeated (without a copy)."""
    if x.shape[0] == count:
        return x
    if x.shape[0] != 1:
        raise ValueError(f"a value of {x.shape[0]} rows is used where there are {count}")
    return np.broadcast_to(x, (count, *x.shape[1:]))


SET_STEPS: dict[str, Rule] = {
    "filter": _filter,
    "interval": _interval,
    "loops": _loops,
    "union": _union,
    "attach": _attach,
    "range": _range,
    "sized": _sized,
    "derive": _derive,
    "read": _read,
}
SETS_MADE = SET_STEPS.keys() - {"read"}
"""The steps that give a set."""
