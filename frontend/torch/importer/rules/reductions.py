"""Rules that reduce dimensions, and softmaxes over them."""

import math
from typing import Any

from ..errors import NoRule
from ..values import pieces
from ..values.context import Context
from ..values.elements import FLOATS
from ..values.held import Held
from ..values.sizes import example
from ..values.softmaxes import log_softmax, softmax
from ..values.tensors import Arr
from .registry import Call, rule


def _which(c: Call) -> tuple[Any, bool]:
    """Which dimensions a call reduces (None: all, as those of a tensor without any), and whether
    they stay, of size 1."""
    dim, keep = c.arg("dim", None), bool(c.arg("keepdim", False))
    if isinstance(dim, tuple | list) and not dim:
        if c.op in ("any", "all"):
            raise NoRule(f"{c.op} over an empty list of dimensions")
        dim = None
    return (None if c.x.rank == 0 else dim), keep


@rule("sum")
def _sum(c: Call) -> Arr:
    dim, keep = _which(c)
    if c.elem == "i1":
        raise NoRule("a sum as a boolean")
    return c.ctx.total("sum", c.ctx.cast(c.x, c.elem), dim, keep)


@rule("mean")
def _mean(c: Call) -> Arr:
    dim, keep = _which(c)
    return c.ctx.mean(c.ctx.cast(c.x, c.elem), dim, keep)


@rule("amax", "amin")
def _extremum(c: Call) -> Arr:
    dim, keep = _which(c)
    _require_rows(c, dim)
    reduce = pieces.extremum if c.out.requires_grad else Context.total
    return reduce(c.ctx, c.op[1:], _ordered(c.x), dim, keep)


def _ordered(x: Arr) -> Arr:
    if x.elem == "i1":
        raise NoRule("the largest or smallest of booleans (use any or all)")
    return x


def _require_rows(c: Call, dim: Any, refused: type[Exception] = IndexError) -> None:
    """torch has no extremum of no rows: a RuntimeError over everything, `refused` over some."""
    axis = c.x.axis
    if axis is None or axis not in c.ctx.which(c.x, dim):
        return
    if not c.ctx.sizes.are_some(example(c.node.all_input_nodes[0]).shape[axis]):
        some = c.ctx.compare("ne", c.ctx.count(c.ctx.cast(c.x, "i64"), [axis]), 0)
        raised = RuntimeError if dim is None else refused
        c.ctx.assertions.append(Held(some, f"{c.op}() of no rows", raised))


@rule("max", "min")
def _max(c: Call) -> Any:
    if "other" in c.arguments:
        return c.ctx.binary(f"{c.op}imum", c.x, c.tensor("other"))
    if "dim" not in c.arguments:
        _require_rows(c, None)
        reduce = pieces.greatest if c.out.requires_grad else Context.total
        return reduce(c.ctx, c.op, _ordered(c.x))
    return _with_position(c, c.op, c.dim(), bool(c.arg("keepdim")))


def _with_position(c: Call, kind: str, dim: int, keep: bool) -> tuple[Arr, Arr]:
    best, where = pieces.first_extreme(c.ctx, kind, c.x, dim)
    if keep:
        best, where = c.ctx.unsqueeze(best, dim), c.ctx.unsqueeze(where, dim)
    return best, where


@rule("argmax", "argmin")
def _argmax(c: Call) -> Arr:
    dim, keep = c.arg("dim"), bool(c.arg("keepdim"))
    if dim is None:
        raise NoRule("argmax over all dimensions")
    return _with_position(c, c.op.removeprefix("arg"), c.x.wrap(dim), keep)[1]


@rule("any", "all")
def _any(c: Call) -> Arr:
    dim, keep = _which(c)
    flags = c.x if c.x.elem == "i1" else c.ctx.compare("ne", c.x, 0)
    counted = c.ctx.cast(flags, "i64")
    if c.op == "any":
        return c.ctx.compare("ne", c.ctx.total("max", counted, dim, keep), 0)
    misses = c.ctx.binary("sub", 1, counted)
    return c.ctx.compare("eq", c.ctx.total("max", misses, dim, keep), 0)


@rule("var", "std")
def _var(c: Call) -> Arr:
    dim, keep = _which(c)
    correction = c.arg("correction", None)
    if correction is None:
        correction = 1 if c.arg("unbiased", True) else 0
    if not isinstance(correction, int | float):
        raise NoRule("a correction that is no constant number")
    if correction < 0:
        raise NoRule("a correction below 0, with which no numbers have NaN all the same")
    y = c.ctx.variance(c.x, dim, keep, float(correction))
    return y if c.op == "var" else pieces.root(c.ctx, y)


@rule("norm", "linalg_vector_norm")
def _norm(c: Call) -> Arr:
    dim, keep = _which(c)
    p = c.arg("p" if c.op == "norm" else "ord")
    return norm(c, c.ctx.cast(c.x, c.elem), p, dim, keep)


def norm(c: Call, x: Arr, p: Any, dim: Any, keep: bool) -> Arr:
    ctx = c.ctx
    if p in (2, 2.0, "fro", None):
        return pieces.root(ctx, ctx.total("sum", ctx.binary("mul", x, x), dim, keep))
    if p in (1, 1.0):
        return ctx.total("sum", ctx.unary("abs", x), dim, keep)
    if p == float("inf"):
        _require_rows(c, dim, RuntimeError)
        reduce = pieces.greatest if c.out.requires_grad else Context.total
        return reduce(ctx, "max", ctx.unary("abs", x), dim, keep)
    raise NoRule(f"the norm of order {p}")


@rule("normalize")
def _normalize(c: Call) -> Arr:
    p, dim, eps = c.arg("p"), c.dim(), c.number("eps")
    length = pieces.limited(c.ctx, norm(c, c.x, p, dim, True), float(eps))
    return c.ctx.binary("div", c.x, length)


@rule("cosine_similarity")
def _cosine(c: Call) -> Arr:
    a, b, ctx = c.tensor("x1"), c.tensor("x2"), c.ctx
    dim, eps = a.wrap(c.arg("dim")), float(c.number("eps"))
    if a.rank != b.rank or (a.dims[dim] == 1) != (b.dims[dim] == 1):
        raise NoRule("cosine_similarity of tensors that are broadcast along the dimension")
    dot = ctx.total("sum", ctx.binary("mul", a, b), dim, False)
    lengths = (pieces.limited(ctx, norm(c, x, 2, dim, False), eps) for x in (a, b))
    return ctx.binary("div", dot, ctx.binary("mul", *lengths))


@rule("softmax", "log_softmax")
def _softmax(c: Call) -> Arr:
    dim = c.arg("dim")
    if dim is None:
        raise NoRule(f"{c.op} without a dimension")
    x = c.ctx.cast(c.x, c.elem)
    if x.elem not in FLOATS:
        raise NoRule(f"{c.op} of integers")
    return softmax(c.ctx, x, dim) if c.op == "softmax" else log_softmax(c.ctx, x, dim)


@rule("logsumexp")
def _logsumexp(c: Call) -> Arr:
    dim, keep = _which(c)
    ctx, x = c.ctx, c.ctx.cast(c.x, c.elem)
    top = ctx.total("max", x, dim, True)
    endless = ctx.compare("eq", ctx.unary("abs", top), math.inf)  # inf - inf would be nan
    top = ctx.where(endless, 0.0, top, elem=top.elem)
    top = ctx.flat(top)
    total = ctx.total("sum", ctx.unary("exp", ctx.binary("sub", x, top)), dim, keep)
    if not keep:
        top = ctx.total("sum", top, dim, False)
    return ctx.binary("add", ctx.unary("log", total), top)
