"""Softmaxes along a dimension, whose exponentials cannot overflow."""

from __future__ import annotations

from .context import Context
from .tensors import Arr


def softmax(ctx: Context, x: Arr, dim: int) -> Arr:
    """exp(x) / sum exp(x) along a dimension."""
    e = ctx.unary("exp", _shifted(ctx, x, dim))
    return ctx.binary("div", e, ctx.total("sum", e, dim, True))


def log_softmax(ctx: Context, x: Arr, dim: int) -> Arr:
    """log(exp(x) / sum exp(x)) along a dimension."""
    z = _shifted(ctx, x, dim)
    total = ctx.total("sum", ctx.unary("exp", z), dim, True)
    return ctx.binary("sub", z, ctx.unary("log", total))


def _shifted(ctx: Context, x: Arr, dim: int) -> Arr:
    """x with its maximum at 0, so that exp cannot overflow."""
    top = ctx.total("max", x, dim, True)
    return ctx.binary("sub", x, ctx.flat(top))
