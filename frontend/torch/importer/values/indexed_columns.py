"""One column of each row, at a place that an index tells: `h[kind, node]` of `h = x @ w`.

The choice goes down to where the columns come from. What is left is a row of `x` and a row of `w`,
so the table of all nodes times all kinds need not exist; whether it pays is for passes to tell.
"""

from __future__ import annotations

import math
import string
from dataclasses import dataclass

import sympy

from ..errors import NoRule
from .context import Context
from .nodes import Node, Set, behind
from .tensors import Arr

_COMPARED = 256
"""So many columns are compared with an index, to find the one that it tells."""


@dataclass(frozen=True)
class Pick:
    """Rows of `over` that see the rows of `home` through `row`, and of each the place `place` in
    one of its dimensions."""

    ctx: Context
    over: Set
    home: Set | None
    row: Node | None
    place: Node

    def whole(self, v: Node) -> Node:
        """A value with all its columns."""
        if self.row is None or self.home is None:  # over sees its own rows
            return v
        return self.ctx.values.at(v, self.row, self.over, self.home)

    def of(self, v: Node, dim: int) -> Node:
        """A value without its row dimension `dim`, at the place in it.

        Raises:
            NoRule: the columns are computed together.
        """
        if self._is_table(v):
            return self._of_table(v, dim)
        match v.op:
            case "pointwise" | "cast" | "stop":
                return self._of_pointwise(v, dim)
            case "contract":
                return self._of_product(v, dim)
            case "transpose":
                return self._of_transposed(v, dim)
            case "reshape":
                return self._of_reshaped(v, dim)
            case "concat":
                return self._of_joined(v, dim)
            case "slice" if v.attrs["dim"] != dim:
                along, bounds = v.attrs["dim"], (v.attrs[k] for k in ("lo", "hi", "step"))
                inner = self.of(v.args[0], dim)
                return self.ctx.values.slice(inner, along - (along > dim), *bounds)
            case "row_reduce":
                return self._of_reduced(v, dim)
            case _:
                return self._chosen(v, dim)

    def _chosen(self, v: Node, dim: int) -> Node:
        """One of columns that are there together: a sum in which all others are 0."""
        size = v.shape[dim]
        if size > _COMPARED or v.elem == "i1":
            raise NoRule(
                "an index tensor for the rows of a set beside one for their columns, which are "
                f"{size} of {v.elem}"
            )
        values, shape = self.ctx.values, [1] * len(v.shape)
        shape[dim] = size
        numbers = values.reshape(values.count_up(size, self.place.elem), shape)
        here = values.pointwise("eq", [self.place, numbers], "i1")
        zero = values.const(0, v.elem)
        return values.row_reduce(
            "sum", values.pointwise("where", [here, self.whole(v), zero], v.elem), [dim]
        )

    def _is_table(self, v: Node) -> bool:
        return v.set is None

    def _of_table(self, v: Node, dim: int) -> Node:
        """Values that are the same for all rows: a table of as many rows as there are places."""
        values = self.ctx.values
        order = [dim, *(i for i in range(len(v.shape)) if i != dim)]
        rows = self.ctx.sizes.set_of(sympy.Integer(v.shape[dim]))
        table = values.as_rows(values.transpose(v, order), rows)
        return values.at(table, self.place, self.over, rows)

    def _of_pointwise(self, v: Node, dim: int) -> Node:
        """The same function of what it is computed from; an operand may lack the dimension."""
        values, args = self.ctx.values, list[Node]()
        for a in v.args:
            own = dim - len(v.shape) + len(a.shape)
            if own < 0:
                args.append(self.whole(a))
            elif a.shape[own] == v.shape[dim]:
                args.append(self.of(a, own))
            else:
                args.append(self._without(self.whole(a), own))
        if v.op == "cast":
            return values.cast(args[0], v.elem)
        if v.op == "stop":
            return values.stop(args[0])
        return values.pointwise(v.attrs["name"], args, v.elem, **v.attrs["params"])

    def _of_product(self, v: Node, dim: int) -> Node:
        left, out = v.attrs["spec"].split("->")
        letter, args, specs = out[dim], list[Node](), list[str]()
        for a, letters in zip(v.args, left.split(","), strict=True):
            own = letters.find(letter)
            args.append(self.whole(a) if own < 0 else self.of(a, own))
            specs.append(letters.replace(letter, ""))
        spec = f"{','.join(specs)}->{out.replace(letter, '')}"
        return self.ctx.values.contract(spec, args[0], args[1])

    def _of_transposed(self, v: Node, dim: int) -> Node:
        order = list(v.attrs["order"])
        own = order.pop(dim)
        left = [i - (i > own) for i in order]
        return self.ctx.values.transpose(self.of(v.args[0], own), left)

    def _of_reshaped(self, v: Node, dim: int) -> Node:
        """The dimension is one of what was reshaped, or a part of one."""
        before, size, inner = math.prod(v.shape[:dim]), v.shape[dim], v.args[0]
        rest = (*v.shape[:dim], *v.shape[dim + 1 :])
        for own, n in enumerate(inner.shape):
            start = math.prod(inner.shape[:own])
            slower, left = divmod(before, start)
            if left == 0 and n % (slower * size) == 0:
                faster = n // (slower * size)
                sizes = (*[slower] * (slower > 1), size, *[faster] * (faster > 1))
                split = self._split(inner, own, sizes) if sizes != (n,) else inner
                return self.ctx.values.reshape(self.of(split, own + (slower > 1)), rest)
        raise NoRule("an index into columns that were reshaped from parts of several dimensions")

    def _split(self, v: Node, dim: int, sizes: tuple[int, ...]) -> Node:
        """A value with dimension `dim` as several, split where it comes from."""
        values = self.ctx.values
        if self._is_table(v) or v.shape[dim] == 1:
            return values.reshape(v, (*v.shape[:dim], *sizes, *v.shape[dim + 1 :]))
        if v.op == "pointwise":
            args = list[Node]()
            for a in v.args:
                own = dim - len(v.shape) + len(a.shape)
                if own >= 0:
                    a = self._split(a, own, sizes if a.shape[own] != 1 else (1,) * len(sizes))
                args.append(a)
            return values.pointwise(v.attrs["name"], args, v.elem, **v.attrs["params"])
        if v.op == "contract":
            left, out = v.attrs["spec"].split("->")
            free = [c for c in string.ascii_letters if c not in v.attrs["spec"]]
            letter, new = out[dim], "".join(free[: len(sizes)])
            args = [
                self._split(a, p.index(letter), sizes) if letter in p else a
                for a, p in zip(v.args, left.split(","), strict=True)
            ]
            return values.contract(v.attrs["spec"].replace(letter, new), *args)
        raise NoRule("an index into columns that are a part of a longer dimension")

    def _of_reduced(self, v: Node, dim: int) -> Node:
        gone, inner = v.attrs["dims"], v.args[0]
        own = [k for k in range(len(inner.shape)) if k not in gone][dim]
        dims = [k - (k > own) for k in gone]
        return self.ctx.values.row_reduce(v.attrs["kind"], self.of(inner, own), dims)

    def _of_joined(self, v: Node, dim: int) -> Node:
        """Parts that are joined along another dimension, or one position of each in this one."""
        along = v.attrs["dim"]
        if along != dim:
            return self.ctx.values.concat([self.of(a, dim) for a in v.args], along - (along > dim))
        if any(a.shape[dim] != 1 for a in v.args):
            raise NoRule("an index into columns that are joined from several at a time")
        return self._one_of([self._without(a, dim) for a in v.args])

    def _one_of(self, parts: list[Node]) -> Node:
        """The part that the place tells: of parts that are alike, the same function of one of each
        operand (`stack([lin(x) for lin in lins])`)."""
        values, first = self.ctx.values, parts[0]
        if all(p is first for p in parts):
            return self.whole(first)
        if all(p.set is None for p in parts):
            rows = [values.reshape(p, (1, *p.shape)) for p in parts]
            return self._of_table(values.concat(rows, 0), 0)
        if any((p.op, p.attrs, p.shape) != (first.op, first.attrs, first.shape) for p in parts):
            raise NoRule("an index into columns that are computed in different ways")
        if first.op not in ("pointwise", "contract", "reshape", "transpose"):
            raise NoRule("an index into columns that are joined")
        args = [self._one_of(list(several)) for several in zip(*(p.args for p in parts))]
        match first.op:
            case "pointwise":
                params = first.attrs["params"]
                return values.pointwise(first.attrs["name"], args, first.elem, **params)
            case "contract":
                return values.contract(first.attrs["spec"], *args)
            case "reshape":
                return values.reshape(args[0], first.shape)
            case _:
                return values.transpose(args[0], first.attrs["order"])

    def _without(self, v: Node, dim: int) -> Node:
        return self.ctx.values.reshape(v, (*v.shape[:dim], *v.shape[dim + 1 :]))


