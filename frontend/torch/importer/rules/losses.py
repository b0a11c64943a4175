"""Rules of losses: their formulas, one number a row or an element, and torch's reductions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import NoRule
from ..values.context import Context
from ..values.elements import FLOATS
from ..values.pieces import clamp, limited
from ..values.softmaxes import log_softmax
from ..values.tensors import Arr, numbers
from .registry import Call, rule


def reduction_of(c: Call) -> str:
    """The argument `reduction`, which ATen's own functions take as a number."""
    reduction = c.arg("reduction")
    if not isinstance(reduction, str):
        reduction = {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction)
    if reduction not in ("mean", "sum", "none"):
        raise NoRule(f"a loss with reduction {reduction!r}")
    return reduction


def reduced(c: Call, each: Arr) -> Arr:
    reduction = reduction_of(c)
    if reduction == "none":
        return each
    return c.ctx.mean(each) if reduction == "mean" else c.ctx.total("sum", each)


def _weighted(ctx: Context, x: Arr, weight: Arr | None) -> Arr:
    return x if weight is None else ctx.binary("mul", x, weight)


# ---------------------------------------------------------------- classes


@rule("cross_entropy", "nll_loss", "nll_loss_nd", "nll_loss2d")
def _class_loss(c: Call) -> Arr:
    """Cross entropy of rows x classes x places, by class number or by probabilities; nll_loss is
    the same on log probabilities."""
    x, target, weight = c.x, c.tensor("target"), c.optional("weight")
    if x.rank < 2 or not isinstance(x.dims[1], int) or x.merged:
        raise NoRule("a loss that is not over rows x classes")
    x = _classes_last(c.ctx, x)
    if c.op == "cross_entropy":
        x = log_softmax(c.ctx, x, x.rank - 1)
    if weight is not None:
        weight = c.ctx.unsqueeze(weight, 0)
    if target.elem in FLOATS and c.op == "cross_entropy" and c.arg("ignore_index") < 0:
        return reduced(c, _of_probabilities(c, x, weight))
    if target.elem != "i64" or target.rank != x.rank - 1:
        raise NoRule(f"a loss whose target is {target.rank}-dimensional, of {target.elem}")
    return _of_classes(c, x, weight)


def _classes_last(ctx: Context, x: Arr) -> Arr:
    """x with its second dimension as the last."""
    return x if x.rank == 2 else ctx.permute(x, [0, *range(2, x.rank), 1])


def _require_classes(c: Call, target: Arr, classes: int) -> None:
    """The numbers of a target, one or several a row, are those of classes."""
    several = numbers(target.dims)
    if target.home is None or several == []:
        c.ctx.require_below(target, classes)
        return
    count = math.prod(several)
    if count > _PLACES:
        raise NoRule(f"a loss of {count} places a row")
    flat = Arr([target.rows, count], c.ctx.values.reshape(target.v, (count,)))
    for k in range(count):
        c.ctx.require_below(c.ctx.select(flat, 1, k), classes)


_PLACES = 64
"""So many classes of each row are looked at one by one."""


def _smoothing(c: Call) -> float:
    return float(c.number("label_smoothing", 0.0))


def _of_probabilities(c: Call, logs: Arr, weight: Arr | None) -> Arr:
    """- sum over classes of weight x probability x log, a row; the mean is over all rows."""
    ctx, target, smoothing = c.ctx, c.tensor("target"), _smoothing(c)
    if target.rank != logs.rank:
        raise NoRule("probabilities that are not rows x classes")
    target = _classes_last(ctx, target)
    if smoothing:
        share = smoothing / logs.dims[-1]
        target = ctx.binary("add", ctx.binary("mul", target, 1.0 - smoothing), share)
    each = ctx.binary("mul", target, _weighted(ctx, logs, weight))
    return ctx.unary("neg", ctx.total("sum", each, each.rank - 1))


def _of_classes(c: Call, logs: Arr, weight: Arr | None) -> Arr:
    """- weight[y] log[y] a row. Rows of an ignored class give 0; the mean is by the weights of the
    others. Smoothing mixes in the weighted sum of all logs."""
    ctx, target, classes, smoothing = c.ctx, c.tensor("target"), logs.dims[-1], _smoothing(c)
    last = target.rank
    counted = ctx.compare("ne", target, c.arg("ignore_index"))
    _require_classes(c, ctx.where(counted, target, 0, elem=target.elem), classes)
    # compared as floats, which vectors of logs are selected by; these are exact below 2**24
    elem = logs.elem if classes < 2**24 else target.elem
    each_class = Arr([classes], ctx.values.count_up(classes, elem))
    hit = ctx.compare("eq", ctx.unsqueeze(ctx.cast(target, elem), last), each_class)

    def of_class(x: Arr) -> Arr:
        return ctx.total("sum", ctx.where(hit, x, 0.0, elem=x.elem), last)

    scale = None if weight is None else of_class(weight)
    gain = _weighted(ctx, of_class(logs), scale)
    if smoothing:
        all_classes = ctx.total("sum", _weighted(ctx, logs, weight), last)
        gain = ctx.binary(
            "add",
            ctx.binary("mul", gain, 1.0 - smoothing),
            ctx.binary("mul", all_classes, smoothing / classes),
        )
    each = ctx.where(counted, ctx.unary("neg", gain), 0.0, elem=gain.elem)
    if reduction_of(c) != "mean":
        return reduced(c, each)
    total = ctx.total("sum", each)
    if scale is not None:
        return ctx.binary("div", total, ctx.total("sum", ctx.where(counted, scale, 0.0)))
    number = ctx.total("sum", ctx.cast(counted, "i64"))
    return ctx.binary("div", total, ctx.cast(number, total.elem))


