"""Which maps each set needs, and what they are called.

An integer value used as an index is a map of the set it lives on. A use on a filter or a union is
a use on the sets they were made from, where the map can be a column of an argument; names follow
from use: reduced along `dst`, read through `src`, into a table of constant size `rel`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..values.elements import INTEGERS
from ..values.nodes import Filter, Loops, Node, Set, Sized, Union, behind, is_const
from ..values.sizes import Sizes, sets_behind

MapKey = tuple[int, int]
"""(number of the index node, number of the codomain)"""


def plain_index(v: Node) -> Node:
    """An index without casts between integer types."""
    while v.op == "cast" and v.elem in INTEGERS and v.args[0].elem in INTEGERS:
        v = v.args[0]
    return v


@dataclass
class Use:
    """An index value with the set it leads to and how it is used: reduce, gather, table, relation,
    src, dst."""

    index: Node
    codomain: Set
    roles: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Column:
    """One number a row of an integer input: `index` in the dimensions other than the row axis."""

    source: Node
    index: tuple[int, ...]


def column_of(v: Node) -> Column | None:
    """The input column that a value is, found by carrying out its shape ops on positions."""
    chain: list[Node] = []
    v = plain_index(v)
    if v.shape != ():
        return None
    while v.op in ("slice", "reshape", "transpose"):
        chain.append(v)
        v = v.args[0]
    if v.op != "input" or v.elem not in INTEGERS or v.set is None:
        return None
    positions = np.arange(int(np.prod(v.shape, dtype=np.int64))).reshape(v.shape)
    for op in reversed(chain):
        if op.op == "slice":
            where = [slice(None)] * positions.ndim
            where[op.attrs["dim"]] = slice(op.attrs["lo"], op.attrs["hi"], op.attrs["step"])
            positions = positions[tuple(where)]
        elif op.op == "reshape":
            positions = positions.reshape(op.shape)
        else:
            positions = positions.transpose(op.attrs["order"])
    flat = int(positions.reshape(()))
    return Column(v, tuple(int(i) for i in np.unravel_index(flat, v.shape)) if v.shape else ())


_RANGE_CHECKS = ("ne", "lt", "le", "gt", "ge")


def chosen_by_value(subset: Filter, index: Node) -> bool:
    """Whether a filter's mask compares an index, or a number beside it in the same input, with a
    number, as one does to drop what is out of range: only the rows that stay have to be in range.
    An index may be computed: of a pooled graph, -1 stands for nodes that went.
    """
    inputs = (v for v in row_wise_operands(index) if v.op == "input" and v.set is not None)
    sources = {plain_index(index).number, *(v.number for v in inputs if v.elem in INTEGERS)}
    for v in row_wise_operands(subset.mask):
        name = v.attrs["name"] if v.op == "pointwise" else ""
        if not any(a.set is None and (is_const(a) or a.op == "size") for a in v.args):
            continue
        if name == "eq" and plain_index(index) in map(plain_index, v.args):
            return True
        if name in _RANGE_CHECKS and any(x.number in sources for x in row_wise_operands(v)):
            return True
    return False


def row_wise_operands(v: Node) -> Iterator[Node]:
    """A value and what it is computed from row by row."""
    return behind(v, enter=lambda x: x.op not in ("at", "reduce", "softmax"))


def inherits(subset: Filter, index: Node) -> bool:
    """Whether an index of a filter's rows is a map of the set that it filters. Rows beside a slice
    need not be in range: a sampled batch keeps the edges among the nodes that it keeps."""
    sliced = subset.mask.op == "interval"
    return index.op == "parent" and not sliced and not chosen_by_value(subset, index.args[0])


def sets_of(v: Node) -> Iterator[Set]:
    """The sets that a node speaks of."""
    if v.set is not None:
        yield v.home
    for x in v.attrs.values():
        if isinstance(x, Set):
            yield x.find()
        elif isinstance(x, tuple):
            yield from (y.find() for y in x if isinstance(y, Set))


def indices_of(v: Node) -> Iterator[tuple[Node, Set, str]]:
    """The indices on the set `over` that a node goes through, where they lead, and their roles."""
    match v.op:
        case "at":
            table = v.attrs["codomain"].find().expr.is_Integer
            yield v.args[1], v.attrs["codomain"].find(), "table" if table else "gather"
        case "reduce" if len(v.args) == 2:
            yield v.args[1], v.home, "reduce"
        case "softmax":
            yield v.args[1], v.attrs["codomain"].find(), "reduce"
        case "mean_per_pair" | "count_per_pair":
            ends = zip(v.args[-2:], v.attrs["codomains"], strict=True)
            for (index, s), roles in zip(ends, (("reduce", "pair"), ("relation",)), strict=True):
                for role in roles:
                    yield index, s.find(), role


def nodes_of(s: Set) -> Iterator[Node]:
    """The values that a set's birth needs."""
    if isinstance(s.origin, Filter):
        yield s.origin.mask
    elif isinstance(s.origin, Loops):
        yield from (s.origin.src, s.origin.dst)


