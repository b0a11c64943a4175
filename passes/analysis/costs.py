"""What the passes assume of graphs, where they weigh one program against another. What they assume
of a machine stands in the record of its target (passes/targets).

Every pass that uses one of the numbers has an option for it, so IR tests do not depend on this
file.

A function may carry `inter.stats = {N = 1000 : i64, g = 5000 : i64}`: the sizes of its sets in the
graph at hand. Where it is silent, and no op fixes a size, the defaults below stand in. `note_sizes`
writes it for graphs of another shape than the defaults have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DictionaryAttr, FixedBitwidthType, FloatAttr, IntegerAttr, i64
from xdsl.dialects.func import FuncOp

from ...dialects.attributes import STATS
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.structure import PARENT, RangeOp
from ...dialects.inter.types import UNIT, Dom, RowsType, is_bool, rows, set_name
from ...dialects.inter.values import AsRowsOp, AsUnitOp

NODES = 100_000
"""Rows of a set that nothing is known of."""
DEGREE = 8.0
"""Rows of an edge set for one row of a set it maps into."""
FEW = 2.0
"""A set has few rows where it reads values that are so many times more: these are computed at its
rows then."""
SHARE = 0.5
"""A value is computed at the rows that are read of it where these are less than this share of
all."""

STEP = 8.0
"""Sizes are noted as multiples of those expected by powers of it: graphs alike share a program."""


@dataclass
class Sizes:
    """Expected numbers of stored rows, by domain."""

    env: SetEnv
    stats: dict[str, float] = field(default_factory=dict[str, float])
    degree: float = DEGREE
    _guesses: dict[str, float] = field(default_factory=dict[str, float])

    @staticmethod
    def of(func: FuncOp, env: SetEnv, degree: float = DEGREE) -> Sizes:
        """The sizes that `func` says, in its attribute or by an op, or the defaults."""
        stats = _constant_sizes(func)
        attr = func.attributes.get(STATS)
        if isinstance(attr, DictionaryAttr):
            for name, value in attr.data.items():
                if isinstance(value, IntegerAttr | FloatAttr):
                    stats[name] = float(value.value.data)
        return Sizes(env, stats, degree)

    def set(self, name: str) -> float:
        """The rows of a set: as said, or as its kind suggests. A set with two maps that are not
        injective is an edge set; one with an injective map is as large as what it selects from."""
        if name in self.stats:
            return self.stats[name]
        if name not in self._guesses:
            self._guesses[name] = NODES  # what a set that maps into itself finds on the way
            self._guesses[name] = self._guess(name)
        return self._guesses[name]

    def is_plain(self, name: str) -> bool:
        """Whether the size of a set follows from no other set's: nodes, of one type or graph."""
        info = self.env.info(name)
        maps = info.maps.values()
        return (
            not info.type.part_names and len(maps) < 2 and all("mono" not in m.flags for m in maps)
        )

    def _guess(self, name: str) -> float:
        if self.is_plain(name):
            return NODES
        info = self.env.info(name)
        if info.type.part_names:
            return sum(self.set(p) for p in info.type.part_names)
        maps = info.maps.values()
        if selected := [m.codomain for m in maps if "mono" in m.flags]:
            return min(self.set(c) for c in selected)
        return self.degree * max(self.set(m.codomain) for m in maps)

    def rows(self, dom: Dom) -> float:
        """The stored rows of a domain: pairs are taken to be half as many as the edges."""
        if dom.set == UNIT:
            return 1.0
        if not dom.keys:
            return self.set(dom.set)
        ends = [self.set(self.env.codomain(dom.set, k)) for k in dom.keys]
        return ends[0] if len(ends) == 1 else min(math.prod(ends), self.set(dom.set) / 2)

    def bytes(self, t: RowsType) -> float:
        """The memory that a value takes."""
        return self.rows(t.dom) * row_bytes(t)

    def is_edges(self, dom: Dom) -> bool:
        """Whether a value on `dom` has more rows than the nodes of the graph: one for each row, or
        pair, of a set with two ends."""
        if dom.set == UNIT or len(dom.keys) == 1:
            return False
        maps = self.env.info(dom.set).maps.values()
        ends = [m.codomain for m in maps if not {"mono", "partial"} & set(m.flags)]
        return len(ends) >= 2


