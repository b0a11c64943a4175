"""Rules of losses by signs, distances and distributions (those of classes are in `losses.py`)."""

from __future__ import annotations

import math

from ..errors import NoRule
from ..values import pieces
from ..values.context import Context
from ..values.elements import FLOATS
from ..values.tensors import Arr
from .losses import reduced
from .norms import distance
from .registry import Call, rule


def _positive(ctx: Context, x: Arr) -> Arr:
    """`x.clamp(min=0)`."""
    return pieces.clamp(ctx, x, 0, None)


def _where_label(ctx: Context, label: Arr, name: str, value: int, x: Arr) -> Arr:
    """x where a label compares so, 0 elsewhere."""
    return ctx.where(ctx.compare(name, label, value), x, 0.0, elem=x.elem)


@rule("soft_margin_loss")
def _soft_margin(c: Call) -> Arr:
    """log(1 + e^(-t x))."""
    ctx, target = c.ctx, c.tensor("target")
    if target.elem in FLOATS and target.elem != c.x.elem:
        raise NoRule("a loss of two types, for which torch's own shapes and kernels differ")
    power = ctx.binary("mul", ctx.unary("neg", c.x), target)
    return reduced(c, ctx.unary("log1p", ctx.unary("exp", power)))


@rule("hinge_embedding_loss")
def _hinge_embedding(c: Call) -> Arr:
    """x where t is 1, max(0, margin - x) where it is -1, both at any other t."""
    ctx, x, target = c.ctx, c.x, c.tensor("target")
    hinge = _positive(ctx, ctx.binary("sub", float(c.number("margin")), x))
    far = _where_label(ctx, target, "ne", 1, hinge)
    return reduced(c, ctx.binary("add", far, _where_label(ctx, target, "ne", -1, x)))


@rule("cosine_embedding_loss")
def _cosine_embedding(c: Call) -> Arr:
    """1 - cos where t is 1, max(0, cos - margin) where it is -1."""
    ctx, a, b, target = c.ctx, c.tensor("input1"), c.tensor("input2"), c.tensor("target")
    dim = 1 if target.rank == 1 else 0

    def dot(x: Arr, y: Arr) -> Arr:
        return ctx.total("sum", ctx.binary("mul", x, y), dim)

    squares = (ctx.binary("add", dot(x, x), 1e-12) for x in (a, b))
    lengths = ctx.unary("sqrt", ctx.binary("mul", *squares))
    cos = ctx.binary("div", dot(a, b), lengths)
    apart = _positive(ctx, ctx.binary("sub", cos, float(c.number("margin"))))
    near = _where_label(ctx, target, "eq", 1, ctx.binary("sub", 1.0, cos))
    return reduced(c, ctx.binary("add", near, _where_label(ctx, target, "eq", -1, apart)))


@rule("triplet_margin_loss")
def _triplet_margin(c: Call) -> Arr:
    """max(0, margin + |anchor - positive| - |anchor - negative|)."""
    ctx, p, eps = c.ctx, c.number("p"), float(c.number("eps"))
    anchor, like, other = (c.tensor(n) for n in ("anchor", "positive", "negative"))
    near, far = (distance(c, anchor, x, p, eps) for x in (like, other))
    if c.arg("swap"):
        far = ctx.binary("minimum", far, distance(c, like, other, p, eps))
    gap = ctx.binary("add", float(c.number("margin")), near)
    return reduced(c, _positive(ctx, ctx.binary("sub", gap, far)))


@rule("poisson_nll_loss")
def _poisson(c: Call) -> Arr:
    """e^x - t x, or x - t log(x + eps); `full` adds Stirling's log t! where t is above 1."""
    ctx, x, target = c.ctx, c.x, c.tensor("target")
    if c.arg("log_input"):
        c.seen_in_result("eps")
        each = ctx.binary("sub", ctx.unary("exp", x), ctx.binary("mul", target, x))
    else:
        log = ctx.unary("log", ctx.binary("add", x, float(c.number("eps"))))
        each = ctx.binary("sub", x, ctx.binary("mul", target, log))
    if c.arg("full"):
        own = ctx.binary("mul", target, ctx.unary("log", target))
        root = ctx.unary("log", ctx.binary("mul", 2 * math.pi, target))
        term = ctx.binary("sub", own, target)
        term = ctx.binary("add", term, ctx.binary("mul", 0.5, root))
        few = ctx.compare("le", target, 1)
        each = ctx.binary("add", each, ctx.where(few, 0.0, term, elem=term.elem))
    return reduced(c, each)


@rule("multilabel_soft_margin_loss")
def _multilabel_soft_margin(c: Call) -> Arr:
    """Cross entropy of two classes for each label; the mean over labels is a row's."""
    ctx, x, target, weight = c.ctx, c.x, c.tensor("target"), c.optional("weight")

    def log_sigmoid(y: Arr) -> Arr:
        return ctx.unary("neg", ctx.unary("softplus", ctx.unary("neg", y)))

    no = ctx.binary("sub", 1, target)
    yes = ctx.binary("mul", target, log_sigmoid(x))
    each = ctx.binary("add", yes, ctx.binary("mul", no, log_sigmoid(ctx.unary("neg", x))))
    each = ctx.unary("neg", each)
    each = each if weight is None else ctx.binary("mul", each, weight)
    labels = x.dims[-1]
    if not isinstance(labels, int):
        raise NoRule("labels as the rows of a set")
    return reduced(c, ctx.binary("div", ctx.total("sum", each, x.rank - 1), labels))
