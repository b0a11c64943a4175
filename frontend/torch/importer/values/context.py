"""The arithmetic on tensors that rules are written in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from .....dialects.pointwise import POINTWISE
from ..errors import NoRule
from .sizes import Sizes
from .tensors import (
    ARITHMETIC,
    DTYPES,
    Arr,
    Dim,
    Merge,
    Operand,
    Sym,
    elem_of,
    elem_of_number,
    numbers,
)
from .values import FLOATS, Elem, Filter, Node, Set, Union, Values, depends_on_floats, is_const


@dataclass(frozen=True)
class Held:
    """A number that is not 0, or `raised` is raised with `message`."""

    condition: Arr
    message: str
    raised: type[Exception] = AssertionError


@dataclass(frozen=True)
class Bound:
    """One number at each row of `rows`, or one for all of them, that is to be in 0 .. size - 1."""

    number: Node
    rows: Set
    size: int


@dataclass
class Context:
    """What rules work with: the sets and values of one graph. Without `float_masks`, rows cannot be
    chosen by a mask that depends on floats: IR can say it, the code generator has no way yet.
    `assertions` are what has to hold in every call."""

    sizes: Sizes
    float_masks: bool = True
    items: dict[str, Node] = field(default_factory=dict)
    bounds: list[Bound] = field(default_factory=list)
    assertions: list[Held] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = Values(self.sizes.unify)

    def require_below(self, x: Arr, size: int) -> None:
        """The integers of x must be in 0 .. size - 1, which the runtime checks when it sees new
        ones (not those that follow from floats). For rules that compare where torch would index.
        """
        if x.home is not None and not depends_on_floats(x.v) and math.prod(x.v.shape) == 1:
            number = self.values.reshape(x.v, ())
            if not (is_const(number) and 0 <= number.attrs["value"] < size):
                self.bounds.append(Bound(number, x.home, size))

    # ------------------------------------------------------------ scalars

    def scalar(self, expr: sympy.Expr) -> Node:
        """The value of an expression of sizes, one row of i64 or f64 (a symbol that is an item of a
        tensor keeps its type)."""
        v, elem = self.values, elem_of_number(expr)
        if not expr.free_symbols:
            return v.const(int(expr), "i64") if expr.is_Integer else v.const(float(expr), "f64")
        if expr.is_Symbol and str(expr) in self.items:
            return self.items[str(expr)]
        if any(str(s) in self.items for s in expr.free_symbols) and expr.func in ARITHMETIC:
            out, *rest = (v.cast(self.scalar(a), elem) for a in expr.args)
            for a in rest:
                out = v.pointwise(ARITHMETIC[expr.func], [out, a], elem)
            return out
        return v.make("size", [], None, (), elem, expr=self.sizes.canonical(expr))

    def lift(self, x: Operand, elem: Elem | None = None) -> Arr:
        """A scalar as a tensor of no dimension, of the given element type."""
        if isinstance(x, Arr):
            return x if elem is None else self.cast(x, elem)
        if isinstance(x, Sym):
            v = self.scalar(x.expr)
            return Arr([], v if elem is None else self.values.cast(v, elem))
        if isinstance(x, bool | int | float):
            return Arr([], self.values.const(x, elem or _scalar_elem(x)))
        raise NoRule(f"an operand of type {type(x).__name__}")

    def cast(self, x: Arr, elem: Elem) -> Arr:
        return Arr(x.dims, self.values.cast(x.v, elem))

    def promote(self, *xs: Operand) -> Elem:
        """torch's type promotion: dimensioned tensors first, then 0-d ones, then Python scalars."""
        best: torch.dtype | None = None
        groups: list[list[torch.dtype]] = [[], [], []]
        for x in xs:
            if isinstance(x, Arr):
                groups[0 if x.dims else 1].append(DTYPES[x.elem])
            elif isinstance(x, Sym):
                whole = elem_of_number(x.expr) == "i64"
                groups[2].append(torch.int64 if whole else torch.get_default_dtype())
            else:
                groups[2].append(
                    torch.bool
                    if isinstance(x, bool)
                    else torch.int64
                    if isinstance(x, int)
                    else torch.get_default_dtype()
                )
        for group in groups:
            if not group:
                continue
            own = group[0]
            for d in group[1:]:
                own = torch.promote_types(own, d)
            if best is None:
                best = own
            elif _kind(own) > _kind(best):
                best = torch.promote_types(best, own)
        assert best is not None
        return elem_of(best)

    # ---------------------------------------------------------- pointwise

    def align(self, xs: Sequence[Arr]) -> tuple[list[Node], list[Dim]]:
        """Operands broadcast against each other: their nodes with matching row dimensions, and the
        result's dimensions."""
        rank = max(x.rank for x in xs)
        axis, home, merge = self._common_axis(xs, rank)
        if axis is None:
            shapes = [(1,) * (rank - x.rank) + x.v.shape for x in xs]
            return [x.v for x in xs], [max(c) if 0 not in c else 0 for c in zip(*shapes)]
        nodes = []
        for x in xs:
            v, offset = x.v, rank - x.rank
            if x.axis is None and axis >= offset and x.rank:
                size = x.dims[axis - offset]
                if size != 1 and merge is None and home.expr == size:
                    v, _ = self.rows_of(x, axis - offset)
                elif size != 1:
                    raise NoRule("a dimension of constant size meets the rows of a set")
                else:
                    shape = list(v.shape)
                    if merge is None:
                        del shape[axis - offset]
                    v = self.values.reshape(v, shape)
            nodes.append(v)
        full = []
        for i in range(rank):
            at = [x.dims[i - rank + x.rank] for x in xs if i >= rank - x.rank]
            full.append(max(d for d in at if isinstance(d, int)) if i != axis else home)
        if merge is not None:
            full[axis] = merge
        return nodes, full

    def _common_axis(
        self, xs: Sequence[Arr], rank: int
    ) -> tuple[int | None, Set | None, Merge | None]:
        axis, home, merge = None, None, None
        for x in xs:
            if x.axis is None:
                continue
            position = rank - x.rank + x.axis
            mine = x.dims[x.axis]
            if axis is None:
                axis, home = position, x.home
                merge = mine if isinstance(mine, Merge) else None
                continue
            if position != axis:
                raise NoRule(
                    "the rows of a set meet as rows and as columns (a product of two sets)"
                )
            if isinstance(mine, Merge) != (merge is not None) or (
                merge is not None and mine.k != merge.k
            ):
                raise NoRule("rows meet rows of another grouping")
            home = self.sizes.unify(home, x.home)
        return axis, home, merge

    def raw(self, name: str, xs: Sequence[Arr], elem: Elem, **params: float) -> Arr:
        """A pointwise function of operands that have their element types already."""
        nodes, dims = self.align(xs)
        v = self.values.pointwise(name, nodes, elem, **params)
        return Arr(dims, self.values.reshape(v, numbers(dims)))

    def unary(self, name: str, x: Operand, **params: float) -> Arr:
        """A function of floats; integers are converted first, as in torch."""
        elem = self.promote(x)
        if elem not in FLOATS and POINTWISE[name].operands == "float":
            elem = elem_of(torch.get_default_dtype())
        x = self.lift(x, elem)
        return self.raw(name, [x], elem, **params)

    def binary(self, name: str, a: Operand, b: Operand) -> Arr:
        """Arithmetic of two operands with torch's promotion; `div` is true division."""
        elem = self.promote(a, b)
        if elem not in FLOATS and POINTWISE[name].operands == "float":
            if name == "pow":
                raise NoRule("integer powers")
            elem = elem_of(torch.get_default_dtype())
        if elem == "i1":
            logical = POINTWISE[name].of_booleans
            if logical is None:
                raise NoRule(f"{name} of booleans")
            name = logical
        return self.raw(name, [self.lift(a, elem), self.lift(b, elem)], elem)

    def compare(self, name: str, a: Operand, b: Operand) -> Arr:
        elem = self.promote(a, b)
        if elem == "i1" and name not in ("eq", "ne"):
            elem = "i64"
        return self.raw(name, [self.lift(a, elem), self.lift(b, elem)], "i1")

    def where(self, c: Arr, a: Operand, b: Operand, elem: Elem | None = None) -> Arr:
        elem = elem or self.promote(a, b)
        return self.raw("where", [c, self.lift(a, elem), self.lift(b, elem)], elem)

    # -------------------------------------------------------------- indexing

    def rows_of(self, x: Arr, dim: int = 0) -> tuple[Node, Set]:
        """A tensor as rows over one of its dimensions; a constant dimension becomes a set."""
        d = x.dims[dim]
        if isinstance(d, Set):
            return x.v, d.find()
        if isinstance(d, Merge) or x.axis is not None:
            raise NoRule("an index into a column dimension of rows")
        rows = self.sizes.set_of(sympy.Integer(d))
        order = [dim] + [i for i in range(x.rank) if i != dim]
        v = self.values.transpose(x.v, order)
        return self.values.as_rows(v, rows), rows

    def gather(self, x: Arr, dim: int, i: Arr) -> Arr:
        """`x.index_select(dim, i)` for a 1-d i."""
        dim = x.wrap(dim)
        if i.rank != 1 or not isinstance(i.dims[0], Set):
            if i.home is None:
                return self._take_columns(x, dim, i)
            raise NoRule("an index tensor with several dimensions")
        v, codomain = self.rows_of(x, dim)
        rest = [d for k, d in enumerate(x.dims) if k != dim]
        over = i.home
        if self.are_kept_rows(i.v, codomain):
            return Arr([*rest[:dim], over, *rest[dim:]], self.values.parent(v, over))
        return Arr([*rest[:dim], over, *rest[dim:]], self.values.at(v, i.v, over, codomain))

    @staticmethod
    def are_kept_rows(i: Node, rows: Set) -> bool:
        """Whether i are the numbers of the rows that a filter keeps, as nonzero gives them."""
        return (
            i.op == "parent"
            and i.args[0].op == "iota"
            and i.args[0].home is rows.find()
            and i.home is not None
            and isinstance(i.home.origin, Filter)
            and i.home.origin.set.find() is rows.find()
        )

    def _take_columns(self, x: Arr, dim: int, i: Arr) -> Arr:
        """A column dimension at constant positions."""
        data = i.v.attrs.get("data") if i.v.op == "table" else None
        if data is None or i.rank != 1 or not isinstance(x.dims[dim], int):
            raise NoRule("an index of constant size that is no literal")
        c = x.column(dim)
        size = x.dims[dim]
        if not data or not all(-size <= j < size for j in data):
            raise NoRule(f"no position, or one that is outside of a dimension of size {size}")
        vs = [self.values.slice(x.v, c, j % size, j % size + 1) for j in data]
        return Arr([*x.dims[:dim], len(vs), *x.dims[dim + 1 :]], self.values.concat(vs, c))

    def select(self, x: Arr, dim: int, k: int) -> Arr:
        """`x.select(dim, k)` on a column dimension."""
        dim = x.wrap(dim)
        size = x.dims[dim]
        if not isinstance(size, int):
            raise NoRule("one row of a set by its number")
        k = k + size if k < 0 else k
        if not 0 <= k < size:
            raise NoRule(f"index {k} is outside of a dimension of size {size}")
        c = x.column(dim)
        v = self.values.slice(x.v, c, k, k + 1)
        v = self.values.reshape(v, v.shape[:c] + v.shape[c + 1 :])
        return Arr(x.dims[:dim] + x.dims[dim + 1 :], v)

    def narrow(self, x: Arr, dim: int, lo: int, hi: int, step: int = 1) -> Arr:
        """`x[.., lo:hi:step]` on a column dimension."""
        v = self.values.slice(x.v, x.column(dim), lo, hi, step)
        return Arr([*x.dims[:dim], v.shape[x.column(dim)], *x.dims[dim + 1 :]], v)

    def unsqueeze(self, x: Arr, dim: int) -> Arr:
        dims = [*x.dims[:dim], 1, *x.dims[dim:]]
        return Arr(dims, self.values.reshape(x.v, numbers(dims)))

    def keep(self, x: Arr, mask: Arr, size: sympy.Expr) -> Arr:
        """`x[mask]` along the row axis: the rows of a filter."""
        if x.home is None or mask.rank != 1 or x.merged:
            raise NoRule("a mask over a dimension that is not the rows of a set")
        if not self.float_masks and depends_on_floats(mask.v):
            raise NoRule(
                "a mask that depends on float values: which rows there are has to follow from "
                "integers and booleans (multiply by the mask to keep all rows)"
            )
        home = self.sizes.unify(x.home, mask.rows)
        kept = self.sizes.born(Filter(home, mask.v), size)
        dims = [kept if isinstance(d, Set) else d for d in x.dims]
        return Arr(dims, self.values.parent(x.v, kept))

    def group(self, index: Arr, x: Arr, dim: int) -> tuple[Set, Node]:
        """The set that a 1-d index and a tensor's dimension share."""
        if index.rank != 1 or not isinstance(index.dims[0], Set):
            raise NoRule("a reduction by an index that is not one number a row")
        d = x.dims[dim]
        if isinstance(d, Merge):
            raise NoRule("a reduction over grouped rows")
        if isinstance(d, int):
            raise NoRule("a reduction over a column dimension by an index")
        return self.sizes.unify(d, index.home), index.v

    def segment(
        self, x: Arr, index: Arr, dim: int, size: sympy.Expr, kind: str, zero_ties: bool = False
    ) -> Arr:
        """Reduces the row axis of x into `size` groups."""
        dim = x.wrap(dim)
        over, i = self.group(index, x, dim)
        codomain = self.sizes.set_of(size)
        v = self.values.reduce(kind, x.v, over, i, codomain, zero_ties)
        return Arr([*x.dims[:dim], codomain, *x.dims[dim + 1 :]], v)

    # ------------------------------------------------------------ reductions

    def which(self, x: Arr, dims: int | Sequence[int] | None) -> list[int]:
        if dims is None:
            return list(range(x.rank))
        return [x.wrap(d) for d in ([dims] if isinstance(dims, int) else dims)]

    def total(
        self, kind: str, x: Arr, dims: int | Sequence[int] | None = None, keep: bool = False
    ) -> Arr:
        """sum, max or min over tensor dimensions."""
        chosen, axis = self.which(x, dims), x.axis
        if x.merged:
            raise NoRule("a reduction of grouped rows")
        v = self.values.row_reduce(kind, x.v, [x.column(d) for d in chosen if d != axis])
        if axis in chosen:
            v = self.values.reduce(kind, v, x.home, None, None)
        out = [1 if i in chosen else d for i, d in enumerate(x.dims) if keep or i not in chosen]
        return Arr(out, self.values.reshape(v, numbers(out)))

    def count(self, x: Arr, dims: int | Sequence[int] | None = None) -> Arr:
        """How many numbers such a reduction takes, in x's element type."""
        constant, home = 1, None
        for d in self.which(x, dims):
            size = x.dims[d]
            if isinstance(size, int):
                constant *= size
            else:
                home = x.home
        if home is None:
            return Arr([], self.values.const(constant, x.elem))
        rows = self.values.cast(self.values.make("size_of", [], None, (), "i64", of=home), x.elem)
        if constant == 1:
            return Arr([], rows)
        c = self.values.const(constant, x.elem)
        return Arr([], self.values.pointwise("mul", [rows, c], x.elem))

    def mean(self, x: Arr, dims: int | Sequence[int] | None = None, keep: bool = False) -> Arr:
        total = self.total("sum", x, dims, keep)
        count = self.count(x, dims)
        return self.binary("div", total, count)

    def variance(
        self, x: Arr, dims: int | Sequence[int] | None, keep: bool, correction: float
    ) -> Arr:
        # the deviations sum up to 0, so nothing flows back through the mean
        mean = self.mean(x, dims, True)
        centred = self.binary("sub", x, Arr(mean.dims, self.values.stop(mean.v)))
        total = self.total("sum", self.binary("mul", centred, centred), dims, keep)
        count = self.count(x, dims)
        if correction:  # of no rows, 0 / 0 as in torch
            count = self.binary("maximum", self.binary("sub", count, float(correction)), 0.0)
        return self.binary("div", total, count)

    # --------------------------------------------------------------- shapes

    def concat(self, xs: Sequence[Arr], dim: int) -> Arr:
        """torch.cat: of columns, or of rows (a union of sets; that of one set is the set)."""
        if len(xs) == 1:
            return xs[0]
        dim = xs[0].wrap(dim)
        elem = self.promote(*xs)
        xs = [self.lift(x, elem) for x in xs]
        if all(isinstance(x.dims[dim], int) for x in xs):
            return self._concat_columns(xs, dim)
        if not all(isinstance(x.dims[dim], Set) for x in xs):
            raise NoRule("rows of a set are joined to a dimension of constant size")
        parts = tuple(x.dims[dim].find() for x in xs)
        size = sum((p.expr for p in parts), sympy.Integer(0))
        union = self.sizes.born(Union(parts), size)
        v = self.values.stack(union, [x.v for x in xs])
        return Arr([*xs[0].dims[:dim], union, *xs[0].dims[dim + 1 :]], v)

    def _concat_columns(self, xs: Sequence[Arr], dim: int) -> Arr:
        if len({x.axis for x in xs}) > 1:
            raise NoRule("rows of a set are joined to a tensor of constant size")
        home: Set | None = None
        for x in xs:
            if x.home is not None:
                home = x.home if home is None else self.sizes.unify(home, x.home)
        column = xs[0].column(dim)
        v = self.values.concat([x.v for x in xs], column)
        return Arr([*xs[0].dims[:dim], v.shape[column], *xs[0].dims[dim + 1 :]], v)

    def permute(self, x: Arr, order: Sequence[int]) -> Arr:
        order = [x.wrap(d) for d in order]
        columns = [x.column(d) for d in order if d != x.axis or x.merged]
        return Arr([x.dims[d] for d in order], self.values.transpose(x.v, columns))

    def expand(self, x: Arr, dims: Sequence[Dim], tile: bool = False) -> Arr:
        """Broadcasts (or tiles) x to dims."""
        x = Arr([1] * (len(dims) - x.rank) + x.dims, x.v)
        x.v = self.values.reshape(x.v, numbers(x.dims))
        for i, (have, want) in enumerate(zip(x.dims, dims, strict=True)):
            if isinstance(want, Set) and isinstance(have, int):
                if have != 1 or x.axis is not None:
                    raise NoRule("a tensor repeated as often as a set has rows")
                shape = x.v.shape
                x = Arr([*x.dims[:i], want, *x.dims[i + 1 :]], x.v)
                x.v = self.values.reshape(x.v, shape[:i] + shape[i + 1 :])
            elif isinstance(have, Set) and not (isinstance(want, Set) and self._same(have, want)):
                raise NoRule("the rows of a set repeated")
            elif isinstance(have, Merge):
                raise NoRule("grouped rows repeated")
            elif tile and want == 0 != have:
                raise NoRule("columns repeated no times")
        out = [h if isinstance(h, Set) else w for h, w in zip(x.dims, dims, strict=True)]
        f: Callable[..., Node] = self.values.repeat if tile else self.values.broadcast
        return Arr(out, f(x.v, numbers(out)))

    def _same(self, a: Set, b: Set) -> bool:
        return a.find() is b.find() or a.find().expr == b.find().expr


def _kind(dtype: torch.dtype) -> int:
    return 0 if dtype == torch.bool else 2 if dtype.is_floating_point else 1


def _scalar_elem(x: Any) -> Elem:
    if isinstance(x, bool):
        return "i1"
    if isinstance(x, int):
        return "i64"
    return elem_of(torch.get_default_dtype())
