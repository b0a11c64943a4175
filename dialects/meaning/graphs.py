"""Random multigraphs, and random arguments for any function of inter.

The graphs are small and nasty: parallel edges, loops, isolated nodes, hubs, empty relations, no
edges at all. They obey what the types declare (mono, onto, partial, parts, equations).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import InterpretationError

from ...runtime.carrier import Carrier
from ..inter import structure
from ..inter.base import StructureOp
from ..inter.reduce import DropoutOp
from ..inter.sets import SetEnv, SetInfo
from ..inter.types import UNIT, Dom, RowsType, SetType, is_bool, is_float, set_name
from ..inter.values import AsRowsOp, AsUnitOp
from .inter import interpreter
from .phases import argument_names
from .world import Index, SetVal, World

ARITHMETIC = frozenset(f"inter.{n}" for n in ("add", "sub", "mul", "floordiv", "mod", "where"))
_TRIES = 32
_RESTARTS = 7


class NoArguments(InterpretationError, ValueError):
    """No arguments were found that obey the function's types."""


def random_arguments(
    func: FuncOp,
    rng: np.random.Generator,
    sizes: Mapping[str, int] | None = None,
    values: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Arguments for a function, in order: `SetVal`s and arrays.

    `sizes` fixes the number of rows of sets by name, `values` arguments by name. Integers that
    become maps are drawn within the codomain. Raises NoArguments where the declarations of a set
    cannot be met.
    """
    given = dict(values or {})
    names = argument_names(func)
    maker = _Maker(func, rng, dict(sizes or {}))
    for a, name in zip(func.body.block.args, names, strict=True):
        if isinstance(a.type, SetType) and name in given:
            maker.sets[a.type.label] = given[name]
    maker.make_sets()
    out: dict[SSAValue, Any] = {}
    late: list[BlockArgument] = []
    for a, name in zip(func.body.block.args, names, strict=True):
        if isinstance(a.type, SetType):
            out[a] = maker.sets[a.type.label]
        elif name in given:
            out[a] = given[name]
        elif isinstance(a.type, RowsType) and maker.knows(a.type.dom):
            out[a] = maker.rows(a)
        else:
            late.append(a)
    if late:  # rows of sets that the body makes
        maker.sets |= made_sets(func, out)
        for a in late:
            out[a] = maker.rows(a)
    return [out[a] for a in func.body.block.args]


def made_sets(
    func: FuncOp, known: Mapping[SSAValue, Any], carrier: Carrier | None = None
) -> dict[str, SetVal]:
    """The sets that follow from some of the arguments, the function's own included, on one rank of
    several with its `carrier`."""
    values = dict(known)
    it = interpreter(ModuleOp([]), carrier)
    it.push_scope("sets")
    it.set_values(values.items())
    wanted: set[Operation] = set()
    for op in reversed(list(func.body.block.ops)):
        if isinstance(op, StructureOp) or any(
            u.operation in wanted for r in op.results for u in r.uses
        ):
            wanted.add(op)
    for op in func.body.block.ops:
        if op in wanted and all(x in values for x in op.operands):
            results = it.run_op(op, tuple(values[x] for x in op.operands))
            new = list(zip(op.results, results, strict=True))
            it.set_values(new)
            values.update(new)
    return {v.type.label: x for v, x in values.items() if isinstance(v.type, SetType)}


@dataclass
class _Maker:
    func: FuncOp
    rng: np.random.Generator
    sizes: dict[str, int]
    sets: dict[str, SetVal] = field(default_factory=dict[str, SetVal])

    def __post_init__(self) -> None:
        self.env = SetEnv.of(self.func)
        self.born = [a.type for a in self.func.body.block.args if isinstance(a.type, SetType)]
        self.wanted = dict(fixed_sizes(self.func)) | self.sizes
        for op in self.func.body.block.ops:  # sets of constant size may be named in the signature
            if isinstance(op, structure.RangeOp):
                self.sets[op.set_type.label] = SetVal(op.size.value.data)
        self.world = World(self.env, self._set)

    def _set(self, name: str) -> SetVal:
        if name not in self.sets:
            raise NoArguments(f"set {name} depends on what the body computes: give its value")
        return self.sets[name]

    def knows(self, d: Dom) -> bool:
        """Whether the sets behind a domain are there already."""
        return d.set == UNIT or all(n in self.sets for n in self.behind(d.set))

    def behind(self, name: str, seen: set[str] | None = None) -> set[str]:
        """A set and all that its maps lead to."""
        seen = set() if seen is None else seen
        if name not in seen:
            seen.add(name)
            for m in self.env.info(name).maps.values():
                self.behind(m.codomain, seen)
        return seen

    # ------------------------------------------------------------ sets

    def make_sets(self) -> None:
        """All set arguments, codomains and parts first."""
        fixed = dict(self.sets)
        for _ in range(_RESTARTS):
            try:
                return self._make_all()
            except NoArguments:  # perhaps the codomains were drawn badly
                self.sets.clear()
                self.sets.update(fixed)
        self._make_all()

    def _make_all(self) -> None:
        todo = [t for t in self.born if t.label not in self.sets]
        while todo:
            ready = [t for t in todo if self._needs(t) <= set(self.sets)]
            if not ready:
                names = ", ".join(t.label for t in todo)
                raise NoArguments(f"sets {names} need each other: give one of them in `values`")
            for t in ready:
                self.sets[t.label] = self._make(self.env.info(t.label))
                todo.remove(t)

    def _needs(self, t: SetType) -> set[str]:
        needed = {m.codomain for m in t.map_dict().values()} | set(t.part_names)
        return needed - {t.label}

    def _make(self, info: SetInfo) -> SetVal:
        made = SetVal(self._size(info))
        self.sets[info.type.label] = made
        ways = derivations(info.equations, info.maps)
        drawn = [k for k in info.maps if k not in ways]
        strict = {k for k in drawn if {"mono", "onto"} & set(info.maps[k].flags)}
        left = [e for e in info.equations if not _solved(e, ways)]
        self._draw(info, made, drawn, ways)
        for _ in range(_TRIES):
            bad = self._violations(info, left)
            if not len(bad):
                return made
            if not info.type.part_names:
                for k in (k for k in drawn if k not in strict):
                    size, flags = self.sets[info.maps[k].codomain].n, info.maps[k].flags
                    made.maps[k][bad] = draw_map(self.rng, len(bad), size, frozenset(flags))
                self._derive(info, made, ways)
        good = np.setdiff1d(np.arange(made.n), self._violations(info, left))
        wanted = info.type.label in self.wanted
        if strict or info.type.part_names or (wanted and not len(good)):
            raise NoArguments(
                f"found no set {info.type.label} of {made.n} rows that obeys its type "
                f"{info.type}: give it in `values`"
            )
        pick = self.rng.choice(good, made.n) if len(good) else good
        made.maps = {k: m[pick] for k, m in made.maps.items()}
        made.n = len(pick)
        return made

    def _violations(self, info: SetInfo, equations: Iterable[tuple[str, str]]) -> Index:
        """The rows that break an equation; all of them where a map is not as mono or onto as it
        must be."""
        name = info.type.label
        bad = np.zeros(self.sets[name].n, np.bool_)
        for a, b in equations:
            bad |= self.world.path(name, a) != self.world.path(name, b)
        for k, m in info.maps.items():
            index = self.sets[name].maps[k]
            images = len(np.unique(index[index >= 0]))
            repeats = "mono" in m.flags and images < int((index >= 0).sum())
            misses = "onto" in m.flags and images < self.sets[m.codomain].n
            if repeats or misses:
                bad[:] = True
        return np.flatnonzero(bad)

    def _size(self, info: SetInfo) -> int:
        t = info.type
        if t.part_names:
            return sum(self.sets[p].n for p in t.part_names)
        total = [m for m in info.maps.values() if "partial" not in m.flags]
        ends = [(m, self.sets[m.codomain].n) for m in total if m.codomain != t.label]
        if t.label in self.wanted:
            n = self.wanted[t.label]
        elif not info.maps:
            n = int(self.rng.integers(1, 9))
        else:
            n = 0 if self.rng.random() < 0.1 else int(self.rng.integers(1, 25))
        least = max((size for m, size in ends if "onto" in m.flags), default=0)
        most = min((size for m, size in ends if "mono" in m.flags), default=max(n, least))
        if any(size == 0 for _, size in ends):  # a total map leads nowhere
            n = most = 0
        if least > most:
            raise NoArguments(f"set {t.label} would be mono into {most} and onto {least} rows")
        return min(max(n, least), most)

    def _draw(self, info: SetInfo, made: SetVal, drawn: list[str], ways: Mapping[str, str]) -> None:
        n = made.n
        made.maps = {}
        for k in drawn:
            m = info.maps[k]
            size = self.sets[m.codomain].n
            parts = [self.sets[p] for p in info.type.part_names]
            shared = all(
                k in self.env.info(p).maps and self.env.info(p).maps[k].codomain == m.codomain
                for p in info.type.part_names
            )
            if parts and shared:
                made.maps[k] = np.concatenate([p.maps[k] for p in parts])
            else:
                made.maps[k] = draw_map(self.rng, n, size, frozenset(m.flags))
        free = [k for k in drawn if not {"mono", "onto"} & set(info.maps[k].flags)]
        if free == drawn and not info.type.part_names and n > 1:
            again = self.rng.integers(0, n, n)  # parallel edges: some rows repeat others
            pick = np.where(self.rng.random(n) < 0.2, again, np.arange(n))
            made.maps = {k: m[pick] for k, m in made.maps.items()}
            if "src" in free and "dst" in free:
                if info.maps["src"].codomain == info.maps["dst"].codomain:
                    loop = self.rng.random(n) < 0.15
                    made.maps["dst"] = np.where(loop, made.maps["src"], made.maps["dst"])
        self._derive(info, made, ways)

    def _derive(self, info: SetInfo, made: SetVal, ways: Mapping[str, str]) -> None:
        """The maps that equations give, and all maps in their order."""
        for k, path in ways.items():
            made.maps[k] = self.world.path(info.type.label, path)
        made.maps = {k: made.maps[k] for k in info.maps}

    # ------------------------------------------------------------ rows

    def rows(self, a: BlockArgument) -> NDArray[Any]:
        """Numbers for an argument that is rows."""
        t = a.type
        if not isinstance(t, RowsType):
            raise NoArguments(f"argument {a.name_hint or a.index} is neither a set nor rows: {t}")
        shape = (self.world.count(t.dom), *t.dims)
        if is_float(t.elem):
            return self.rng.standard_normal(shape)
        if is_bool(t.elem):
            return self.rng.random(shape) < 0.5
        bound = self._bound(a)
        if bound < 1 and np.prod(shape):
            raise NoArguments(
                f"argument {a.name_hint or a.index} becomes a map into a set without rows: give "
                "that set a row in `sizes`, or the argument's set none"
            )
        return self.rng.integers(0, max(bound, 1), shape)

    def _bound(self, a: BlockArgument) -> int:
        """Integers below this can become all the maps that they become."""
        ends, arithmetic, is_key = integer_uses(a)
        if is_key:
            return 2**62
        sizes = [self.sets[n].n for n in ends if n in self.sets]
        if sizes and arithmetic:
            sizes += [s.n for s in self.sets.values() if s.n]
        return min(sizes, default=4)


def _solved(equation: tuple[str, str], ways: Mapping[str, str]) -> bool:
    a, b = equation
    return ways.get(a) == b or ways.get(b) == a


def derivations(equations: Iterable[tuple[str, str]], maps: Iterable[str]) -> dict[str, str]:
    """Maps that an equation gives as another path: for `parent.src = src`, src as parent.src."""
    ways: dict[str, str] = {}
    labels = set(maps)
    for a, b in equations:
        for label, path in ((a, b), (b, a)):
            head = path.split(".")[0]
            used = {p.split(".")[0] for p in ways.values()}
            if label in labels and label not in ways and label not in used and head not in ways:
                if head != label:
                    ways[label] = path
                    break
    return ways


def draw_map(rng: np.random.Generator, n: int, size: int, flags: frozenset[str]) -> Index:
    """The index array of one map of `n` rows into a set of `size`."""
    if "mono" in flags:
        images = np.full(max(n, size), -1, np.int64)  # beyond the codomain: a partial map
        images[:size] = rng.permutation(size)
        return rng.permutation(images[:n]) if "partial" in flags else images[:n]
    if n == 0:
        return np.zeros(0, np.int64)
    if "onto" in flags:
        rest = rng.integers(0, size, n - size) if size else np.zeros(0, np.int64)
        return rng.permutation(np.concatenate([np.arange(size), rest])).astype(np.int64)
    if size == 0:
        return np.full(n, -1, np.int64)
    used = rng.permutation(size)[: 1 + int(rng.integers(0, size))]  # the others are isolated
    index = rng.choice(used, n)
    if rng.random() < 0.3:
        index[rng.random(n) < 0.6] = used[0]  # a hub
    if "partial" in flags:
        index[rng.random(n) < 0.4] = -1
    return index.astype(np.int64)


def fixed_sizes(func: FuncOp) -> dict[str, int]:
    """Sizes that as_rows and as_unit ask of sets."""
    out: dict[str, int] = {}
    for op in func.body.block.ops:
        if isinstance(op, AsRowsOp):
            out[set_name(op.set)] = _leading(op.x)
        elif isinstance(op, AsUnitOp):
            out[set_name(op.set)] = op.type.dims[0]
    return out


def _leading(v: SSAValue) -> int:
    if not isinstance(v.type, RowsType) or not v.type.dims:
        raise NoArguments(f"{v.type} has no leading dimension")
    return v.type.dims[0]


def integer_uses(a: SSAValue) -> tuple[set[str], bool, bool]:
    """(the sets that an integer value leads to as a map, whether there is arithmetic on the way,
    whether it is the key of a dropout)"""
    ends: set[str] = set()
    arithmetic = is_key = False
    todo, seen = [a], {a}
    while todo:
        v = todo.pop()
        for use in v.uses:
            op = use.operation
            if isinstance(op, DropoutOp):
                is_key |= use.index == 1
            elif isinstance(op, structure.AttachOp):
                if use.index:
                    ends.add(list(op.new_maps().values())[use.index - 1].codomain)
            else:
                arithmetic |= op.name in ARITHMETIC
                for r in op.results:
                    if r not in seen and isinstance(r.type, RowsType) and not is_float(r.type.elem):
                        seen.add(r)
                        todo.append(r)
    return ends, arithmetic, is_key
