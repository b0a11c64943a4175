"""Arithmetic on tensors: torch's promotion of types, and its broadcasting, on rows of sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy
import torch

from .....dialects.pointwise import POINTWISE
from ..errors import NoRule
from .elements import FLOATS, Elem
from .held import Bound, Held
from .nodes import Node, Set
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
from .values import Values


@dataclass
class Arithmetic:
    """The sets and values of one graph, and pointwise arithmetic on its tensors. Without
    `float_masks`, rows cannot be chosen by a mask that depends on floats: IR can say it, the code
    generator has no way yet. `assertions` are what has to hold in every call."""

    sizes: Sizes
    float_masks: bool = True
    items: dict[str, Node] = field(default_factory=dict)
    bounds: list[Bound] = field(default_factory=list)
    assertions: list[Held] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = Values(self.sizes.meet)

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

    def flat(self, x: Arr) -> Arr:
        """The numbers of x, without a gradient."""
        return Arr(x.dims, self.values.stop(x.v))

    def promote(self, *xs: Operand) -> Elem:
        """torch's type promotion: dimensioned tensors first, then 0-d ones, then Python scalars."""
        best: torch.dtype | None = None
        groups: list[list[torch.dtype]] = [[], [], []]
        for x in xs:
            if isinstance(x, Arr):
                groups[0 if x.dims else 1].append(DTYPES[x.elem])
            else:
                groups[2].append(DTYPES[_scalar_elem(x)])
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
            if x.grouping != (None if merge is None else (merge.k, merge.within)):
                raise NoRule("rows meet rows of another grouping")
            home = self.sizes.meet(home, x.home)
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


def _kind(dtype: torch.dtype) -> int:
    return 0 if dtype == torch.bool else 2 if dtype.is_floating_point else 1


def _scalar_elem(x: Sym | bool | int | float) -> Elem:
    if isinstance(x, bool):
        return "i1"
    whole = elem_of_number(x.expr) == "i64" if isinstance(x, Sym) else isinstance(x, int)
    return "i64" if whole else elem_of(torch.get_default_dtype())