def note_sizes(func: FuncOp, counts: Mapping[str, float]) -> None:
    """Writes down, in `inter.stats`, which set arguments of `func` are far larger or smaller than
    expected; `counts` has their rows in a graph, or on average over graphs, by name.

    Only the shape counts: the largest set of nodes is taken to have the usual size, so a graph of
    few nodes gets the program of a large one, where time matters. A set with fewer rows than the
    sets that it reads from, as an index has, is noted in powers of 2: what is computed where
    depends on that. Sets that are empty are left out: they will be full in another graph.
    """
    env = SetEnv.of(func)
    noted = Sizes.of(func, env)
    here = Sizes(env, dict(noted.stats))
    known = [s for s, n in counts.items() if n and s in env.sets and s not in noted.stats]
    top = max((counts[s] for s in known if noted.is_plain(s)), default=0)
    for name in sorted(known, key=lambda s: not noted.is_plain(s)) if top else ():
        expected = here.set(name)
        here.stats[name] = counts[name] * NODES / top
        ends = [m.codomain for m in env.info(name).maps.values()]
        share = here.stats[name] / max(map(here.set, ends)) if ends else 1.0
        if 0 < (step := in_steps(share)) < 1:
            noted.stats[name] = max(map(noted.set, ends)) * step
        elif steps := round(math.log(here.stats[name] / expected, STEP)):
            noted.stats[name] = max(1, round(noted.set(name) * STEP**steps))
        else:
            continue
        note_size(func, name, noted.stats[name])


def note_subsets(func: FuncOp, shares: Mapping[str, float]) -> None:
    """Writes down, in `inter.stats`, the sizes of sets of `func` that find few rows of others:
    `shares` has how many each has for one row of the set that it is a part of, or else of what its
    maps lead to (the largest), by name, a set behind those that it is of.

    In powers of 2, for how many rows of a layer are needed depends on them. Sets that are empty or
    find nearly all rows are left out: they will be full in another graph.
    """
    sizes = Sizes.of(func, SetEnv.of(func))
    for name, share in shares.items():
        if 0 < (step := in_steps(share)) < 1:
            maps = sizes.env.info(name).maps
            # a part has the maps of the whole, too, which lead anywhere
            of = [maps[PARENT]] if PARENT in maps else maps.values()
            sizes.stats[name] = max(sizes.set(m.codomain) for m in of) * step
            note_size(func, name, sizes.stats[name])


def in_steps(share: float) -> float:
    """The nearest power of 2, or 0."""
    return 2.0 ** round(math.log2(share)) if share > 0 else 0.0


def note_size(func: FuncOp, name: str, size: float) -> None:
    """Writes down the size of one set of `func`."""
    attr = func.attributes.get(STATS)
    known = dict(attr.data) if isinstance(attr, DictionaryAttr) else {}
    known[name] = IntegerAttr(max(1, round(size)), i64)
    func.attributes[STATS] = DictionaryAttr(known)


def _constant_sizes(func: FuncOp) -> dict[str, float]:
    """The sets whose size the program fixes: ranges, and those whose rows are parameters."""
    found: dict[str, float] = {}
    for op in func.body.block.ops:
        match op:
            case RangeOp():
                found[set_name(op.results[0])] = float(op.size.value.data)
            case AsRowsOp():
                found[set_name(op.set)] = float(rows(op.x).dims[0])
            case AsUnitOp():
                found[set_name(op.set)] = float(rows(op.results[0]).dims[0])
            case _:
                pass
    return found


def row_bytes(t: RowsType) -> int:
    """The memory that one row takes."""
    return math.prod(t.dims) * element_bytes(t)


def element_bytes(t: RowsType) -> int:
    """The memory that one number takes; an i1 is a byte."""
    if is_bool(t.elem):
        return 1
    assert isinstance(t.elem, FixedBitwidthType)
    return t.elem.size
