"""Tensors as the importer sees them.

A `Tensor` of the graph is `dims` (numbers, and at most one set or merge of a number and a set, at
any position: the row axis) and a node whose row shape is the numbers in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy
import torch
from torch.utils._sympy.functions import FloatTrueDiv, IntTrueDiv, Max, Min, ToFloat

from ..errors import NoRule
from .elements import Elem
from .nodes import Node, Set

ELEMS: dict[torch.dtype, Elem] = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "i1",
}
DTYPES = {e: d for d, e in ELEMS.items()}


def elem_of(dtype: torch.dtype) -> Elem:
    if dtype not in ELEMS:
        raise NoRule(f"{dtype} values: gnnc compiles float32, float64, int32, int64 and bool")
    return ELEMS[dtype]


@dataclass(eq=False)
class Merge:
    """A dimension of k x set rows: k the slower index, or with `within` the faster one, k numbers
    for each row side by side. In a node its k is a column either way."""

    k: int
    set: Set
    within: bool = False

    @property
    def apart(self) -> list[Dim]:
        """The two dimensions that it is made of."""
        return [self.set, self.k] if self.within else [self.k, self.set]


Dim = int | Set | Merge


@dataclass(eq=False)
class Sym:
    """A symbolic scalar."""

    expr: sympy.Expr


ARITHMETIC: dict[type, str] = {
    sympy.Add: "add",
    sympy.Mul: "mul",
    FloatTrueDiv: "div",
    IntTrueDiv: "div",
    Max: "maximum",
    Min: "minimum",
    ToFloat: "add",  # of one operand: a cast
}
"""What a program computes of numbers that only running it tells."""


def elem_of_number(expr: sympy.Basic) -> Elem:
    """The type of a number that is computed from sizes: f64 for a mean degree.

    Raises:
        NoRule: it is a comparison.
    """
    if not isinstance(expr, sympy.Expr):
        raise NoRule("a comparison of sizes as a number")
    return "i64" if expr.is_integer else "f64"


@dataclass(eq=False)
class Arr:
    """A tensor. `v` has its rows, or one row that is the same for all.

    Raises:
        NoRule: two of its dimensions are rows of sets.
    """

    dims: list[Dim]
    v: Node

    def __post_init__(self) -> None:
        if sum(not isinstance(d, int) for d in self.dims) > 1:
            raise NoRule("a tensor whose rows and columns are rows of sets (a product of two sets)")

    @property
    def axis(self) -> int | None:
        """The position of the row axis."""
        return next((i for i, d in enumerate(self.dims) if not isinstance(d, int)), None)

    @property
    def home(self) -> Set | None:
        a = self.axis
        if a is None:
            return None
        d = self.dims[a]
        return d.find() if isinstance(d, Set) else d.set.find()

    @property
    def rows(self) -> Set:
        """The set that the row axis is of.

        Raises:
            NoRule: there is none.
        """
        if self.home is None:
            raise NoRule("a tensor of constant size where one row for each of a set is needed")
        return self.home

    @property
    def merged(self) -> bool:
        a = self.axis
        return a is not None and isinstance(self.dims[a], Merge)

    @property
    def grouping(self) -> tuple[int, bool] | None:
        """How its rows are grouped, to be compared; None: they are not."""
        d = None if self.axis is None else self.dims[self.axis]
        return (d.k, d.within) if isinstance(d, Merge) else None

    @property
    def apart(self) -> Arr:
        """Grouped rows as rows and columns, of the same numbers."""
        dims: list[Dim] = []
        for d in self.dims:
            dims.extend(d.apart if isinstance(d, Merge) else [d])
        return Arr(dims, self.v)

    def joined(self, dim: int, within: bool) -> Arr:
        """The dimension `dim` and the next, rows and columns, as grouped rows of these numbers."""
        columns, rows = self.dims[dim : dim + 2]
        if within:
            rows, columns = columns, rows
        assert isinstance(rows, Set) and isinstance(columns, int)
        return Arr([*self.dims[:dim], Merge(columns, rows, within), *self.dims[dim + 2 :]], self.v)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def elem(self) -> Elem:
        return self.v.elem

    def column(self, dim: int) -> int:
        """The row dimension of a tensor dimension (which is not the row axis)."""
        a = self.axis
        return dim if a is None or dim < a or self.merged else dim - 1

    def wrap(self, dim: int) -> int:
        if not isinstance(dim, int):
            raise NoRule("a number of a dimension that changes from call to call")
        if not self.rank:
            raise NoRule("a dimension of a tensor that has none")
        return dim % self.rank


def numbers(dims: Sequence[Dim]) -> list[int]:
    """The row shape of such dimensions (a merge keeps its k)."""
    out = []
    for d in dims:
        if isinstance(d, int):
            out.append(d)
        elif isinstance(d, Merge):
            out.append(d.k)
    return out


Operand = Arr | Sym | bool | int | float