class Program:
    """The part of a walk's values that results need: nodes in order, sets, uses of maps."""

    def __init__(
        self, sizes: Sizes, items: dict[str, Node], roots: Iterable[Node], homes: Iterable[Set]
    ) -> None:
        self.sizes = sizes
        self.items = items
        self.nodes: list[Node] = []
        self.sets: dict[int, Set] = {}
        self.uses: dict[int, dict[MapKey, Use]] = {}
        self.filtered_by_relation: set[int] = set()
        self.computed_ends: dict[int, set[str]] = {}
        todo = list(roots)
        for s in homes:  # a result that is one constant everywhere still has rows
            self._reach_set(s, todo)
        self._reach(todo)
        for v in self.nodes:
            for index, codomain, role in indices_of(v):
                self.use(v.attrs["over"], index, codomain, role)
        for s in list(self.sets.values()):
            if isinstance(s.origin, Loops):
                self.use(s.origin.of.find(), s.origin.src, s.origin.nodes, "src")
                self.use(s.origin.of.find(), s.origin.dst, s.origin.nodes, "dst")

    # -------------------------------------------------------------- reach

    def _reach(self, todo: list[Node]) -> None:
        seen: dict[int, Node] = {}
        while todo:
            v = todo.pop()
            if v.number in seen:
                continue
            seen[v.number] = v
            todo.extend(v.args)
            for s in sets_of(v):
                self._reach_set(s, todo)
            if v.op == "size":
                self._reach_size(v, todo)
        self.nodes = [seen[k] for k in sorted(seen)]

    def _reach_set(self, s: Set, todo: list[Node]) -> None:
        s = s.find()
        if s.number in self.sets:
            return
        self.sets[s.number] = s
        todo.extend(nodes_of(s))
        for base in sets_behind(s):
            self._reach_set(base, todo)
        if isinstance(s.origin, Sized) and not self.is_argument(s):
            for symbol in s.expr.free_symbols:
                self._reach_symbol(symbol, todo)

    def _reach_size(self, v: Node, todo: list[Node]) -> None:
        known = self.sizes.by_size.get(str(v.attrs["expr"]))
        if known is not None:
            self._reach_set(known, todo)
            return
        for symbol in v.attrs["expr"].free_symbols:
            if self.sizes.is_unknown(symbol):
                self._reach_symbol(symbol, todo)

    def _reach_symbol(self, symbol: object, todo: list[Node]) -> None:
        if str(symbol) in self.items:
            todo.append(self.items[str(symbol)])
        elif str(symbol) in self.sizes.by_size:
            self._reach_set(self.sizes.by_size[str(symbol)], todo)

    # --------------------------------------------------------------- uses

    def is_argument(self, s: Set) -> bool:
        """Whether a set is given by the caller: its size follows from the placeholders."""
        s = s.find()
        return isinstance(s.origin, Sized) and not any(
            self.sizes.is_unknown(x) for x in s.expr.free_symbols
        )

    def use(self, s: Set, index: Node, codomain: Set, role: str) -> None:
        """Notes a use, and those that follow on the sets that `s` is made from."""
        s, codomain, index = s.find(), codomain.find(), plain_index(index)
        uses = self.uses.setdefault(s.number, {})
        use = uses.setdefault((index.number, codomain.number), Use(index, codomain))
        use.roles.add(role)
        if isinstance(s.origin, Filter):
            if inherits(s.origin, index):
                self.use(s.origin.set, index.args[0], codomain, role)
                return
            if role == "relation":
                self._reserve(s.origin.set)
            if role in ("src", "dst"):
                self._reserve_end(s.origin.set, role)
        elif isinstance(s.origin, Union) and index.op == "stack":
            for part, i in zip(s.origin.parts, index.args, strict=True):
                if i.set is not None:
                    self.use(part, i, codomain, role)
            return
        if role in ("src", "dst") and column_of(index) is None:
            self._reserve_end(s, role)

    def _reserve_end(self, s: Set, role: str) -> None:
        s = s.find()
        self.computed_ends.setdefault(s.number, set()).add(role)
        if isinstance(s.origin, Filter):
            self._reserve_end(s.origin.set, role)

    def _reserve(self, s: Set) -> None:
        s = s.find()
        self.filtered_by_relation.add(s.number)
        if isinstance(s.origin, Filter):
            self._reserve(s.origin.set)

    def reserved(self, s: Set) -> tuple[str, ...]:
        """Labels that no map of a set may have: a filter of it has the map of relations."""
        return ("rel",) if s.find().number in self.filtered_by_relation else ()

    def reserved_for_computed(self, s: Set) -> tuple[str, ...]:
        """Labels that no map which a caller gives may have: self-loops need them for maps that are
        computed (edges of a pooled graph, whose ends are numbers of the nodes that stay)."""
        return (*self.reserved(s), *sorted(self.computed_ends.get(s.find().number, ())))

    def is_identity(self, s: Set, index: Node, codomain: Set) -> bool:
        """Whether an index leads from each row of a set to itself."""
        index = plain_index(index)
        return index.op == "iota" and codomain.find() is s.find() and index.home is s.find()


