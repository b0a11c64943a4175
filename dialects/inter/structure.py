"""Structure ops: sets made from sets. They are pure and depend on the graph alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Operation
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from ..assembly import RESULT, TYPED, op_definition
from .base import StructureOp
from .sets import SetEnv
from .types import (
    UNIT,
    Dom,
    Map,
    RowsType,
    SetType,
    is_bool,
    is_integer,
    row_text,
    rows,
    set_name,
    set_type,
    unstrs,
)

PARENT = "parent"
OLD = "old"


# ---------------------------------------------------------------- types of the results


def _restricted(maps: Mapping[str, Map]) -> dict[str, Map]:
    """Maps seen from a subset: an old `parent` is dropped, `onto` does not survive."""
    return {
        k: Map(m.codomain, tuple(f for f in m.flags if f != "onto"))
        for k, m in maps.items()
        if k != PARENT
    }


def _about(
    t: SetType, maps: Mapping[str, Map]
) -> tuple[list[tuple[str, str]], list[tuple[str, ...]]]:
    """The equations and pairs of `t` that speak of these maps only."""

    def known(*paths: str) -> bool:
        return all(p.split(".")[0] in maps for p in paths)

    eqs = [(a, b) for a, b in t.equations if known(a, b)]
    return eqs, [p for p in t.pair_keys if known(*p)]


def filter_type(name: str, t: SetType) -> SetType:
    """What `inter.filter` of a set of type `t` makes."""
    maps = _restricted(t.map_dict())
    eqs, pairs = _about(t, maps)
    return SetType.get(name, maps | {PARENT: Map(t.label, ("mono",))}, (), eqs, pairs)


def loops_type(name: str, t: SetType, remaining: bool) -> SetType:
    """What `inter.loops` of a set of type `t` makes."""
    node = t.map_dict()["src"].codomain
    maps = {k: Map(node, ("mono", "onto")) for k in ("src", "dst")}
    if remaining:
        maps[OLD] = Map(t.label, ("partial",))
    return SetType.get(name, maps)


def union_type(
    name: str, parts: Sequence[SetType], ends: Mapping[str, str] | None = None
) -> SetType:
    """What `inter.union` of such sets makes: the maps that all share, and those that lead to the
    unions `ends` of where the parts' maps lead."""
    dicts = [t.map_dict() for t in parts]
    maps: dict[str, Map] = {}
    for label, m in dicts[0].items():
        of_parts = [d[label] for d in dicts if label in d]
        if len(of_parts) < len(parts):
            continue
        if all(x.codomain == m.codomain for x in of_parts):
            flags = {f for x in of_parts for f in x.flags if f in ("partial", "onto")}
            maps[label] = Map(m.codomain, tuple(sorted(flags)))
        elif ends and label in ends:
            flags = {f for x in of_parts for f in x.flags if f == "partial"}
            maps[label] = Map(ends[label], tuple(flags))
    shared = {k: m for k, m in maps.items() if not ends or k not in ends}
    about = [_about(t, shared) for t in parts]
    eqs = [e for e in about[0][0] if all(e in a[0] for a in about)]
    partial = {k for k, m in maps.items() if "partial" in m.flags}
    pairs = dict.fromkeys(p for a in about for p in a[1])
    total = [p for p in pairs if not any(k.split(".")[0] in partial for k in p)]
    return SetType.get(name, maps, [t.label for t in parts], eqs, total)


def attach_type(name: str, t: SetType, new: Mapping[str, Map]) -> SetType:
    """What `inter.attach` makes of a set of type `t` with the maps `new`."""
    old = {k: m for k, m in t.map_dict().items() if k != PARENT}
    eqs, pairs = _about(t, old)
    maps = old | dict(new) | {PARENT: Map(t.label, ("mono", "onto"))}
    return SetType.get(name, maps, (), eqs, pairs)


def _through_parent(t: SetType) -> list[tuple[str, str]]:
    return [(f"{PARENT}.{k}", k) for k in t.map_dict() if k != PARENT]


# ---------------------------------------------------------------- ops


