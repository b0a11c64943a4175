"""Rules that reduce dimensions, and softmaxes over them."""

import math
from typing import Any

from ..errors import NoRule
from ..values import pieces
from ..values.context import Context
from ..values.elements import FLOATS
from ..values.held import Held
from ..values.sizes import example, tensors_in
from ..values.softmaxes import log_softmax, softmax
from ..values.tensors import Arr
from .registry import Call, rule


def which_dims(c: Call) -> tuple[Any, bool]:
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
    dim, keep = which_dims(c)
    if c.elem == "i1":
        raise NoRule("a sum as a boolean")
    return c.ctx.total("sum", c.ctx.cast(c.x, c.elem), dim, keep)


@rule("mean")
def _mean(c: Call) -> Arr:
    dim, keep = which_dims(c)
    return c.ctx.mean(c.ctx.cast(c.x, c.elem), dim, keep)


@rule("amax", "amin")
def _extremum(c: Call) -> Arr:
    dim, keep = which_dims(c)
    require_rows(c, dim)
    reduce = pieces.extremum if c.out.requires_grad else Context.total
    return reduce(c.ctx, c.op[1:], _ordered(c.x), dim, keep)


def _ordered(x: Arr) -> Arr:
    if x.elem == "i1":
        raise NoRule("the largest or smallest of booleans (use any or all)")
    return x


def require_rows(c: Call, dim: Any, refused: type[Exception] = IndexError) -> None:
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
        require_rows(c, None)
        reduce = pieces.greatest if c.out.requires_grad else Context.total
        return reduce(c.ctx, c.op, _ordered(c.x))
    return _with_position(c, c.op, c.dim(), bool(c.arg("keepdim")))


def _with_position(c: Call, kind: str, dim: int, keep: bool) -> tuple[Arr, Arr]:
    require_rows(c, dim)
    differentiated = any(t.requires_grad for t in tensors_in(c.example))
    best, where = pieces.first_extreme(c.ctx, kind, c.x, dim, differentiated)
    if keep:
        best, where = c.ctx.unsqueeze(best, dim), c.ctx.unsqueeze(where, dim)
    return best, where


@rule("argmax", "argmin")
def _argmax(c: Call) -> Arr:
    dim, keep = c.arg("dim"), bool(c.arg("keepdim"))
    if dim is None and c.x.rank != 1:
        raise NoRule("argmax over all dimensions")
    dim = 0 if dim is None else c.x.wrap(dim)
    return _with_position(c, c.op.removeprefix("arg"), dim, keep)[1]


@rule("any", "all")
def _any(c: Call) -> Arr:
    dim, keep = which_dims(c)
    flags = c.x if c.x.elem == "i1" else c.ctx.compare("ne", c.x, 0)
    counted = c.ctx.cast(flags, "i64")
    if c.op == "any":
        return c.ctx.compare("ne", c.ctx.total("max", counted, dim, keep), 0)
    misses = c.ctx.binary("sub", 1, counted)
    return c.ctx.compare("eq", c.ctx.total("max", misses, dim, keep), 0)


@rule("var", "std")
def _var(c: Call) -> Arr:
    dim, keep = which_dims(c)
    correction = c.arg("correction", None)
    if correction is None:
        correction = 1 if c.arg("unbiased", True) else 0
    if not isinstance(correction, int | float):
        raise NoRule("a correction that is no constant number")
    if correction < 0:
        raise NoRule("a correction below 0, with which no numbers have NaN all the same")
    y = c.ctx.variance(c.x, dim, keep, float(correction))
    return y if c.op.startswith("var") else pieces.root(c.ctx, y)


@rule("var_mean", "std_mean")
def _var_mean(c: Call) -> tuple[Arr, Arr]:
    dim, keep = which_dims(c)
    return _var(c), c.ctx.mean(c.x, dim, keep)


@rule("nansum")
def _nansum(c: Call) -> Arr:
    dim, keep = which_dims(c)
    x = c.ctx.cast(c.x, c.elem)
    if x.elem in FLOATS:
        x = c.ctx.where(c.ctx.compare("ne", x, x), 0.0, x, elem=x.elem)
    return c.ctx.total("sum", x, dim, keep)


@rule("count_nonzero")
def _count_nonzero(c: Call) -> Arr:
    dim, _ = which_dims(c)
    return c.ctx.total("sum", c.ctx.cast(c.ctx.compare("ne", c.x, 0), "i64"), dim)


@rule("softmax", "softmin", "log_softmax")
def _softmax(c: Call) -> Arr:
    dim = c.arg("dim")
    if dim is None:
        raise NoRule(f"{c.op} without a dimension")
    x = c.ctx.cast(c.x, c.elem)
    if x.elem not in FLOATS:
        raise NoRule(f"{c.op} of integers")
    if c.op == "softmin":
        x = c.ctx.unary("neg", x)
    return log_softmax(c.ctx, x, dim) if c.op == "log_softmax" else softmax(c.ctx, x, dim)


@rule("logsumexp")
def _logsumexp(c: Call) -> Arr:
    dim, keep = which_dims(c)
    ctx, x = c.ctx, c.ctx.cast(c.x, c.elem)
    top = ctx.total("max", x, dim, True)
    endless = ctx.compare("eq", ctx.unary("abs", top), math.inf)  # inf - inf would be nan
    top = ctx.where(endless, 0.0, top, elem=top.elem)
    top = ctx.flat(top)
    total = ctx.total("sum", ctx.unary("exp", ctx.binary("sub", x, top)), dim, keep)
    if not keep:
        top = ctx.total("sum", top, dim, False)
    return ctx.binary("add", ctx.unary("log", total), top)
