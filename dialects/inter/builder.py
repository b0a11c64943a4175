"""Builder: appends inter ops whose result types follow from their operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    FloatAttr,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    UnitAttr,
    f32,
    f64,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue, TypeAttribute
from xdsl.rewriter import InsertPoint, Rewriter

from ..pointwise import POINTWISE
from .base import Operands, Row, StructureOp, ValueOp, row_of
from .pointwise import POINTWISE_OPS
from .ranks import AllReduceOp, MoveOp
from .reduce import CountOp, DropoutOp, ReduceOp, SoftmaxOp
from .sets import SetEnv
from .shapes import BroadcastOp, ConcatOp, ContractOp, ReshapeOp, RowReduceOp, SliceOp, TransposeOp
from .structure import (
    AttachOp,
    FilterOp,
    IntervalOp,
    LoopsOp,
    RangeOp,
    SizedOp,
    UnionOp,
    attach_type,
    filter_type,
    loops_type,
    union_type,
)
from .syntax import ints, number
from .types import ONE, UNIT, Dom, Map, RowsType, SetType, is_float, rows, set_name, set_type, strs
from .values import (
    AsRowsOp,
    AsUnitOp,
    AtOp,
    CastOp,
    ConstOp,
    IndexOp,
    IotaOp,
    PartOp,
    SizeOp,
    StackOp,
    StopOp,
    TableOp,
)

MapSpec = tuple[SSAValue, str] | tuple[SSAValue, str, Sequence[str]]
"""An attached map: its integer rows, its codomain and what is known of it."""


class Builder:
    """Appends ops to a block (or inserts them at a point) with the least result domain; with
    `vanilla` on the finest one, the whole set, as the importer does. Methods are named as the ops
    and return the result; the ops get the `location`. They raise VerifyException where operands do
    not fit.

    Structure ops take a `name` (a hint) for the new set, and make it known to `env`.
    """

    def __init__(self, env: SetEnv, at: Block | InsertPoint, vanilla: bool = False) -> None:
        self.env = env
        self.point = InsertPoint.at_end(at) if isinstance(at, Block) else at
        self.vanilla = vanilla
        self.location: LocationAttr | None = None

    # ------------------------------------------------------------ the machinery

    def insert(self, op: ValueOp | StructureOp) -> SSAValue:
        """Puts a finished op at the insertion point; returns its result."""
        if self.location is not None:
            op.location = self.location
        Rewriter.insert_op(op, self.point)
        return op.results[0]

    def emit(
        self,
        cls: type[ValueOp],
        operands: Operands,
        props: Mapping[str, Attribute | None] | None = None,
        row: Row | None = None,
        dom: Dom | None = None,
    ) -> SSAValue:
        """Adds a value op. `row` is needed where the operands do not tell it (reshape, cast, ..);
        `dom` overrides the domain that is inferred."""
        op = cls.make(operands, props or {}, RowsType.get(ONE, *(row or Row((), f32))))
        row = row or op.row()
        if dom is None:
            dom = op.infer(self.env)
            if self.vanilla:
                high = op.cap(self.env)
                dom = dom if high is None or high.set == UNIT else high
        Rewriter.replace_value_with_new_type(op.results[0], RowsType.get(dom, *row))
        op.verify_()
        return self.insert(op)

    def structure(
        self,
        cls: type[StructureOp],
        operands: Operands,
        result: SetType,
        props: Mapping[str, Attribute | None] | None = None,
    ) -> SSAValue:
        """Adds a structure op."""
        op = cls.make(operands, props or {}, result)
        op.verify_()
        op.check_sets(self.env)
        v = self.insert(op)
        v.name_hint = result.label
        self.env.add(v)
        return v

    def fresh(self, hint: str) -> str:
        """A set name that is not taken yet."""
        return self.env.fresh(hint)

    def set(self, s: str | SSAValue) -> SSAValue:
        """A set by its value or name."""
        return self.env.value(s) if isinstance(s, str) else s

    # ------------------------------------------------------------ structure

    def filter(
        self,
        g: SSAValue | str,
        mask: SSAValue | None = None,
        *,
        no_loops: bool = False,
        name: str | None = None,
    ) -> SSAValue:
        """The rows where `mask` is true, or with `no_loops` those whose src and dst differ."""
        s = self.set(g)
        made = filter_type(self.fresh(name or f"{set_name(s)}_f"), set_type(s))
        props = {"no_loops": UnitAttr()} if no_loops else None
        return self.structure(FilterOp, [s, mask], made, props)

    def interval(
        self, s: SSAValue | str, lo: SSAValue, hi: SSAValue, name: str | None = None
    ) -> SSAValue:
        """The rows `lo` to `hi - 1`, unit values, as a slice of Python has them."""
        v = self.set(s)
        made = filter_type(self.fresh(name or f"{set_name(v)}_i"), set_type(v))
        return self.structure(IntervalOp, [v, lo, hi], made)

    def loops(
        self, g: SSAValue | str, *, remaining: bool = False, name: str | None = None
    ) -> SSAValue:
        """One loop per node of `g`."""
        s = self.set(g)
        made = loops_type(self.fresh(name or f"{set_name(s)}_l"), set_type(s), remaining)
        props = {"remaining": UnitAttr()} if remaining else None
        return self.structure(LoopsOp, [s], made, props)

    def union(
        self,
        *parts: SSAValue | str,
        ends: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> SSAValue:
        """The disjoint union, in this order; `ends` are the unions that maps lead to which lead to
        other rows in each part."""
        values = [self.set(p) for p in parts]
        made = union_type(self.fresh(name or "u"), [set_type(v) for v in values], ends)
        return self.structure(UnionOp, [values], made)

    def attach(
        self,
        s: SSAValue | str,
        maps: Mapping[str, MapSpec],
        *,
        eqs: Sequence[tuple[str, str]] = (),
        pairs: Sequence[Sequence[str]] = (),
        name: str | None = None,
        checked: bool = False,
    ) -> SSAValue:
        """Integer rows on `s` as maps, `{"src": (value, "N")}` or `(value, "N", ("mono",))`; `eqs`
        and `pairs` are declared on top of those of `s`. `checked`: also where nobody uses it."""
        v = self.set(s)
        new = {k: Map(m[1], tuple(m[2]) if len(m) == 3 else ()) for k, m in maps.items()}
        t = attach_type(self.fresh(name or f"{set_name(v)}_a"), set_type(v), new)
        made = SetType.get(
            t.label,
            t.map_dict(),
            (),
            dict.fromkeys((*t.equations, *eqs)),
            dict.fromkeys((*t.pair_keys, *(tuple(sorted(p)) for p in pairs))),
        )
        props = {"labels": strs(maps), "checked": UnitAttr() if checked else None}
        return self.structure(AttachOp, [v, [m[0] for m in maps.values()]], made, props)

    def range(self, n: int, name: str | None = None) -> SSAValue:
        """A set of `n` rows."""
        made = SetType.get(self.fresh(name or "R"))
        return self.structure(RangeOp, [], made, {"size": IntegerAttr(n, i64)})

    def sized(self, n: SSAValue, name: str | None = None) -> SSAValue:
        """A set of as many rows as the unit value `n` says."""
        return self.structure(SizedOp, [n], SetType.get(self.fresh(name or "S")))

    # ------------------------------------------------------------ values

    def const(self, value: float, shape: Sequence[int] = (), elem: TypeAttribute = f32) -> SSAValue:
        """A row filled with one number."""
        exact = float(value) if is_float(elem) else int(value)
        return self.emit(ConstOp, [], {"value": number(exact)}, Row(tuple(shape), elem))

    def table(self, values: NDArray[Any], elem: TypeAttribute = f32) -> SSAValue:
        """A literal row."""
        a = np.asarray(values, np.float64 if is_float(elem) else np.int64)
        return self.emit(TableOp, [], {"values": TableOp.literal(a)}, Row(a.shape, elem))

    def at(
        self, s: SSAValue | str, path: str, x: SSAValue, otherwise: SSAValue | None = None
    ) -> SSAValue:
        """`x` seen from `s` through a path of maps."""
        return self.emit(AtOp, [self.set(s), x, otherwise], {"path": StringAttr(path)})

    def index(self, s: SSAValue | str, path: str) -> SSAValue:
        """A map as i64 rows."""
        return self.emit(IndexOp, [self.set(s)], {"path": StringAttr(path)})

    def iota(self, s: SSAValue | str) -> SSAValue:
        """The number of each row, i64."""
        return self.emit(IotaOp, [self.set(s)])

    def size(self, s: SSAValue | str) -> SSAValue:
        """How many rows, rows<unit, i64>."""
        return self.emit(SizeOp, [self.set(s)])

    def stack(self, u: SSAValue | str, *xs: SSAValue) -> SSAValue:
        """A value per part of a union, as rows of the union."""
        return self.emit(StackOp, [self.set(u), list(xs)])

    def part(self, i: int, u: SSAValue | str, x: SSAValue) -> SSAValue:
        """The rows of part `i`."""
        return self.emit(PartOp, [self.set(u), x], {"index": IntAttr(i)})

    def as_rows(self, s: SSAValue | str, x: SSAValue) -> SSAValue:
        """The leading dimension of a unit value as rows of `s`."""
        return self.emit(AsRowsOp, [self.set(s), x])

    def as_unit(self, s: SSAValue | str, x: SSAValue, n: int) -> SSAValue:
        """Rows of `s`, which has `n` rows, as the leading dimension of a unit value."""
        t = rows(x)
        return self.emit(AsUnitOp, [self.set(s), x], None, Row((n, *t.dims), t.elem))

    def cast(self, x: SSAValue, elem: TypeAttribute) -> SSAValue:
        """Another element type; `x` itself where it has that type."""
        t = rows(x)
        return x if t.elem == elem else self.emit(CastOp, [x], None, Row(t.dims, elem))

    def stop(self, x: SSAValue) -> SSAValue:
        """Without the gradient."""
        return self.emit(StopOp, [x])

    # ------------------------------------------------------------ row dimensions

    def contract(self, spec: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """An einsum of two operands, `"k,kf->f"`."""
        return self.emit(ContractOp, [a, b], {"spec": StringAttr(spec)})

    def reshape(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        """Another row shape; `x` itself where it has that shape."""
        t = rows(x)
        if t.dims == tuple(dims):
            return x
        return self.emit(ReshapeOp, [x], None, Row(tuple(dims), t.elem))

    def broadcast(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        """Repeated to a row shape, aligned right; `x` itself where it has that shape."""
        t = rows(x)
        if t.dims == tuple(dims):
            return x
        return self.emit(BroadcastOp, [x], None, Row(tuple(dims), t.elem))

    def widen(self, x: SSAValue, dom: Dom) -> SSAValue:
        """The same rows stored on a finer domain (a reshape to the same shape); `x` itself where
        it is there already."""
        t = rows(x)
        if t.dom == dom:
            return x
        self.env.readable(t.dom, dom)
        return self.emit(ReshapeOp, [x], None, row_of(x), dom)

    def transpose(self, x: SSAValue, perm: Sequence[int]) -> SSAValue:
        """Dimension i of the result is dimension perm[i]."""
        return self.emit(TransposeOp, [x], {"perm": ints(perm)})

    def slice(self, x: SSAValue, dim: int, lo: int, hi: int, step: int = 1) -> SSAValue:
        """`x[..., lo:hi:step, ...]` in one dimension."""
        props = {k: IntegerAttr(v, i64) for k, v in (("dim", dim), ("lo", lo), ("hi", hi))}
        if step != 1:
            props["step"] = IntegerAttr(step, i64)
        return self.emit(SliceOp, [x], props)

    def concat(self, xs: Sequence[SSAValue], dim: int) -> SSAValue:
        """Side by side along one dimension."""
        return self.emit(ConcatOp, [list(xs)], {"dim": IntegerAttr(dim, i64)})

    def row_reduce(self, kind: str, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        """sum, max or min over dimensions of the row; `x` itself for no dimension."""
        if not dims:
            return x
        return self.emit(RowReduceOp, [x], {"kind": StringAttr(kind), "dims": ints(dims)})

    # ------------------------------------------------------------ rows of a set

    def reduce(
        self,
        kind: str,
        x: SSAValue,
        over: Dom | SSAValue | str,
        along: Sequence[str] = (),
        otherwise: SSAValue | None = None,
        zero_ties: bool = False,
        every: bool = False,
    ) -> SSAValue:
        """sum, mean, max, min, mul or last of the rows of `over` that agree on the maps `along`."""
        dom = self._over(over)
        props: dict[str, Attribute | None] = {
            "kind": StringAttr(kind),
            "over_keys": strs(dom.keys),
            "along": strs(along),
            "zero_ties": UnitAttr() if zero_ties else None,
            "every": UnitAttr() if every else None,
        }
        return self.emit(ReduceOp, [x, self.env.value(dom.set), otherwise], props)

    def softmax(
        self, x: SSAValue, over: Dom | SSAValue | str, along: Sequence[str] = ()
    ) -> SSAValue:
        """Softmax over the rows of `over` that agree on the maps `along`."""
        dom = self._over(over)
        props = {"over_keys": strs(dom.keys), "along": strs(along)}
        return self.emit(SoftmaxOp, [x, self.env.value(dom.set)], props)

    def count(
        self,
        over: Dom | SSAValue | str,
        along: Sequence[str] = (),
        elem: TypeAttribute = f32,
    ) -> SSAValue:
        """How many rows of `over` agree on the maps `along`."""
        dom = self._over(over)
        props = {"over_keys": strs(dom.keys), "along": strs(along)}
        return self.emit(CountOp, [self.env.value(dom.set)], props, Row((), elem))

    def dropout(
        self,
        x: SSAValue,
        key: SSAValue,
        over: SSAValue | str | None,
        p: float,
        site: int,
        numbers: SSAValue | None = None,
        column: SSAValue | None = None,
    ) -> SSAValue:
        """Dropout keyed by (key, site, row, column): the row in `over` (None: a single row), or
        what `numbers` says it is, and where each row is one number also what `column` says."""
        props = {"p": FloatAttr(p, f64), "site": IntegerAttr(site, i64)}
        where = [] if over is None else [self.set(over)]
        where += [v for v in (numbers, column) if v is not None]
        return self.emit(DropoutOp, [x, key, where], props)

    # ------------------------------------------------------------ rows of several ranks

    def move(self, x: SSAValue, source: SSAValue | str, target: SSAValue | str) -> SSAValue:
        """Rows of the messages `source` as those of `target`, where they arrive."""
        return self.emit(MoveOp, [x, self.set(source), self.set(target)])

    def all_reduce(self, kind: str, x: SSAValue) -> SSAValue:
        """sum, max, min or mul over ranks."""
        return self.emit(AllReduceOp, [x], {"kind": StringAttr(kind)})

    def _over(self, over: Dom | SSAValue | str) -> Dom:
        if isinstance(over, Dom):
            return over
        return Dom(over) if isinstance(over, str) else Dom(set_name(over))

    # ------------------------------------------------------------ pointwise

    def pointwise(self, fn: str, *xs: SSAValue, **parameters: float) -> SSAValue:
        """A function of the pointwise vocabulary, with its parameters."""
        if fn not in POINTWISE:
            raise ValueError(f"{fn} is no pointwise function: {', '.join(POINTWISE)}")
        props = {k: FloatAttr(float(v), f64) for k, v in parameters.items()}
        return self.emit(POINTWISE_OPS[fn], [list(xs)], props)

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.pointwise("add", a, b)

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.pointwise("sub", a, b)

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.pointwise("mul", a, b)

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.pointwise("div", a, b)

    def neg(self, a: SSAValue) -> SSAValue:
        return self.pointwise("neg", a)

    def where(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.pointwise("where", condition, a, b)
