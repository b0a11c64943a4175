"""Rules that reduce dimensions, and softmaxes over them."""

import math
from typing import Any

from ..context import Context
from ..errors import NoRule
from ..tensors import Arr, elem_of
from ..values import FLOATS
from .registry import Call, rule


def _which(c: Call) -> tuple[Any, bool]:
    return c.arg(1, "dim", None), bool(c.arg(2, "keepdim", False))


@rule("sum")
def _sum(c: Call) -> Arr:
    dim, keep = _which(c)
    return c.ctx.total("sum", c.ctx.cast(c.x, elem_of(c.out.dtype)), dim, keep)


@rule("mean")
def _mean(c: Call) -> Arr:
    dim, keep = _which(c)
    return c.ctx.mean(c.ctx.cast(c.x, elem_of(c.out.dtype)), dim, keep)


@rule("amax", "amin")
def _extremum(c: Call) -> Arr:
    dim, keep = _which(c)
    return c.ctx.total(c.name[1:], c.x, dim if dim != () else None, keep)


@rule("max", "min")
def _max(c: Call) -> Any:
    if len(c.args) > 1 and isinstance(c.args[1], Arr):
        return c.ctx.binary("maximum" if c.name == "max" else "minimum", c.x, c.args[1])
    dim, keep = _which(c)
    if dim is None:
        return c.ctx.total(c.name, c.x)
    return _with_position(c, c.x.wrap(dim), keep)


def _with_position(c: Call, dim: int, keep: bool) -> tuple[Arr, Arr]:
    """max(dim): the values and where they are first found. The gradient goes to that column only,
    which a chain of comparisons says."""
    x, ctx = c.x, c.ctx
    size = x.dims[dim]
    if not isinstance(size, int) or size > 64:
        raise NoRule("the position of an extremum over the rows of a set (use amax or amin)")
    best = ctx.select(x, dim, 0)
    where = ctx.lift(0, "i64")
    for k in range(1, size):
        other = ctx.select(x, dim, k)
        better = ctx.compare("gt" if c.name == "max" else "lt", other, best)
        where = ctx.where(better, k, where, elem="i64")
        best = ctx.where(better, other, best)
    where = ctx.expand(where, best.dims)
    if keep:
        best, where = ctx.unsqueeze(best, dim), ctx.unsqueeze(where, dim)
    return best, where


@rule("argmax", "argmin")
def _argmax(c: Call) -> Arr:
    dim, keep = _which(c)
    if dim is None:
        raise NoRule("argmax over all dimensions")
    c.name = c.name[3:]
    return _with_position(c, c.x.wrap(dim), keep)[1]


@rule("any", "all")
def _any(c: Call) -> Arr:
    dim, keep = _which(c)
    flags = c.x if c.x.elem == "i1" else c.ctx.compare("ne", c.x, 0)
    counted = c.ctx.cast(flags, "i64")
    if c.name == "any":
        return c.ctx.compare("ne", c.ctx.total("max", counted, dim, keep), 0)
    misses = c.ctx.binary("sub", 1, counted)
    return c.ctx.compare("eq", c.ctx.total("max", misses, dim, keep), 0)


@rule("var", "std")
def _var(c: Call) -> Arr:
    return _spread(c, c.name)


def _spread(c: Call, name: str) -> Arr:
    dim = c.arg(1, "dim", None)
    if isinstance(dim, bool):  # x.var(unbiased)
        return _finish(c, name, None, bool(c.kwargs.get("keepdim", False)), float(dim))
    unbiased = c.arg(2, "unbiased", None)
    correction = c.kwargs.get("correction", 1 if unbiased in (None, True) else 0)
    return _finish(c, name, dim, bool(c.arg(3, "keepdim", False)), float(correction))


def _finish(c: Call, name: str, dim: Any, keep: bool, correction: float) -> Arr:
    y = c.ctx.variance(c.x, dim, keep, correction)
    return y if name == "var" else c.ctx.unary("sqrt", y)