@op_definition
class FilterOp(StructureOp):
    """The rows of a set that satisfy a predicate, in their order: `inter.filter %g {no_loops}`
    (src and dst differ) or `inter.filter %g, %mask` (an i1 per row)."""

    name = "inter.filter"
    set = operand_def(SetType)
    mask = opt_operand_def(RowsType)
    no_loops = opt_prop_def(UnitAttr)
    assembly_format = f"$set (`,` $mask^)? {TYPED}"

    def verify_(self) -> None:
        if (self.mask is None) == (self.no_loops is None):
            raise VerifyException("filter by a mask or by {no_loops}: give exactly one of them")
        t = set_type(self.set)
        if self.mask is None:
            need_loops(t)
        elif rows(self.mask).dims or not is_bool(rows(self.mask).elem):
            raise VerifyException(f"the mask is one i1 per row, not {self.mask.type}")
        self.need_maps(filter_type(self.set_type.label, t))

    def known_equations(self) -> Sequence[tuple[str, str]]:
        return _through_parent(set_type(self.set))

    def check_sets(self, env: SetEnv) -> None:
        if self.mask is not None:
            env.readable(rows(self.mask).dom, Dom(set_name(self.set)), "the mask")


def need_loops(t: SetType) -> None:
    """Raises VerifyException unless `src` and `dst` go to one set."""
    m = t.map_dict()
    if "src" not in m or "dst" not in m or m["src"].codomain != m["dst"].codomain:
        raise VerifyException(
            f"set {t.label} can have no loops: its maps src and dst must go to one set"
        )


@op_definition
class IntervalOp(StructureOp):
    """`inter.interval %S, %lo, %hi`: the rows from lo to hi - 1, with the rules of Python's slices:
    a negative bound counts from the end, and one beyond an end means that end."""

    name = "inter.interval"
    set = operand_def(SetType)
    lo = operand_def(RowsType)
    hi = operand_def(RowsType)
    assembly_format = f"$set `,` $lo `,` $hi {TYPED}"

    def verify_(self) -> None:
        for bound in (self.lo, self.hi):
            need_size(rows(bound), "a bound")
        self.need_maps(filter_type(self.set_type.label, set_type(self.set)))

    def known_equations(self) -> Sequence[tuple[str, str]]:
        return _through_parent(set_type(self.set))


@op_definition
class LoopsOp(StructureOp):
    """One edge (v, v) per node. With {remaining}, `old` finds the last loop that the graph already
    had there (PyG's add_remaining_self_loops keeps its weight)."""

    name = "inter.loops"
    set = operand_def(SetType)
    remaining = opt_prop_def(UnitAttr)
    assembly_format = f"$set {TYPED}"

    def verify_(self) -> None:
        t = set_type(self.set)
        need_loops(t)
        self.need_maps(loops_type(self.set_type.label, t, self.remaining is not None))

    def known_equations(self) -> Sequence[tuple[str, str]]:
        return (("src", "dst"),)


@op_definition
class UnionOp(StructureOp):
    """The disjoint union `inter.union %a, %b`, rows of %a first, with the maps that all share.

    Where the map `src` of %a leads to %M and that of %b to %N, and the type of the result says
    `src: U`, a union of %M and %N, it leads to where these rows lie in U."""

    name = "inter.union"
    sets = var_operand_def(SetType)
    assembly_format = f"$sets {TYPED}"

    def verify_(self) -> None:
        if not self.sets:
            raise VerifyException("a union needs a part")
        types = [set_type(s) for s in self.sets]
        self.need_maps(union_type(self.set_type.label, types, self.joined_ends()))

    def joined_ends(self) -> dict[str, str]:
        """The maps that lead to a union of what those of the parts lead to, and its name."""
        dicts = [set_type(s).map_dict() for s in self.sets]
        joined: dict[str, str] = {}
        for label, m in self.set_type.map_dict().items():
            ends = {d[label].codomain for d in dicts if label in d}
            if len(ends) > 1:
                joined[label] = m.codomain
        return joined

    def places(self, env: SetEnv, label: str) -> list[int]:
        """Of a map that leads to a union, the part of that to which the map of each part leads.

        Raises:
            VerifyException: to none, or to several.
        """
        end = self.joined_ends()[label]
        names = env.info(end).type.part_names
        found: list[int] = []
        for s in self.sets:
            codomain = set_type(s).map_dict()[label].codomain
            if names.count(codomain) != 1:
                raise VerifyException(
                    f"the map {label} leads to {end}, and that of {set_name(s)} to {codomain}: "
                    f"the type of {end} must name it once among its parts"
                )
            found.append(names.index(codomain))
        return found

    def check_sets(self, env: SetEnv) -> None:
        for label in self.joined_ends():
            self.places(env, label)