class _PickOfProduct(Pick):
    """From values that are the same for all rows, down to a product: its factors are the tables."""

    def _is_table(self, v: Node) -> bool:
        return not _is_made_of_product(v)

    def _of_product(self, v: Node, dim: int) -> Node:
        return Pick(self.ctx, self.over, None, None, self.place)._of_product(v, dim)


def _is_made_of_product(v: Node) -> bool:
    """Whether a function of single numbers, or of their order, stands between v and a product."""
    inner = behind(v, enter=lambda x: x.op in ("pointwise", "cast", "transpose", "reshape"))
    return any(x.op == "contract" for x in inner)


def pick(ctx: Context, x: Arr, first: tuple[int, Arr], second: tuple[int, Arr]) -> Arr:
    """`x[.., i, .., j, ..]`: two 1-d index tensors with the dimensions of x that they are for.

    Their rows come where the first was; in front, where dimensions lie between the two.
    """
    (p, i), (q, j) = first, second
    for index in (i, j):
        if index.rank != 1 or not isinstance(index.dims[0], Set) or index.elem == "i1":
            raise NoRule("index tensors that are not one number a row each")
    over = ctx.sizes.unify(i.home, j.home)
    rest = [d for k, d in enumerate(x.dims) if k not in (p, q)]
    position = p if q == p + 1 else 0
    dims = [*rest[:position], over, *rest[position:]]
    if x.axis is None:
        return Arr(dims, _of_pairs(ctx, x, over, first, second))
    if x.axis not in (p, q) or x.merged:
        raise NoRule("two index tensors into the columns of rows")
    (row, column), dim = ((i, j), q) if x.axis == p else ((j, i), p)
    size = x.dims[dim]
    assert isinstance(size, int)
    ctx.require_below(column, size)
    return Arr(dims, Pick(ctx, over, x.home, row.v, column.v).of(x.v, x.column(dim)))


