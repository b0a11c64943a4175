"""Functions made of pieces, with torch's gradient at each seam and at NaN.

A piece that gives a value but no gradient is stopped: `where(inside, x, stop(bound))` is flat
outside, also where x is NaN, which is in no piece and goes through with gradient 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import NoRule
from .context import Context
from .elements import FLOATS
from .nodes import Set
from .tensors import Arr, Operand


def limited(ctx: Context, x: Arr, lo: Operand | None, hi: Operand | None = None) -> Arr:
    """x, or the bound that it is beyond; NaN stays."""
    if lo is not None:
        x = ctx.where(ctx.compare("lt", x, lo), lo, x)
    if hi is not None:
        x = ctx.where(ctx.compare("gt", x, hi), hi, x)
    return x


def clamp(ctx: Context, x: Arr, lo: Operand | None, hi: Operand | None) -> Arr:
    """x between two bounds, numbers or tensors; a value at a bound keeps its gradient."""
    elem = ctx.promote(x, *(b for b in (lo, hi) if b is not None))
    x = ctx.cast(x, elem)
    if elem not in FLOATS:
        return limited(ctx, x, lo, hi)
    if isinstance(lo, Arr) or isinstance(hi, Arr):
        x = x if lo is None else _bounded(ctx, x, lo, "ge", "lt")
        return x if hi is None else _bounded(ctx, x, hi, "le", "gt")
    inside = [ctx.compare(name, x, b) for name, b in (("ge", lo), ("le", hi)) if b is not None]
    within = inside[0] if len(inside) == 1 else ctx.raw("logical_and", inside, "i1")
    return ctx.where(within, x, ctx.flat(limited(ctx, x, lo, hi)), elem=elem)


def _bounded(ctx: Context, x: Arr, bound: Operand, within: str, beyond: str) -> Arr:
    """One bound, to which the gradient goes where it is taken; NaN in either is the result."""
    neither = ctx.flat(ctx.binary("add", x, bound))
    taken = ctx.where(ctx.compare(beyond, x, bound), bound, neither)
    return ctx.where(ctx.compare(within, x, bound), x, taken)


def between(ctx: Context, x: Arr, y: Arr, ends: tuple[float, float], lo: float, hi: float) -> Arr:
    """y where x lies between two ends, `lo` and `hi` at them and beyond; flat there."""
    if x.elem not in FLOATS:
        raise NoRule("bounds of integers")
    first, last = ends
    inside = [ctx.compare("gt", x, first), ctx.compare("lt", x, last)]
    above = ctx.where(ctx.compare("ge", x, last), hi, x)
    value = ctx.where(ctx.compare("le", x, first), lo, above)
    return ctx.where(ctx.raw("logical_and", inside, "i1"), y, ctx.flat(value), elem=x.elem)


def hardtanh(ctx: Context, x: Arr, lo: float, hi: float) -> Arr:
    """x between two bounds; flat at a bound as well."""
    if x.elem not in FLOATS:
        raise NoRule("bounds of integers")
    inside = [ctx.compare("gt", x, lo), ctx.compare("lt", x, hi)]
    value = ctx.flat(limited(ctx, x, lo, hi))
    return ctx.where(ctx.raw("logical_and", inside, "i1"), x, value, elem=x.elem)


def hardswish(ctx: Context, x: Arr) -> Arr:
    """x times a line from 0 at -3 to 1 at 3. The curve between never sees what lies outside, whose
    squares may be infinite."""
    below, above = ctx.compare("le", x, -3.0), ctx.compare("ge", x, 3.0)
    outside = ctx.raw("logical_or", [below, above], "i1")
    inner = ctx.where(outside, 0.0, x, elem=x.elem)
    line = ctx.binary("div", ctx.binary("add", inner, 3.0), 6.0)
    y = ctx.where(above, x, ctx.binary("mul", inner, line), elem=x.elem)
    return ctx.where(below, ctx.flat(ctx.binary("mul", x, 0.0)), y, elem=x.elem)


def softshrink(ctx: Context, x: Arr, width: float) -> Arr:
    """x moved towards 0 by `width`, 0 where it is nearer."""
    near = ctx.where(ctx.compare("eq", x, x), 0.0, ctx.flat(x))
    below = ctx.where(ctx.compare("lt", x, -width), ctx.binary("add", x, width), near)
    return ctx.where(ctx.compare("gt", x, width), ctx.binary("sub", x, width), below)


def root(ctx: Context, x: Arr) -> Arr:
    """The square root, whose gradient at 0 is 0, as torch's norm and std have it: it is taken of
    numbers that are never 0."""
    zero = ctx.compare("eq", x, 0)
    positive = ctx.unary("sqrt", ctx.where(zero, 1.0, x, elem=x.elem))
    return ctx.where(zero, 0.0, positive, elem=x.elem)


def extremum(
    ctx: Context, kind: str, x: Arr, dims: int | Sequence[int] | None = None, keep: bool = False
) -> Arr:
    """amax and amin: the gradient is dealt evenly to all that are it, and is NaN where it is NaN.

    A reduction of rows and one of columns would deal it in two steps, to rows first. Of both at
    once the gradient is that of the mean of all that are it, whose distance from it is 0.
    """
    found = ctx.total(kind, x, dims, keep)
    chosen = ctx.which(x, dims)
    wide = any(isinstance(x.dims[d], int) and x.dims[d] != 1 for d in chosen)
    if x.elem not in FLOATS or x.axis not in chosen or not wide:
        return found
    value, each = ctx.flat(found), ctx.flat(ctx.total(kind, x, dims, True))
    is_it = ctx.compare("eq", x, each)
    number = ctx.total("sum", ctx.cast(is_it, x.elem), dims, keep)
    distance = ctx.where(is_it, ctx.binary("sub", each, x), 0.0, elem=x.elem)
    mean_distance = ctx.binary("div", ctx.total("sum", distance, dims, keep), number)
    finite = ctx.binary("sub", value, mean_distance)  # 0 is taken away, which leaves -0.0 as it is
    held = ctx.total("sum", ctx.where(is_it, x, 0.0, elem=x.elem), dims, keep)
    endless = ctx.compare("eq", ctx.unary("abs", value), math.inf)
    known = ctx.where(endless, ctx.binary("div", held, number), finite, elem=x.elem)
    return ctx.where(ctx.compare("eq", value, value), known, found, elem=x.elem)


def greatest(
    ctx: Context, kind: str, x: Arr, dims: int | Sequence[int] | None = None, keep: bool = False
) -> Arr:
    """`x.max()` or `x.min()` of all numbers: the gradient is dealt evenly to those that are it, and
    to the NaN where there are any (amax and amin give NaN to all then)."""
    if x.elem not in FLOATS:
        return ctx.total(kind, x, dims, keep)
    missing = ctx.compare("ne", x, x)
    number = ctx.total("sum", ctx.cast(missing, x.elem), dims, keep)
    least = float("-inf") if kind == "max" else float("inf")
    known = extremum(ctx, kind, ctx.where(missing, least, x, elem=x.elem), dims, keep)
    total = ctx.total("sum", ctx.where(missing, x, 0.0, elem=x.elem), dims, keep)
    share = ctx.binary("div", total, number)
    return ctx.where(ctx.compare("gt", number, 0), share, known, elem=x.elem)


def first_extreme(
    ctx: Context, kind: str, x: Arr, dim: int, differentiated: bool
) -> tuple[Arr, Arr]:
    """The extremes along a dimension and where each is first found; NaN is one. The gradient, where
    the extremes are `differentiated`, goes to that place only."""
    size = x.dims[dim]
    if isinstance(size, int) and size <= 64:
        return _first_column(ctx, kind, x, dim, size)
    if isinstance(size, Set):
        return _first_row(ctx, kind, x, dim, differentiated)
    raise NoRule("the position of an extremum of many columns, or of grouped rows")


def _first_column(ctx: Context, kind: str, x: Arr, dim: int, size: int) -> tuple[Arr, Arr]:
    """The same along a dimension of constant size, by a chain of comparisons."""
    best = ctx.select(x, dim, 0)
    where = ctx.lift(0, "i64")
    for k in range(1, size):
        other = ctx.select(x, dim, k)
        better = ctx.compare("gt" if kind == "max" else "lt", other, best)
        if x.elem in FLOATS:
            worse = ctx.compare("le" if kind == "max" else "ge", other, best)
            still = ctx.compare("eq", best, best)  # a NaN is beaten by nobody, and beats others
            better = ctx.raw("logical_and", [ctx.raw("logical_not", [worse], "i1"), still], "i1")
        where = ctx.where(better, k, where, elem="i64")
        best = ctx.where(better, other, best)
    return best, ctx.expand(where, best.dims)


def _first_row(ctx: Context, kind: str, x: Arr, dim: int, differentiated: bool) -> tuple[Arr, Arr]:
    """The same over the rows of a set: the least number of a row that has the extreme."""
    number = ctx.numbers_along(x, dim)
    found = ctx.flat(ctx.total(kind, x, dim, True))
    is_it = ctx.compare("eq", x, found)
    if x.elem in FLOATS:
        is_it = ctx.raw("logical_or", [is_it, ctx.compare("ne", x, x)], "i1")
    candidates = ctx.where(is_it, number, ctx.count(number), elem="i64")
    where = ctx.total("min", candidates, dim, True)
    best = found
    if differentiated and x.elem in FLOATS:
        here = ctx.compare("eq", number, where)
        held = ctx.total("sum", ctx.where(here, x, 0.0, elem=x.elem), dim, True)
        best = _with_gradient_of(ctx, found, held)
    return ctx.total("sum", best, dim, False), ctx.total("sum", where, dim, False)


def _with_gradient_of(ctx: Context, value: Arr, same: Arr) -> Arr:
    """A value with the gradient of `same`, which has the same numbers but for the sign of 0."""
    endless = ctx.compare("eq", ctx.unary("abs", value), math.inf)  # inf - inf would be nan
    moved = ctx.binary("sub", ctx.flat(same), same)
    return ctx.where(endless, same, ctx.binary("sub", value, moved), elem=value.elem)
