"""Rules of tensors put beside each other, padded or repeated, and of differences along columns."""

from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch

from ..errors import NoRule
from ..values.context import Context
from ..values.nodes import Set
from ..values.sizes import example, expression
from ..values.tensors import Arr, Merge, elem_of, numbers
from .registry import Call, rule


def joined(ctx: Context, xs: Sequence[Arr], dim: int) -> Arr:
    """torch.cat, which ignores empty 1-d tensors, whatever the rank of the others."""
    xs = [x for x in xs if not (x.rank == 1 and x.dims[0] == 0)]
    if not xs:
        raise NoRule("cat of empty tensors")
    dim = xs[0].wrap(dim)
    filled = [x for x in xs if x.dims[dim] != 0]
    return ctx.concat(filled or xs, dim)


@rule("cat")
def _cat(c: Call) -> Arr:
    return c.ctx.cast(joined(c.ctx, c.arg("tensors"), c.arg("dim")), elem_of(c.out.dtype))


@rule("stack")
def _stack(c: Call) -> Arr:
    xs = c.arg("tensors")
    dim = c.arg("dim") % (xs[0].rank + 1)
    return c.ctx.concat([c.ctx.unsqueeze(x, dim) for x in xs], dim)


# ---------------------------------------------------------------- of a least rank


def _at_least(ctx: Context, x: Arr, rank: int) -> Arr:
    """A vector is a row among matrices, and a matrix the front of a block."""
    if x.rank == 0:
        return Arr([1] * rank, ctx.values.reshape(x.v, [1] * rank))
    if x.rank == 1 and rank > 1:
        x = ctx.unsqueeze(x, 0)
    while x.rank < rank:
        x = ctx.unsqueeze(x, x.rank)
    return x


def _column(ctx: Context, x: Arr) -> Arr:
    return x if x.rank > 1 else ctx.unsqueeze(_at_least(ctx, x, 1), 1)


@rule("atleast_1d", "atleast_2d", "atleast_3d")
def _atleast(c: Call) -> Any:
    rank, xs = int(c.op[-2]), c.arg("tensors")
    listed = xs[0] if len(xs) == 1 and isinstance(xs[0], tuple | list) else xs
    found = tuple(_at_least(c.ctx, x, rank) for x in listed)
    return found if isinstance(c.example, tuple | list) else found[0]


_STACKS: dict[str, tuple[Callable[[Context, Arr], Arr], int]] = {
    "vstack": (lambda ctx, x: _at_least(ctx, x, 2), 0),
    "dstack": (lambda ctx, x: _at_least(ctx, x, 3), 2),
    "column_stack": (_column, 1),
}


@rule("hstack", *_STACKS)
def _stacked(c: Call) -> Arr:
    ctx, xs = c.ctx, c.arg("tensors")
    if c.op == "hstack":
        xs = [_at_least(ctx, x, 1) for x in xs]
        dim = min(xs[0].rank - 1, 1)
    else:
        shaped, dim = _STACKS[c.op]
        xs = [shaped(ctx, x) for x in xs]
    return ctx.cast(joined(ctx, xs, dim), elem_of(c.out.dtype))


# ---------------------------------------------------------------- longer and shorter


@rule("pad", "constant_pad_nd")
def _pad(c: Call) -> Arr:
    """Columns of one number at either end of dimensions, the last first; fewer where it is < 0."""
    x, widths, value = c.x, c.arg("pad"), c.arg("value")
    if c.arg("mode", "constant") != "constant":
        raise NoRule(f"padding by mode {c.arg('mode')!r}")
    if not all(type(n) is int for n in widths):
        raise NoRule("padding by numbers that are no constants")
    fill = 0 if value is None else value
    if not isinstance(fill, bool | int | float):
        raise NoRule("padding by a value that is no constant")
    for k in range(len(widths) // 2):
        if widths[2 * k] or widths[2 * k + 1]:
            x = _padded(c, x, x.rank - 1 - k, widths[2 * k], widths[2 * k + 1], fill)
    return x


def _padded(c: Call, x: Arr, dim: int, before: int, behind: int, fill: float) -> Arr:
    size = x.dims[dim]
    if not isinstance(size, int):
        raise NoRule("the rows of a set padded")
    if before < 0 or behind < 0:
        x = c.ctx.narrow(x, dim, max(0, -before), size - max(0, -behind))

    def filled(width: int) -> list[Arr]:
        dims = [*x.dims[:dim], width, *x.dims[dim + 1 :]]
        return [Arr(dims, c.ctx.values.const(fill, x.elem, numbers(dims)))] if width > 0 else []

    parts = [*filled(before), *([x] if x.dims[dim] else []), *filled(behind)]
    return c.ctx.concat(parts, dim) if parts else x


@rule("repeat_interleave")
def _repeat_interleave(c: Call) -> Arr:
    """Each column, or each row, as often as a number says."""
    repeats, dim = c.arg("repeats", None), c.arg("dim", None)
    c.seen_in_result("output_size")
    times = example(c.form.arguments["repeats"])
    if isinstance(times, torch.SymInt):
        repeats = c.ctx.sizes.dim(times)  # the width of a table, as a number
    if not isinstance(repeats, int) or dim is None and c.x.rank != 1:
        raise NoRule("rows repeated by numbers of a tensor, or of a tensor made flat")
    x, dim = c.x, c.x.wrap(dim or 0)
    size = x.dims[dim]
    if isinstance(size, Merge) or repeats < 1:
        raise NoRule("grouped rows repeated, or rows or columns repeated no times")
    wide = c.ctx.unsqueeze(x, dim + 1)
    wide = c.ctx.expand(wide, [*x.dims[: dim + 1], repeats, *x.dims[dim + 1 :]])
    if isinstance(size, Set):
        return wide if repeats == 1 else wide.joined(dim, within=True)
    dims = [*x.dims[:dim], size * repeats, *x.dims[dim + 1 :]]
    return Arr(dims, c.ctx.values.reshape(wide.v, numbers(dims)))


@rule("diff")
def _diff(c: Call) -> Arr:
    """Each number minus the one before it."""
    x, dim = c.x, c.dim()
    for _ in range(int(c.number("n"))):
        size = x.dims[dim]
        if isinstance(size, int):
            lo, hi = (c.ctx.narrow(x, dim, k, size - 1 + k) for k in (0, 1))
        else:
            lo, hi = _neighbours(c, x, dim)
        name = "ne" if x.elem == "i1" else "sub"
        x = c.ctx.compare("ne", hi, lo) if name == "ne" else c.ctx.binary("sub", hi, lo)
    return x


def _neighbours(c: Call, x: Arr, dim: int) -> tuple[Arr, Arr]:
    """The rows of a set but the last, and but the first, each in their order."""
    rows = x.dims[dim]
    if not isinstance(rows, Set) or c.number("n") != 1:
        raise NoRule("differences of grouped rows, or of differences of rows")
    total = expression(example(c.form.arguments["input"]).shape[dim])
    size = expression(c.out.shape[dim])
    one = sympy.Integer(1)
    lo = c.ctx.interval(x, sympy.Integer(0), total - one, size)
    hi = c.ctx.interval(x, one, total, size)
    return lo, hi
