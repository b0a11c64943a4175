"""Index tables of sets by description: what the `index_map`, `offsets`, .. bindings of generated
code name.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..memory import Memory, Table
from .arrangement import READING_ROWS, Arranged, Arrangement
from .sets import Group, MapData, Pairs, SetData
from .shares import cuts, partitions, pieces

Domain = list[Any]
"""`[set, keys]`: the stored rows of `rows<set[keys]>`."""
SHARES = ("cuts", "pieces", "partitions")
"""Kinds of tables whose lengths phases ask for."""
KINDS = (
    "index_map", "pair_index", "offsets", "members", "witness", "member_map", "member_pair", *SHARES
)  # fmt: skip
"""Kinds of tables."""
DESCRIBED = ("kind", "domain", "path", "along", "keys", "row_cost", "grain", "chunks", "piece")
"""What a description of a table may say."""


class Described(dict[str, Any]):
    """A description of a table that knows what it is found by, and does not change."""

    @functools.cached_property
    def key(self) -> str:
        return repr([self.get(name) for name in DESCRIBED])

    @functools.cached_property
    def group_key(self) -> str:
        """What the groups are found by whose rows the table reads."""
        return repr([self["domain"], self["along"]])


class GraphTables(Protocol):
    """What is known of the tables of one graph: see `Tables`."""

    def size(self, domain: Domain) -> int: ...

    def table(self, spec: Mapping[str, Any]) -> NDArray[Any]: ...

    def uploaded(self, spec: Mapping[str, Any], memory: Memory) -> tuple[Table | None, int]: ...

    def group(self, domain: Domain, along: list[str]) -> Group | Pairs: ...


class Tables:
    """The tables of one graph, made when first asked for and kept with its sets.

    `codomains` gives for each set where its maps lead.
    """

    def __init__(
        self, sets: Mapping[str, SetData], codomains: Mapping[str, Mapping[str, str]]
    ) -> None:
        self.sets: dict[str, SetData] = dict(sets)
        self.codomains = codomains
        self._made: dict[str, NDArray[Any]] = {}
        self._groups: dict[str, Group | Pairs] = {}
        self._arranged: set[str] = set()
        self._uploads: dict[str, tuple[Table | None, int]] = {}

    def have(self, name: str, arrangement: Arrangement, made: Arranged) -> None:
        """Takes what was made of a set at once, which others may have too."""
        maps = arrangement.maps
        for o, (ptr, rows, taken) in zip(arrangement.orders, made.orders, strict=True):
            group = _own_group_key(name, maps[o.by])
            self._groups[group] = Group(ptr, rows)
            self._arranged.add(group)
            self._made[_own_key("offsets", name, maps[o.by])] = ptr
            for k, x in zip(o.taken, taken, strict=True):
                self._made[_own_key("member_map", name, maps[o.by], maps[k])] = x

    def make(self, specs: Sequence[Mapping[str, Any]]) -> None:
        """Makes the tables of these descriptions, one group after the other, so that no more is
        held at once than has to be: the rows of a group go with the last table that reads them."""
        readers: dict[str, dict[str, Mapping[str, Any]]] = {}
        for spec in specs:
            if spec["kind"] in READING_ROWS and _key(spec) not in self._made:
                readers.setdefault(_group_key(spec), {})[_key(spec)] = spec
        for found in readers.values():
            *others, last = sorted(found.values(), key=lambda spec: spec["kind"] == "member_map")
            self._make_last(last, [self.table(spec) for spec in others])
        for spec in specs:
            self.table(spec)

    def _make_last(self, spec: Mapping[str, Any], others: Sequence[NDArray[Any]]) -> None:
        """Makes the last table that reads the rows of a group: in their place, where no other table
        is these rows, as the members are, and what an identity says of them."""
        group = self.group(spec["domain"], spec["along"])
        if isinstance(group, Pairs):
            return
        shared = any(np.may_share_memory(x, group.rows) for x in others)
        alone = not shared and _group_key(spec) not in self._arranged
        if alone and spec["kind"] == "member_map":
            path = self.path(spec["domain"], spec["path"])
            found = path.array if group.in_order else path.over(group.rows)
            self._made[_key(spec)] = found
        else:
            self.table(spec)
        self._groups[_group_key(spec)] = group.outline()

    def settle(self) -> None:
        """To be called when all tables are made: forgets them, and what sets say of each row. Sizes
        can be asked for, and where groups begin."""
        self._made.clear()
        self._uploads.clear()
        self._groups = {key: group.outline() for key, group in self._groups.items()}
        self.sets = {name: value.outline() for name, value in self.sets.items()}

    def size(self, domain: Domain) -> int:
        """The number of stored rows."""
        name, keys = domain
        if len(keys) == 1:
            return self.path([name, []], keys[0]).codomain
        return self.set_of(domain).size

    def table(self, spec: Mapping[str, Any]) -> NDArray[Any]:
        """The array that a buffer description of kind index_map, pair_index, .. names: the same one
        for the same description."""
        key = _key(spec)
        if key not in self._made:
            self._made[key] = self._table(spec)
        return self._made[key]

    def uploaded(self, spec: Mapping[str, Any], memory: Memory) -> tuple[Table | None, int]:
        """A table in the memory of a program, the same one for all phases, and its bytes. None are
        members that count up, which kernels are not given (codegen/common/scalars.py)."""
        key = _key(spec)
        if key not in self._uploads:
            array = contiguous(self.table(spec))
            unread = spec["kind"] == "members" and self._counts_up(spec, array)
            self._uploads[key] = (None if unread else memory.upload(array)), array.nbytes
        return self._uploads[key]

    def _counts_up(self, spec: Mapping[str, Any], members: NDArray[Any]) -> bool:
        return self.group(spec["domain"], spec["along"]).in_order or counts_up(members)

    def _table(self, spec: Mapping[str, Any]) -> NDArray[Any]:
        domain: Domain = spec["domain"]
        kind = spec["kind"]
        if kind == "index_map":
            return self.path(domain, spec["path"]).array
        if kind == "pair_index":
            return self.pairs(domain[0], domain[1]).row_map.array
        along: list[str] = spec["along"]
        group = self.group(domain, along)
        if kind == "offsets":
            return group.ptr
        if kind == "cuts":
            return cuts(group.ptr, spec["row_cost"], spec["grain"], spec["chunks"])
        if kind == "pieces":
            return pieces(group.ptr, spec["piece"])
        if kind == "partitions":
            return partitions(group.ptr, spec["piece"])
        if kind == "members":
            return group.rows
        if kind == "witness":
            if len(group.rows) == 0:
                return np.full(len(group.ptr) - 1, -1, np.int32)
            some = group.ptr[1:] > group.ptr[:-1]
            first = group.rows[np.where(some, group.ptr[:-1], 0)]
            return np.where(some, first, np.int32(-1))
        if kind == "member_map":
            return self.path(domain, spec["path"]).of_group(group).array
        if kind == "member_pair":
            return self.pairs(domain[0], spec["keys"]).row_map.of_group(group).array
        raise ValueError(f"unknown table {kind!r}")

    # ------------------------------------------------------------ sets and maps

    def set_of(self, domain: Domain) -> SetData:
        """The stored rows of a domain as a set of their own."""
        name, keys = domain
        return self.pairs(name, keys).set if keys else self.sets[name]

    def pairs(self, name: str, keys: list[str]) -> Pairs:
        for key in keys:
            self.know(name, key)
        return self.sets[name].pairs(tuple(keys))

    def know(self, name: str, path: str) -> None:
        """Give a set the composed map of a dotted path."""
        if path not in self.sets[name].maps:
            self.sets[name] = self.sets[name].with_maps({path: self.path([name, []], path)})

    def path(self, domain: Domain, path: str) -> MapData:
        """Where `path` leads from the stored rows of a domain."""
        name, keys = domain
        owner = self.set_of(domain)
        # a key of a pair may itself be a path
        first = next(
            (
                k
                for k in sorted(keys, key=len, reverse=True)
                if path == k or path.startswith(k + ".")
            ),
            None,
        )
        first = first or path.split(".")[0]
        rest = path[len(first) + 1 :]
        found = owner.map(first)
        for step in first.split("."):
            name = self.codomains[name][step]
        for step in rest.split(".") if rest else ():
            found = found.then(self.sets[name].map(step))
            name = self.codomains[name][step]
        return found

    def group(self, domain: Domain, along: list[str]) -> Group | Pairs:
        """Rows grouped by one path, or by the distinct tuples of several."""
        key = _group_key({"domain": domain, "along": along})
        if key not in self._groups:
            self._groups[key] = self._group(domain, along)
        return self._groups[key]

    def _group(self, domain: Domain, along: list[str]) -> Group | Pairs:
        name, keys = domain
        if len(along) > 1 and not keys:
            return self.pairs(name, along)
        owner = self.set_of(domain)
        if len(along) > 1:
            new = {k: self.path(domain, k) for k in along if k not in owner.maps}
            return owner.with_maps(new).pairs(tuple(along))
        if along[0] not in owner.maps and keys:
            return owner.with_maps({along[0]: self.path(domain, along[0])}).grouped(along[0])
        self.know(name, along[0])
        owner = self.set_of(domain)
        return owner.grouped(along[0])


def _key(spec: Mapping[str, Any]) -> str:
    return (spec if isinstance(spec, Described) else Described(spec)).key


def _group_key(spec: Mapping[str, Any]) -> str:
    return (spec if isinstance(spec, Described) else Described(spec)).group_key


@functools.cache
def _own_group_key(name: str, by: str) -> str:
    return _group_key({"domain": [name, []], "along": [by]})


@functools.cache
def _own_key(kind: str, name: str, by: str, path: str | None = None) -> str:
    return _key({"kind": kind, "domain": [name, []], "along": [by], "path": path})


def sets_of_tables(
    buffers: Sequence[Mapping[str, Any]], codomains: Mapping[str, Mapping[str, str]]
) -> set[str]:
    """The sets whose maps are read for the tables among buffers, and for rows that are stored by
    tuples."""
    domains = [(b["kind"], b["domain"]) for b in buffers if b.get("domain")]
    waiting = [d[0] for kind, d in domains if kind in KINDS or len(d[1]) > 1]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(codomains.get(name, {}).values())
    return found


def contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """The array as C code reads it."""
    return np.ascontiguousarray(array)


def counts_up(members: NDArray[Any]) -> bool:
    """Whether a table of members is 0, 1, 2, ..: the rows lie in the order of their groups, as
    nodes in that of their graphs and entries of a CSR matrix in that of its rows."""
    n = len(members)
    ends = n == 0 or (members[0] == 0 and members[-1] == n - 1)
    return bool(ends) and bool(np.array_equal(members, np.arange(n, dtype=members.dtype)))