@op_definition
class AttachOp(StructureOp):
    """`inter.attach %S (src = %s, dst = %d)`: integer rows on a set become maps of it. Their bounds
    (and `mono`, `onto` and equations that the type claims) are checked at run time; with {checked}
    also where nobody needs the set."""

    name = "inter.attach"
    set = operand_def(SetType)
    xs = var_operand_def(RowsType)
    labels = prop_def(ArrayAttr[StringAttr])
    checked = opt_prop_def(UnitAttr)
    assembly_format = f"$set custom<Attached>($labels, $xs) {TYPED}"

    def new_maps(self) -> dict[str, Map]:
        """The attached maps by label, as the result's type has them."""
        have = self.set_type.map_dict()
        for k in unstrs(self.labels):
            if k not in have:
                raise VerifyException(f"the result set must say where the map {k} goes: `{k}: SET`")
        return {k: have[k] for k in unstrs(self.labels)}

    def verify_(self) -> None:
        labels, t = unstrs(self.labels), set_type(self.set)
        if len(labels) != len(self.xs) or not labels:
            raise VerifyException("attach one value per new map, at least one")
        for k in labels:
            if k == PARENT or k in t.map_dict() or labels.count(k) > 1:
                raise VerifyException(f"the new set would have two maps {k}: choose another name")
        for k, x in zip(labels, self.xs, strict=True):
            if rows(x).dims or not is_integer(rows(x).elem):
                raise VerifyException(
                    f"map {k} needs one integer per row, not rows of {row_text(rows(x).dims)} "
                    f"{rows(x).elem}"
                )
        want = attach_type(self.set_type.label, t, self.new_maps())
        claims = (*want.equations, *self.set_type.equations)
        maps = {k: want.map_dict()[k] for k in self.set_type.map_dict() if k in want.map_dict()}
        self.need_maps(SetType.get(want.label, maps | want.map_dict(), (), dict.fromkeys(claims)))

    def known_equations(self) -> Sequence[tuple[str, str]]:
        return _through_parent(set_type(self.set))

    def check_sets(self, env: SetEnv) -> None:
        for k, x in zip(unstrs(self.labels), self.xs, strict=True):
            env.readable(rows(x).dom, Dom(set_name(self.set)), f"the value of map {k}")


@op_definition
class RangeOp(StructureOp):
    """`inter.range 3`: a set of constant size, without maps."""

    name = "inter.range"
    size = prop_def(IntegerAttr[I64])
    assembly_format = f"$size {RESULT}"

    def verify_(self) -> None:
        if self.size.value.data < 0:
            raise VerifyException(f"a set of {self.size.value.data} rows does not exist")
        self.need_maps(SetType.get(self.set_type.label))


@op_definition
class SizedOp(StructureOp):
    """`inter.sized %n`: a set whose size is known at run time only (batch.max() + 1)."""

    name = "inter.sized"
    n = operand_def(RowsType)
    assembly_format = f"$n {TYPED}"

    def verify_(self) -> None:
        need_size(rows(self.n), "a size")
        self.need_maps(SetType.get(self.set_type.label))


def need_size(t: RowsType, what: str) -> None:
    """Raises VerifyException unless `t` is one integer."""
    if t.dom.set != UNIT or t.dims or not is_integer(t.elem):
        raise VerifyException(f"{what} is rows<unit, i64>, not {t}")


def is_check(op: Operation) -> bool:
    """Whether an op is needed for what it checks, whoever uses its set."""
    return isinstance(op, AttachOp) and op.checked is not None


STRUCTURE_OPS = [FilterOp, IntervalOp, LoopsOp, UnionOp, AttachOp, RangeOp, SizedOp]