@rule("norm", "vector_norm", "linalg_vector_norm")
def _norm(c: Call) -> Arr:
    if c.name == "norm":
        p, dim, keep = c.arg(1, "p", "fro"), c.arg(2, "dim", None), c.arg(3, "keepdim", False)
    else:
        p, dim, keep = c.arg(1, "ord", 2), c.arg(2, "dim", None), c.arg(3, "keepdim", False)
    return norm(c, c.x, p, dim, bool(keep))


def norm(c: Call, x: Arr, p: Any, dim: Any, keep: bool) -> Arr:
    ctx = c.ctx
    if p in (2, 2.0, "fro", None):
        square = ctx.total("sum", ctx.binary("mul", x, x), dim, keep)
        # torch's derivative at 0 is 0: take it from a root that never sees 0
        zero = ctx.compare("eq", square, 0)
        root = ctx.unary("sqrt", ctx.where(zero, 1.0, square, elem=square.elem))
        return ctx.where(zero, 0.0, root, elem=root.elem)
    if p in (1, 1.0):
        return ctx.total("sum", ctx.unary("abs", x), dim, keep)
    if p == float("inf"):
        return ctx.total("max", ctx.unary("abs", x), dim, keep)
    raise NoRule(f"the norm of order {p}")


@rule("normalize")
def _normalize(c: Call) -> Arr:
    p, dim, eps = c.arg(1, "p", 2.0), c.arg(2, "dim", 1), c.arg(3, "eps", 1e-12)
    n = norm(c, c.x, p, dim, True)
    low = c.ctx.compare("lt", n, float(eps))
    return c.ctx.binary("div", c.x, c.ctx.where(low, float(eps), n, elem=n.elem))


@rule("cosine_similarity")
def _cosine(c: Call) -> Arr:
    a, b, ctx = c.x, c.tensor(1, "x2"), c.ctx
    dim, eps = c.arg(2, "dim", 1), float(c.arg(3, "eps", 1e-8))
    dot = ctx.total("sum", ctx.binary("mul", a, b), dim, False)
    scale = []
    for x in (a, b):
        n = norm(c, x, 2, dim, False)
        scale.append(ctx.where(ctx.compare("lt", n, eps), eps, n, elem=n.elem))
    return ctx.binary("div", dot, ctx.binary("mul", *scale))


@rule("softmax", "log_softmax")
def _softmax(c: Call) -> Arr:
    dim = c.arg(1, "dim", None)
    if dim is None:
        raise NoRule(f"{c.name} without a dimension")
    x = c.ctx.cast(c.x, elem_of(c.out.dtype))
    if x.elem not in FLOATS:
        raise NoRule(f"{c.name} of integers")
    if c.name == "log_softmax":
        return log_softmax(c.ctx, x, dim)
    e = c.ctx.unary("exp", _shifted(c.ctx, x, dim))
    return c.ctx.binary("div", e, c.ctx.total("sum", e, dim, True))


def log_softmax(ctx: Context, x: Arr, dim: int) -> Arr:
    """log(exp(x) / sum exp(x)) along a dimension."""
    z = _shifted(ctx, x, dim)
    total = ctx.total("sum", ctx.unary("exp", z), dim, True)
    return ctx.binary("sub", z, ctx.unary("log", total))


def _shifted(ctx: Context, x: Arr, dim: int) -> Arr:
    """x with its maximum at 0, so that exp cannot overflow."""
    top = ctx.total("max", x, dim, True)
    return ctx.binary("sub", x, Arr(top.dims, ctx.values.stop(top.v)))


@rule("logsumexp")
def _logsumexp(c: Call) -> Arr:
    dim, keep = _which(c)
    ctx = c.ctx
    top = ctx.total("max", c.x, dim, True)
    endless = ctx.compare("eq", ctx.unary("abs", top), math.inf)  # inf - inf would be nan
    top = ctx.where(endless, 0.0, top, elem=top.elem)
    top = Arr(top.dims, ctx.values.stop(top.v))
    total = ctx.total("sum", ctx.unary("exp", ctx.binary("sub", c.x, top)), dim, keep)
    if not keep:
        top = ctx.total("sum", top, dim, False)
    return ctx.binary("add", ctx.unary("log", total), top)