# ---------------------------------------------------------------- differences


def _huber(ctx: Context, d: Arr, delta: float) -> Arr:
    """d^2 / 2 up to delta, and from there on straight. The square never sees what lies beyond, of
    which no gradient comes: 0 times an infinite one would be nan."""
    size = ctx.unary("abs", d)
    far = ctx.compare("ge", size, delta)  # which nan is not
    inner = ctx.where(far, 0.0, d, elem=d.elem)
    square = ctx.binary("mul", ctx.binary("mul", inner, inner), 0.5)
    line = ctx.binary("mul", ctx.binary("sub", size, 0.5 * delta), delta)
    return ctx.where(far, line, square)


def _smooth_l1(c: Call, d: Arr) -> Arr:
    beta = float(c.number("beta"))
    if beta == 0:
        return c.ctx.unary("abs", d)
    return c.ctx.binary("div", _huber(c.ctx, d, beta), beta)


_OF_DIFFERENCE: dict[str, Callable[[Call, Arr], Arr]] = {
    "mse_loss": lambda c, d: c.ctx.binary("mul", d, d),
    "l1_loss": lambda c, d: c.ctx.unary("abs", d),
    "smooth_l1_loss": _smooth_l1,
    "huber_loss": lambda c, d: _huber(c.ctx, d, float(c.number("delta"))),
}


@rule(*_OF_DIFFERENCE)
def _difference_loss(c: Call) -> Arr:
    d = c.ctx.binary("sub", c.x, c.tensor("target"))
    if c.op == "mse_loss" and d.elem not in FLOATS:
        raise NoRule("mse_loss of integers, which torch has not")
    each, weight = _OF_DIFFERENCE[c.op](c, d), c.optional("weight")
    if weight is None:
        return reduced(c, each)
    each = c.ctx.binary("mul", each, weight)
    if reduction_of(c) != "mean":
        return reduced(c, each)
    return c.ctx.binary("div", c.ctx.total("sum", each), c.ctx.total("sum", weight))


@rule("margin_ranking_loss")
def _margin_ranking_loss(c: Call) -> Arr:
    """max(0, -t (a - b) + margin)."""
    ctx, target = c.ctx, c.tensor("target")
    gap = ctx.binary("sub", c.tensor("input2"), c.tensor("input1"))
    each = ctx.binary("add", ctx.binary("mul", target, gap), float(c.number("margin")))
    return reduced(c, clamp(ctx, each, 0, None))


@rule("kl_div")
def _kl_div(c: Call) -> Arr:
    """t (log t - x), 0 where t is 0; `batchmean` divides the sum by the rows."""
    ctx, x, target = c.ctx, c.x, c.tensor("target")
    if c.arg("log_target"):
        each = ctx.binary("mul", ctx.unary("exp", target), ctx.binary("sub", target, x))
    else:
        # at 0 a target has no gradient but nan, as in torch
        own = ctx.binary("mul", target, ctx.unary("log", target))
        own = ctx.where(ctx.compare("eq", target, 0), 0.0, own, elem=own.elem)
        each = ctx.binary("sub", own, ctx.binary("mul", target, x))
    if c.arg("reduction") == "batchmean":
        return ctx.binary("div", ctx.total("sum", each), ctx.count(x, 0))
    return reduced(c, each)


# ---------------------------------------------------------------- two classes


@rule("binary_cross_entropy_with_logits")
def _binary_loss_of_logits(c: Call) -> Arr:
    """(1 - t) x + s log(1 + e^-x), where s is 1 + (pos_weight - 1) t."""
    ctx, x = c.ctx, c.x
    target = ctx.cast(c.tensor("target"), x.elem)
    weight, positive = c.optional("weight"), c.optional("pos_weight")
    other = ctx.binary("mul", ctx.binary("sub", 1.0, target), x)
    soft = ctx.unary("softplus", ctx.unary("neg", x))
    if positive is not None:
        more = ctx.binary("mul", ctx.binary("sub", positive, 1.0), target)
        soft = ctx.binary("mul", ctx.binary("add", more, 1.0), soft)
    each = ctx.binary("add", other, soft)
    return reduced(c, _weighted(ctx, each, weight))


_LEAST_SPREAD = float(np.float32(1e-12))
"""torch's constant is a float32 in both precisions."""


@rule("binary_cross_entropy")
def _binary_loss(c: Call) -> Arr:
    """- t log x - (1 - t) log(1 - x), the logarithms not below -100. torch's derivatives are not
    those of this formula where x is 0 or 1: they are written out. (torch refuses x outside of
    0 .. 1; here the result is nan.)"""
    ctx, x, target, weight = c.ctx, c.x, c.tensor("target"), c.optional("weight")
    p, t = ctx.flat(x), ctx.flat(target)
    q = ctx.binary("sub", 1.0, p)
    yes = limited(ctx, ctx.unary("log", p), -100.0)
    no = limited(ctx, ctx.unary("log1p", ctx.unary("neg", p)), -100.0)
    spread = limited(ctx, ctx.binary("mul", p, q), _LEAST_SPREAD)
    slope = ctx.binary("div", ctx.binary("sub", p, t), spread)
    value = ctx.binary("mul", ctx.binary("sub", t, 1.0), no)
    value = ctx.binary("sub", value, ctx.binary("mul", t, yes))
    by_x = ctx.binary("mul", ctx.binary("sub", x, p), slope)
    by_target = ctx.binary("mul", ctx.binary("sub", target, t), ctx.binary("sub", no, yes))
    each = ctx.binary("add", ctx.binary("add", value, by_x), by_target)
    return reduced(c, _weighted(ctx, each, weight))