def _of_pairs(
    ctx: Context, x: Arr, over: Set, first: tuple[int, Arr], second: tuple[int, Arr]
) -> Node:
    """A row of a table for each pair of numbers. Of a product it is one of a row of each factor,
    and the table need not be computed."""
    (p, i), (q, j) = first, second
    rows, columns = x.v.shape[p], x.v.shape[q]
    ctx.require_below(i, rows)
    ctx.require_below(j, columns)
    try:
        half = _PickOfProduct(ctx, over, None, None, i.v).of(x.v, p)
        return Pick(ctx, over, None, None, j.v).of(half, q - (q > p))
    except NoRule:  # one factor has both dimensions
        return _of_whole_table(ctx, x, over, first, second)


def _of_whole_table(
    ctx: Context, x: Arr, over: Set, first: tuple[int, Arr], second: tuple[int, Arr]
) -> Node:
    (p, i), (q, j) = first, second
    rows, columns = x.v.shape[p], x.v.shape[q]
    order = [p, q, *(k for k in range(x.rank) if k not in (p, q))]
    table = ctx.values.transpose(x.v, order)
    table = ctx.values.reshape(table, (rows * columns, *table.shape[2:]))
    pair = ctx.binary("add", ctx.binary("mul", i, columns), j)
    return Pick(ctx, over, None, None, pair.v).of(table, 0)


def column_numbers(ctx: Context, x: Arr, dim: int, i: Arr) -> Arr:
    """The positions of the columns that an index, one for each row, chooses from.

    Raises:
        NoRule: it chooses something else.
    """
    size = x.dims[dim]
    if not isinstance(size, int):
        raise NoRule("an index tensor with as many dimensions as the tensor it reads")
    if i.rank != x.rank or i.dims[dim] != 1:
        raise NoRule("several columns chosen for each row")
    for k, (mine, whole) in enumerate(zip(i.dims, x.dims, strict=True)):
        if k != dim and isinstance(mine, int) and isinstance(whole, int) and mine != whole:
            raise NoRule("an index tensor that covers a part of the tensor it reads or writes")
    shape = [1] * x.rank
    shape[dim] = size
    values = ctx.values
    return Arr(list(shape), values.reshape(values.count_up(size, i.elem), shape))
