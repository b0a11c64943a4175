"""raise, relations: a loop over relations, one masked graph each, becomes one typed aggregation.

    out = root + sum over r of reduce over filter(g, type == r) of f(x[src], W[r])

is what RGCN's forward imports as, with R filters, R products and R sums. The terms of the sum are
compared: they must be the same expression but for the filter, slices of a common weight, and other
single rows. Then the types are attached to the edges as a map `rel` to a set of R rows, weights
become rows of that set, and one expression over the edges is reduced along (dst, rel), goes through
what followed the reductions (which must keep 0 at 0: a pair without edges is not stored) and is
summed along dst.

The relations must be 0 .. R - 1. Edges of another type, which the loop skips, are filtered out
before the types are attached: that is once a graph, and costs a call nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ...dialects.inter.base import ValueOp
from ...dialects.inter.builder import Builder
from ...dialects.inter.pointwise import PointwiseOp
from ...dialects.inter.reduce import CountOp, ReduceOp
from ...dialects.inter.shapes import ConcatOp, ContractOp, ReshapeOp, RowReduceOp, SliceOp
from ...dialects.inter.structure import FilterOp
from ...dialects.inter.types import Dom, rows, set_name, set_type
from ...dialects.inter.values import AtOp, CastOp
from ..linear.function import ROW_WISE, LinearFunction, is_unit
from .constants import constant

KEEPS_ZERO = frozenset({"mul", "neg", "relu", "leaky_relu", "abs", "tanh", "add", "sub", "div"})
"""Pointwise functions that give 0 where all their operands per relation are 0."""
END = "dst"


class NoMatch(Exception):
    """The terms are not one expression."""


@dataclass
class Relation:
    """One term of the sum: the filtered set, what it filters, the types and the number of the
    relation."""

    term: SSAValue
    filtered: SSAValue
    graph: SSAValue
    types: SSAValue
    number: int


def relation_loop(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites the outermost addition of a loop over relations; says whether it did."""
    if not _is_add(op) or any(_is_add(use.operation) for use in op.results[0].uses):
        return False
    terms = _terms(op.results[0], op)
    relations = [r for t in terms if (r := _relation(t)) is not None]
    groups: dict[tuple[SSAValue, SSAValue], list[Relation]] = {}
    for r in relations:
        groups.setdefault((r.graph, r.types), []).append(r)
    for group in groups.values():
        group.sort(key=lambda r: r.number)
        if len(group) > 1 and [r.number for r in group] == list(range(len(group))):
            if (total := _merged(fn, op, group)) is not None:
                done = {r.term for r in group}
                b = fn.before(op)
                for t in reversed([t for t in terms if t not in done]):
                    total = b.add(t, total)
                fn.replace(op.results[0], total)
                return True
    return False


def _is_add(op: Operation) -> bool:
    return isinstance(op, PointwiseOp) and op.SPEC.name == "add"


def _terms(v: SSAValue, root: Operation) -> list[SSAValue]:
    """What is added up, through additions that nobody else reads."""
    out: list[SSAValue] = []
    todo = [v]
    while todo:
        x = todo.pop()
        owner = x.owner
        alone = owner is root or len({use.operation for use in x.uses}) == 1
        if isinstance(owner, PointwiseOp) and _is_add(owner) and alone:
            if all(rows(y).dims == rows(x).dims for y in owner.operands):
                todo += reversed(owner.operands)
                continue
        out.append(x)
    return out


def _relation(term: SSAValue) -> Relation | None:
    """The relation whose edges `term` sums over, where there is one only."""
    found: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    todo = [term]
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, ReduceOp | CountOp):
            found.add(owner.set)
        elif isinstance(owner, ValueOp) and isinstance(owner, ROW_WISE):
            new = [x for x in owner.operands if x not in seen]
            seen.update(new)
            todo += new
    masked = [s for s in found if _mask(s) is not None]
    if len(masked) != 1:
        return None
    mask = _mask(masked[0])
    assert mask is not None
    return Relation(term, masked[0], *mask)


def _mask(filtered: SSAValue) -> tuple[SSAValue, SSAValue, int] | None:
    """(set, types, number) where a set is `filter %g, types == number`."""
    owner = filtered.owner
    if not isinstance(owner, FilterOp) or owner.mask is None:
        return None
    eq = owner.mask.owner
    if not isinstance(eq, PointwiseOp) or eq.SPEC.name != "eq":
        return None
    for types, number in (tuple(eq.operands), tuple(reversed(eq.operands))):
        c = constant(number)
        if isinstance(c, int) and constant(types) is None and not rows(types).dims:
            return owner.set, types, c
    return None


def _merged(fn: LinearFunction, op: ValueOp, group: list[Relation]) -> SSAValue | None:
    """The sum of the terms as one expression in front of `op`; None where they differ."""
    before = _Merger(fn, fn.before(op), group, dry=True)
    try:
        before.grouped([r.term for r in group])
    except NoMatch:
        return None
    return _Merger(fn, fn.before(op), group).total()


@dataclass
class _Merger:
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
            self.edges, self.relations = self._typed_edges()

    def _typed_edges(self) -> tuple[SSAValue, SSAValue]:
        """The edges of the relations with their types as a map, and the set of relations; one per
        graph."""
        first = self.group[0]
        key = (first.graph, first.types, len(self.group))
        if key not in self.fn.typed:
            relations = self.b.range(len(self.group), "R")
            have = set_type(first.graph).map_dict()
            self.label = "rel" if "rel" not in have else self.fn.env.fresh("rel")
            pairs = [tuple(sorted((self.label, k))) for k in ("src", END) if k in have]
            known = self._known_edges()
            types = self.b.at(known, "parent", first.types)
            edges = self.b.attach(
                known,
                {self.label: (types, set_name(relations))},
                pairs=pairs,
                name=f"{set_name(first.graph)}_typed",
            )
            self.fn.typed[key] = (edges, relations, self.label)
        edges, relations, self.label = self.fn.typed[key]
        return edges, relations

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
            path = first.path.data
            if path.split(".")[0] == "parent":  # the typed edges are a subset of the known ones
                path = f"parent.{path}"
            return self.read([op.x for op in ops if isinstance(op, AtOp)], path)
        if not isinstance(first, ROW_WISE):
            raise NoMatch
        columns = zip(*(op.operands for op in ops), strict=True)
        return self._again(self.b, first, [self.on_edges(c) for c in columns])

    def read(self, vs: Sequence[SSAValue], path: str) -> SSAValue:
        """Values on nodes, perhaps different ones per relation, seen from the edges."""
        return self._made(f"at {path}", vs, lambda: self._read(vs, path))

    def _read(self, vs: Sequence[SSAValue], path: str) -> SSAValue:
        if is_unit(vs[0]):
            return self._per_relation(vs, self.b)
        if len(set(vs)) == 1:
            return vs[0] if self.dry else self.b.at(self.edges, path, vs[0])
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
    if not isinstance(op, PointwiseOp) or op.SPEC.name not in KEEPS_ZERO:
        return False
    if op.SPEC.name in ("add", "sub"):
        return all(per_pair)
    return op.SPEC.name != "div" or not per_pair[1]
