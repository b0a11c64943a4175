"""All the arithmetic on tensors that rules are written in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import sympy

from ..errors import NoRule
from .held import Bound, Held
from .indexing import Indexing
from .nodes import Node, Set, Union, depends_on_floats, is_const
from .tensors import Arr, Dim, Merge, numbers


class Context(Indexing):
    """What rules work with: the sets and values of one graph, with reductions and moves of
    dimensions on top of what is done element by element and by index."""

    # ------------------------------------------------------------ what has to hold

    def require_below(self, x: Arr, size: int) -> None:
        """The integers of x must be in 0 .. size - 1 (not those that follow from floats). For rules
        that compare where torch would index. The runtime checks one number a row when it sees new
        ones; several, or those of no set, are looked at in each call.
        """
        if depends_on_floats(x.v) or (is_const(x.v) and 0 <= x.v.attrs["value"] < size):
            return
        if x.home is not None and math.prod(x.v.shape) == 1:
            self.bounds.append(Bound(self.values.reshape(x.v, ()), x.home, size))
            return
        within = self.raw(
            "logical_and", [self.compare("ge", x, 0), self.compare("lt", x, size)], "i1"
        )
        outside = self.cast(self.raw("logical_not", [within], "i1"), "i64")
        all_within = self.binary("sub", 1, self.total("max", outside))  # also where there are none
        message = f"index out of range: its numbers must be between 0 and {size - 1}"
        self.assertions.append(Held(all_within, message, IndexError))

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
        if x.merged and axis in chosen:
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
        return self.binary("div", self.total("sum", x, dims, keep), self.count(x, dims))

    def variance(
        self, x: Arr, dims: int | Sequence[int] | None, keep: bool, correction: float
    ) -> Arr:
        # the deviations sum up to 0, so nothing flows back through the mean
        centred = self.binary("sub", x, self.flat(self._mean_between(x, dims)))
        total = self.total("sum", self.binary("mul", centred, centred), dims, keep)
        count = self.count(x, dims)
        if correction:  # of no rows, 0 / 0 as in torch
            count = self.binary("maximum", self.binary("sub", count, float(correction)), 0.0)
        return self.binary("div", total, count)

    def _mean_between(self, x: Arr, dims: int | Sequence[int] | None) -> Arr:
        """The mean, from the least number to the greatest. Rounding takes that of equal numbers
        beside them; their variance is 0 in torch, and the gradient of a root is another there."""
        mean = self.mean(x, dims, True)
        for side, end in (("maximum", "min"), ("minimum", "max")):
            mean = self.binary(side, mean, self.total(end, x, dims, True))
        return mean

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
        if len({x.grouping for x in xs}) > 1:
            raise NoRule("rows meet rows of another grouping")
        home: Set | None = None
        for x in xs:
            if x.home is not None:
                home = x.home if home is None else self.sizes.meet(home, x.home)
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
            elif isinstance(have, Set) and not (
                isinstance(want, Set) and have.find().expr == want.find().expr
            ):
                raise NoRule("the rows of a set repeated")
            elif isinstance(have, Merge):
                raise NoRule("grouped rows repeated")
            elif tile and want == 0 != have:
                raise NoRule("columns repeated no times")
        out = [h if isinstance(h, Set) else w for h, w in zip(x.dims, dims, strict=True)]
        f: Callable[..., Node] = self.values.repeat if tile else self.values.broadcast
        return Arr(out, f(x.v, numbers(out)))