ORDER = ("dst", "src", "rel")


def named(uses: Iterable[Use], taken: Iterable[str]) -> dict[MapKey, str]:
    """Labels for maps of one set, none of them in `taken`."""
    free = [label for label in ORDER if label not in set(taken)]
    todo = {(u.index.number, u.codomain.number): u for u in uses}
    out: dict[MapKey, str] = {}

    def give(label: str, *roles: str) -> None:
        for key, use in todo.items():
            if label in free and key not in out and all(r in use.roles for r in roles):
                out[key] = label
                free.remove(label)

    give("src", "src")
    give("dst", "dst")
    give("rel", "relation")
    give("dst", "reduce")
    give("src", "gather")
    give("src", "reduce")
    give("dst", "gather")
    give("rel", "table")
    give("src", "table")  # nodes whose number is a constant, beside relations
    used = {*taken, *out.values()}
    for key in todo:
        if key not in out:
            label = next(f"m{i}" for i in range(len(todo) + len(used)) if f"m{i}" not in used)
            out[key] = label
            used.add(label)
    return out


def relation_pairs(roles: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The maps that make classes of edges, (relation, end), by what each label is used for: rows
    that depend on both are the same for all edges of a pair."""
    relations = [k for k in roles if k == "rel"]
    relations += [k for k, use in roles.items() if "relation" in use]
    relations += [k for k, use in roles.items() if "table" in use]
    ends = [k for k, use in roles.items() if use & {"src", "dst", "gather", "reduce"}]
    return [(r, k) for r in relations[:1] for k in ends if k != r]
