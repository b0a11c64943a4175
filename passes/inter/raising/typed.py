"""raise, typed: what is computed for one relation after the other, as one expression over the edges
with their types as a map.

The values per relation are compared: they must be the same expression but for the filter, slices of
a common weight, and other single rows. Where the types are no map yet they are attached to the
edges, as a map `rel` to a set of R rows; edges of another type are filtered out before: that is
once a graph, and costs a call nothing. Weights become rows of that set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.reduce import CountOp, ReduceOp, SoftmaxOp
from ....dialects.inter.shapes import ConcatOp, ContractOp, ReshapeOp, RowReduceOp, SliceOp
from ....dialects.inter.structure import FilterOp, RangeOp
from ....dialects.inter.types import Dom, rows, set_name, set_type
from ....dialects.inter.values import AsRowsOp, AtOp, CastOp, IndexOp
from ..linear.function import ROW_WISE, LinearFunction, is_unit, pointwise
from .constants import constant

END = "dst"


class NoMatch(Exception):
    """The terms are not one expression."""


@dataclass
class Relation:
    """What is computed of one relation: the filtered set, what it filters, the types and the number
    of the relation."""

    term: SSAValue
    filtered: SSAValue
    graph: SSAValue
    types: SSAValue
    number: int


def mask_of(filtered: SSAValue) -> tuple[SSAValue, SSAValue, int] | None:
    """(set, types, number) where a set is `filter %g, types == number`."""
    owner = filtered.owner
    if not isinstance(owner, FilterOp) or owner.mask is None:
        return None
    compared = comparison(owner.mask)
    return None if compared is None else (owner.set, *compared)


def comparison(mask: SSAValue) -> tuple[SSAValue, int] | None:
    """(types, number) where a mask is `types == number`."""
    if (eq := pointwise(mask, "eq")) is None:
        return None
    for types, number in (tuple(eq.operands), tuple(reversed(eq.operands))):
        c = constant(number)
        if isinstance(c, int) and constant(types) is None and not rows(types).dims:
            return types, c
    return None


@dataclass
class Merger:
    """Builds the common expression from the terms' values in parallel, one per relation. `dry`:
    only finds out whether there is one, and builds nothing."""

    fn: LinearFunction
    b: Builder
    group: list[Relation]
    dry: bool = False
    _memo: dict[tuple[str, tuple[SSAValue, ...]], SSAValue] = field(
        default_factory=dict[tuple[str, tuple[SSAValue, ...]], SSAValue]
    )

    def __post_init__(self) -> None:
        self.filtered = [r.filtered for r in self.group]
        if not self.dry:
            self.edges, self.relations, self.label = self._typed_edges()

    def _typed_edges(self) -> tuple[SSAValue, SSAValue, str]:
        """The edges of the relations with their types as a map, the set of relations, and what the
        map is called; one per graph."""
        first = self.group[0]
        key = (first.graph, first.types, len(self.group))
        if key not in self.fn.typed:
            self.fn.typed[key] = self._types_as_map() or self._attached()
        return self.fn.typed[key]

    def _types_as_map(self) -> tuple[SSAValue, SSAValue, str] | None:
        """The graph itself, where the types are a map of it to just these relations."""
        graph, index = self.group[0].graph, self.group[0].types.owner
        maps = set_type(graph).map_dict()
        if not isinstance(index, IndexOp) or index.set is not graph or index.path.data not in maps:
            return None
        label = index.path.data
        relations = self.fn.env.value(maps[label].codomain)
        pair = tuple(sorted((label, END)))
        grouped = END not in maps or pair in set_type(graph).pair_keys
        partial = self.fn.env.is_partial(set_name(graph), label)
        if partial or not grouped or _constant_size(relations) != len(self.group):
            return None
        return graph, relations, label

    def _attached(self) -> tuple[SSAValue, SSAValue, str]:
        first = self.group[0]
        relations = self.b.range(len(self.group), "R")
        have = set_type(first.graph).map_dict()
        label = "rel" if "rel" not in have else self.fn.env.fresh("rel")
        pairs = [tuple(sorted((label, k))) for k in ("src", END) if k in have]
        known = self._known_edges()
        types = self.b.at(known, "parent", first.types)
        edges = self.b.attach(
            known,
            {label: (types, set_name(relations))},
            pairs=pairs,
            name=f"{set_name(first.graph)}_typed",
        )
        return edges, relations, label

    @property
    def whole(self) -> bool:
        """Whether each edge of the graph is of one of the relations, and has the map."""
        return self.edges is self.group[0].graph

    def _known_edges(self) -> SSAValue:
        """The edges whose type is one of the relations."""
        first, b = self.group[0], self.b
        low, high = (b.const(k, elem=rows(first.types).elem) for k in (0, len(self.group)))
        not_below = b.pointwise("ge", first.types, low)
        below = b.pointwise("lt", first.types, high)
        mask = b.pointwise("logical_and", not_below, below)
        return b.filter(first.graph, mask, name=f"{set_name(first.graph)}_known")

    def total(self) -> SSAValue:
        """The sum over the relations."""
        terms = [r.term for r in self.group]
        reduce = terms[0].owner
        if isinstance(reduce, ReduceOp) and reduce.kind.data == "sum":
            x = self.on_edges([_reduced(t) for t in terms])
            return self.b.reduce("sum", x, self.edges, (END,))
        y = self.grouped(terms)
        return self.b.reduce("sum", y, Dom(set_name(self.edges), self._pair), (END,))

    @property
    def _pair(self) -> tuple[str, ...]:
        return tuple(sorted((self.label, END)))

    def _made(self, key: str, vs: Sequence[SSAValue], make: Callable[[], SSAValue]) -> SSAValue:
        memo = (key, tuple(vs))
        if memo not in self._memo:
            self._memo[memo] = make()
        return self._memo[memo]

    # ------------------------------------------------------------ after the reductions

    def grouped(self, vs: Sequence[SSAValue]) -> SSAValue:
        """Values on nodes that were reduced from the edges of each relation, per (dst, rel)."""
        return self._made("grouped", vs, lambda: self._grouped(vs))

    def _grouped(self, vs: Sequence[SSAValue]) -> SSAValue:
        ops = _alike(vs)
        first = ops[0]
        if isinstance(first, ReduceOp | CountOp):
            if [op.set for op in ops if isinstance(op, ReduceOp | CountOp)] != self.filtered:
                raise NoMatch
            if first.over.keys or first.along_keys != (END,):
                raise NoMatch
            if isinstance(first, CountOp):
                if self.dry:
                    return vs[0]
                return self.b.count(self.edges, self._pair, first.type.elem)
            if first.kind.data not in ("sum", "mean", "max", "min"):
                raise NoMatch
            x = self.on_edges([_reduced(v) for v in vs])
            if self.dry:
                return vs[0]
            return self.b.reduce(
                first.kind.data, x, self.edges, self._pair, zero_ties=first.zero_ties is not None
            )
        columns = list(zip(*(op.operands for op in ops), strict=True))
        per_pair = [self._is_grouped(c) for c in columns]
        if not any(per_pair) or not _keeps_zero(first, per_pair):
            raise NoMatch
        operands = [
            self.grouped(c) if g else self._at_pairs(c)
            for c, g in zip(columns, per_pair, strict=True)
        ]
        return self._again(self._least, first, operands)

    def _is_grouped(self, vs: Sequence[SSAValue]) -> bool:
        """Whether values follow from a reduction over the filtered edges."""
        todo, seen = [vs[0]], set[SSAValue]()
        while todo:
            v = todo.pop()
            owner = v.owner
            if isinstance(owner, ReduceOp | CountOp) and owner.set in self.filtered:
                return True
            if isinstance(owner, ValueOp) and isinstance(owner, ROW_WISE) and v not in seen:
                seen.add(v)
                todo += owner.operands
        return False

    def _at_pairs(self, vs: Sequence[SSAValue]) -> SSAValue:
        if is_unit(vs[0]):
            return self._per_relation(vs, self._least)
        if len(set(vs)) > 1:
            raise NoMatch
        return vs[0] if self.dry else self._least.at(self.edges, END, vs[0])

    @property
    def _least(self) -> Builder:
        """Values per pair must have the least domain, also in a vanilla function."""
        return Builder(self.fn.env, self.b.point)

    # ------------------------------------------------------------ on the edges

    def on_edges(self, vs: Sequence[SSAValue]) -> SSAValue:
        """Values on the edges of each relation, per edge."""
        return self._made("edges", vs, lambda: self._on_edges(vs))

    def _on_edges(self, vs: Sequence[SSAValue]) -> SSAValue:
        if is_unit(vs[0]):
            return self._per_relation(vs, self.b)
        ops = _alike(vs)
        first = ops[0]
        if isinstance(first, AtOp):
            if first.otherwise is not None:
                raise NoMatch
            if [op.set for op in ops if isinstance(op, AtOp)] != self.filtered:
                raise NoMatch
            xs = [op.x for op in ops if isinstance(op, AtOp)]
            if first.path.data == END and self._is_grouped(xs):
                return self.grouped(xs)
            return self.read(xs, self._path(first.path.data))
        if isinstance(first, SoftmaxOp):
            if [op.set for op in ops if isinstance(op, SoftmaxOp)] != self.filtered:
                raise NoMatch
            if first.over.keys or first.along_keys != (END,):
                raise NoMatch
            x = self.on_edges([op.x for op in ops if isinstance(op, SoftmaxOp)])
            return vs[0] if self.dry else self.b.softmax(x, self.edges, self._pair)
        if not isinstance(first, ROW_WISE):
            raise NoMatch
        columns = zip(*(op.operands for op in ops), strict=True)
        return self._again(self.b, first, [self.on_edges(c) for c in columns])

    def _path(self, path: str) -> str:
        """From the typed edges where `path` leads from the filtered ones; empty: to themselves."""
        if self.dry or path.split(".")[0] != "parent":
            return path
        # the filtered edges' parent is the graph; attached types have the known edges in between
        return path.removeprefix("parent").removeprefix(".") if self.whole else f"parent.{path}"

    def read(self, vs: Sequence[SSAValue], path: str) -> SSAValue:
        """Values on nodes, perhaps different ones per relation, seen from the edges."""
        return self._made(f"at {path}", vs, lambda: self._read(vs, path))

    def _read(self, vs: Sequence[SSAValue], path: str) -> SSAValue:
        if is_unit(vs[0]):
            return self._per_relation(vs, self.b)
        if len(set(vs)) == 1:
            return vs[0] if self.dry or not path else self.b.at(self.edges, path, vs[0])
        ops = _alike(vs)
        if not isinstance(ops[0], ROW_WISE):
            raise NoMatch
        columns = zip(*(op.operands for op in ops), strict=True)
        return self._again(self.b, ops[0], [self.read(c, path) for c in columns])

    # ------------------------------------------------------------ single rows

    def _per_relation(self, vs: Sequence[SSAValue], b: Builder) -> SSAValue:
        """Single rows, as one value or as rows of the set of relations seen from the edges."""
        if len(set(vs)) == 1:
            return vs[0]
        if any(v.type != vs[0].type for v in vs):
            raise NoMatch
        if self.dry:
            return vs[0]
        return b.at(self.edges, self.label, self._table(vs))

    def _table(self, vs: Sequence[SSAValue]) -> SSAValue:
        dims = rows(vs[0]).dims
        whole = self._slices_of_one(vs)
        if whole is None:
            whole = self.b.concat([self.b.reshape(v, (1, *dims)) for v in vs], 0)
        return self.b.reshape(self.b.as_rows(self.relations, whole), dims)

    def _slices_of_one(self, vs: Sequence[SSAValue]) -> SSAValue | None:
        """The value that `vs` are the slices 0, 1, .. of, in its first dimension."""
        source: SSAValue | None = None
        for i, v in enumerate(vs):
            owner = v.owner
            if isinstance(owner, ReshapeOp):
                owner = owner.x.owner
            if not isinstance(owner, SliceOp) or owner.bounds != (0, i, i + 1, 1):
                return None
            if source is not None and owner.x is not source:
                return None
            source = owner.x
        if source is None or rows(source).dims[0] < len(vs):
            return None
        if rows(source).dims[0] == len(vs):
            return source
        return self.b.slice(source, 0, 0, len(vs))

    def _again(self, b: Builder, op: ValueOp, operands: list[SSAValue]) -> SSAValue:
        if self.dry:
            return op.results[0]
        many = isinstance(op, PointwiseOp | ConcatOp)
        return b.emit(type(op), [operands] if many else operands, op.properties, op.row())


def _constant_size(s: SSAValue) -> int | None:
    """The rows of a set, where a constant or a parameter tells."""
    if isinstance(s.owner, RangeOp):
        return s.owner.size.value.data
    for use in s.uses:
        op = use.operation
        if isinstance(op, AsRowsOp):
            return rows(op.x).dims[0]
    return None


def _reduced(v: SSAValue) -> SSAValue:
    assert isinstance(v.owner, ReduceOp)
    return v.owner.x


def _alike(vs: Sequence[SSAValue]) -> list[ValueOp]:
    """The ops that make the values, all of one kind with equal properties."""
    ops = [v.owner for v in vs if isinstance(v.owner, ValueOp)]
    if len(ops) != len(vs):
        raise NoMatch
    first = ops[0]
    for op in ops:
        same = op.name == first.name and op.properties == first.properties
        if not same or op.type.dims != first.type.dims or len(op.operands) != len(first.operands):
            raise NoMatch
    return ops


def _keeps_zero(op: ValueOp, per_pair: Sequence[bool]) -> bool:
    """Whether 0 in the operands per pair gives 0."""
    if isinstance(op, ContractOp | ReshapeOp | RowReduceOp | SliceOp | CastOp):
        return True
    return isinstance(op, PointwiseOp) and op.SPEC.zero_with(tuple(per_pair))
