"""Tensors in another shape, their parts, and parts put back, with the rows of sets kept whole."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import sympy
import torch

from ..errors import NoRule
from .context import Context
from .nodes import Set, Union
from .sizes import Sizes, expression
from .tensors import Arr, Dim, Merge, Sym, numbers

WHOLE = slice(None, None, None)


def view(ctx: Context, x: Arr, like: torch.Tensor) -> Arr:
    """x in the shape of `like`. Legal when the numbers before the row axis stay as many; a
    dimension of k times the set keeps k apart (a merge), be it of those before or behind."""
    home, values = x.home, ctx.values
    if home is None:
        dims = ctx.sizes.dims(like)
        shape = [d for d in dims if isinstance(d, int)]
        if len(shape) != len(dims):
            raise NoRule("a constant size viewed as the rows of a set")
        return Arr(list(dims), values.reshape(x.v, shape))
    axis = x.axis
    merged = x.dims[axis]
    # a merge counts its k where that is the slower index
    within = isinstance(merged, Merge) and merged.within
    before = math.prod(numbers(x.dims[: axis + (not within)]))
    rows = ctx.sizes.canonical(home.expr)
    if rows.is_Integer:
        wanted, position, k = _of_fixed_rows(int(rows), before, like)
    else:
        wanted, position, k = _row_position(ctx.sizes, rows, like)
    left, right = wanted[:position], wanted[position + 1 :]
    slower = math.prod(left)
    if before not in (slower * k, slower):
        raise NoRule("a view that mixes the rows of a set with columns")
    dims: list[Dim] = [*left, home if k == 1 else Merge(k, home, slower == before), *right]
    return Arr(dims, values.reshape(x.v, numbers(dims)))


def _row_position(sizes: Sizes, rows: sympy.Expr, like: torch.Tensor) -> tuple[list[int], int, int]:
    """The wanted shape (the row axis as -1), where the row axis is, and its factor."""
    wanted: list[int] = []
    found: list[tuple[int, int]] = []
    for i, d in enumerate(like.shape):
        e = sizes.canonical(expression(d))
        ratio = sympy.simplify(e / rows) if e.free_symbols else None
        if ratio is not None and not ratio.is_Integer and sizes.found_equal(e, rows):
            ratio = sympy.Integer(1)
        if ratio is not None and ratio.is_Integer:
            found.append((i, int(ratio)))
            wanted.append(-1)
        elif e.free_symbols and sizes.is_rows(e):
            raise NoRule(f"a view: {e} is no multiple of the {rows} rows")
        else:
            wanted.append(int(d))
    if len(found) != 1:
        raise NoRule("a view that merges the rows of a set with columns")
    return wanted, *found[0]


def _of_fixed_rows(rows: int, before: int, like: torch.Tensor) -> tuple[list[int], int, int]:
    """The same for a set whose size is a number, as any column's may be: its rows are where so
    many numbers lie `before` them."""
    wanted = [int(d) for d in like.shape]
    for i, d in enumerate(wanted):
        k, rest = divmod(d, rows) if rows else (0, d)
        if k and not rest and math.prod(wanted[:i]) * k == before:
            return [*wanted[:i], -1, *wanted[i + 1 :]], i, k
    raise NoRule("a view that merges the rows of a set with columns")


def part(ctx: Context, x: Arr, dim: int, lo: sympy.Expr, hi: sympy.Expr, size: sympy.Expr) -> Arr:
    """The rows lo .. hi - 1 of a tensor whose dimension `dim` is a set, `size` in number: one part
    of a union of sets, all rows, or an interval of them."""
    canonical = ctx.sizes.canonical
    union = ctx.rows_of(x, dim)[1]
    if isinstance(union.origin, Union):
        start = sympy.Integer(0)
        for k, part in enumerate(union.origin.parts):
            end = start + part.find().expr
            if _equal(canonical(start), canonical(lo)) and _equal(canonical(end), canonical(hi)):
                v = ctx.values.part(x.v, union, k)
                return Arr([*x.dims[:dim], part.find(), *x.dims[dim + 1 :]], v)
            start = end
    if _equal(canonical(lo), sympy.Integer(0)) and _equal(canonical(hi), canonical(union.expr)):
        return x
    return ctx.interval(x, lo, hi, size)


def _equal(a: sympy.Expr, b: sympy.Expr) -> bool:
    return a == b or sympy.simplify(a - b) == 0


def spelled_out(index: Sequence[Any], rank: int) -> tuple[Any, ...]:
    """An index with whole slices in the place of `...`."""
    taken = sum(i is not None and i is not Ellipsis for i in index)
    parts = ([WHOLE] * (rank - taken) if i is Ellipsis else [i] for i in index)
    return tuple(itertools.chain(*parts))


def bounds(i: Any, rows: Set) -> tuple[sympy.Expr, sympy.Expr]:
    """The rows that a number or a slice without a step chooses: from one on, up to another.

    Raises:
        NoRule: it is something else.
    """
    end = rows.find().expr
    if type(i) is int:
        return sympy.Integer(i), sympy.Integer(i + 1) if i != -1 else end
    if not isinstance(i, slice) or i.step not in (None, 1):
        raise NoRule("rows that are chosen by more than a number or a plain slice")
    lo, hi = (
        b.expr if isinstance(b, Sym) else default if b is None else sympy.Integer(b)
        for b, default in ((i.start, sympy.Integer(0)), (i.stop, end))
    )
    return lo, hi


def fitted(ctx: Context, base: Arr, index: Sequence[Any], value: Arr) -> Arr:
    """`value` in the shape of `base[index]`, of whole dimensions, numbers and plain slices."""
    if len(index) > base.rank:
        raise NoRule("an assignment to an item with a dimension more")
    dims: list[Dim] = []
    for size, i in zip(base.dims, (*index, *[WHOLE] * (base.rank - len(index)))):
        if i == WHOLE:
            dims.append(size)
        elif isinstance(size, Set):
            if type(i) is not int:
                dims.append(ctx.rows_between(size.find(), *bounds(i, size)))
        elif isinstance(size, Merge):
            raise NoRule("an assignment to some of grouped rows")
        elif isinstance(i, slice) and is_plain(i):
            dims.append(len(range(*i.indices(size))))
        elif type(i) is not int:
            raise NoRule("an assignment to these columns")
    for k, d in enumerate(dims):
        own = k - len(dims) + value.rank
        if isinstance(d, Set) and own >= 0 and value.dims[own] not in (1, d):
            value = _on_rows(ctx, value, own, d.find())
    return ctx.expand(value, dims)


def _on_rows(ctx: Context, x: Arr, dim: int, rows: Set) -> Arr:
    """A tensor with a dimension as the rows of a set, of which there are as many."""
    if isinstance(x.dims[dim], Set):
        v = ctx.values.on(x.v, rows)
    elif isinstance(x.dims[dim], int) and x.axis is None:
        order = [dim] + [i for i in range(x.rank) if i != dim]
        v = ctx.values.as_rows(ctx.values.transpose(x.v, order), rows)
    else:
        raise NoRule("an assignment of grouped rows")
    return Arr([*x.dims[:dim], rows, *x.dims[dim + 1 :]], v)


def _put_rows(ctx: Context, base: Arr, index: Sequence[Any], value: Arr, dim: int) -> Arr:
    """The same with some rows of a set at `dim`, by a number or between two."""
    home, i = base.dims[dim].find(), index[dim]
    lo, hi = bounds(i, home)
    rows = ctx.rows_between(home, lo, hi)
    dims = [*base.dims[:dim], rows, *base.dims[dim + 1 :]]
    piece = Arr(dims, ctx.values.parent(base.v, rows))
    if type(i) is int:
        value = ctx.unsqueeze(value, dim)
    inner = [*index[:dim], WHOLE, *index[dim + 1 :]]
    value = put(ctx, piece, inner, fitted(ctx, piece, inner, value), dim + 1)
    placed = ctx.values.make(
        "scatter_parent", [value.v], home, value.v.shape, value.elem, subset=rows
    )
    chosen = ctx.are_between(home, lo, hi)
    for _ in range(dim + 1, base.rank):
        chosen = ctx.unsqueeze(chosen, chosen.rank)
    return ctx.where(chosen, Arr(base.dims, placed), base)


def put(ctx: Context, base: Arr, index: Sequence[Any], value: Arr, dim: int = 0) -> Arr:
    """`base` with `value` in the place of `base[index]`, whose shape it has: whole dimensions,
    numbers and plain slices."""
    while dim < len(index) and index[dim] == WHOLE:
        dim += 1
    if dim >= len(index):
        return value
    i, size = index[dim], base.dims[dim]
    if isinstance(size, Set):
        return _put_rows(ctx, base, index, value, dim)
    if not isinstance(size, int):
        raise NoRule("an edit of some of grouped rows")
    if isinstance(i, int) and not isinstance(i, bool):
        lo = i % size
        hi = lo + 1
        rest = (*index[:dim], *index[dim + 1 :])
        inner = put(ctx, ctx.select(base, dim, lo), rest, value, dim)
        piece = ctx.unsqueeze(inner, dim)
    elif isinstance(i, slice) and is_plain(i):
        lo, hi, _ = i.indices(size)
        piece = put(ctx, ctx.narrow(base, dim, lo, hi), index, value, dim + 1)
    else:
        raise NoRule("an edit of columns that are chosen by more than a number or a plain slice")
    pieces = [piece]
    if lo > 0:
        pieces.insert(0, ctx.narrow(base, dim, 0, lo))
    if hi < size:
        pieces.append(ctx.narrow(base, dim, hi, size))
    return ctx.concat(pieces, dim)


def is_plain(i: slice) -> bool:
    """Whether a slice is without a step, between numbers that are known now."""
    return i.step in (None, 1) and all(b is None or type(b) is int for b in (i.start, i.stop))
