"""Rules of attention: within each row of a set, of queries and keys whose number is constant."""

import math

from ..errors import NoRule
from ..values.context import Context
from ..values.products import linear, matmul
from ..values.softmaxes import softmax
from ..values.tensors import Arr, numbers
from .layers import dropout
from .registry import Call, rule


@rule("scaled_dot_product_attention")
def _attention(c: Call) -> Arr:
    """softmax(q k^T / sqrt(width) + mask) v, within each row of a set. A query that
    the mask forbids all keys has zeros."""
    q, k, v, mask = c.tensor("query"), c.tensor("key"), c.tensor("value"), c.optional("attn_mask")
    p = float(c.number("dropout_p"))
    if c.arg("enable_gqa", False):
        raise NoRule("attention whose heads share keys")
    if not isinstance(q.dims[-1], int) or q.rank < 3:
        raise NoRule(_OF_ALL)
    weights = _weights(c, q, k, mask, c.arg("is_causal"), c.arg("scale"))
    return matmul(c.ctx, dropout(c, weights, p) if p else weights, v)


_OF_ALL = "attention of a set's rows to each other (a product of two sets)"


def _weights(
    c: Call, q: Arr, k: Arr, mask: Arr | None, causal: bool = False, scale: float | None = None
) -> Arr:
    """How much each query takes of each key: nothing of any, where a mask forbids all."""
    ctx = c.ctx
    scores = _scores(ctx, q, k, scale)
    if causal:
        mask = _not_later(c, scores)
    if mask is None:
        return softmax(ctx, scores, scores.rank - 1)
    if mask.elem == "i1":
        return _of_allowed(ctx, ctx.where(mask, scores, -math.inf, elem=scores.elem))
    return _of_allowed(ctx, ctx.binary("add", scores, mask))


def _scores(ctx: Context, q: Arr, k: Arr, scale: float | None) -> Arr:
    width = q.dims[-1]
    assert isinstance(width, int)
    swapped = [*range(k.rank - 2), k.rank - 1, k.rank - 2]
    scores = matmul(ctx, q, ctx.permute(k, swapped))
    return ctx.binary("mul", scores, width**-0.5 if scale is None else scale)


def _not_later(c: Call, scores: Arr) -> Arr:
    """Whether each key is none after its query."""
    queries, keys = scores.dims[-2:]
    if not isinstance(queries, int) or not isinstance(keys, int):
        raise NoRule("causal attention of a set's rows to each other")
    values = c.ctx.values
    rows = Arr([queries, 1], values.reshape(values.count_up(queries, "i64"), (queries, 1)))
    return c.ctx.compare("le", Arr([keys], values.count_up(keys, "i64")), rows)


def _of_allowed(ctx: Context, scores: Arr) -> Arr:
    """The softmax of scores, of which those that a mask forbids are -inf; zeros where all are."""
    last = scores.rank - 1
    top = ctx.flat(ctx.total("max", scores, last, True))
    none = ctx.compare("eq", top, -math.inf)  # inf - inf would be nan
    e = ctx.unary("exp", ctx.binary("sub", scores, ctx.where(none, 0.0, top, elem=top.elem)))
    total = ctx.total("sum", e, last, True)
    return ctx.binary("div", e, ctx.where(none, 1.0, total, elem=total.elem))


@rule("multi_head_attention_forward")
def _multi_head_attention(c: Call) -> tuple[Arr, Arr | None]:
    """F.multi_head_attention_forward: queries x batch x columns, or without the batch; the weights
    of each head, or their mean, where they are asked for."""
    for name in ("bias_k", "bias_v", "static_k", "static_v"):
        if c.arg(name, None) is not None:
            raise NoRule(f"attention with {name}=")
    if c.arg("add_zero_attn", False) or c.arg("is_causal", False):
        raise NoRule("attention with zeros added, or said to be causal")
    ctx, heads = c.ctx, c.arg("num_heads")
    c.seen_in_result("embed_dim_to_check")
    q, k, v = (_by_heads(c, x, heads) for x in _projected(c))
    shown, mask = c.arg("need_weights", True), _left_out(c, q.rank == 4)
    if shown and mask is not None:  # then torch has NaN where a mask forbids all keys
        scores = ctx.binary("add", _scores(ctx, q, k, None), mask)
        weights = softmax(ctx, scores, scores.rank - 1)
    else:
        weights = _weights(c, q, k, mask)
    p, training = float(c.number("dropout_p")), c.arg("training")
    if p and training:
        weights = dropout(c, weights, p)
    y = matmul(ctx, weights, v)  # batch x heads x queries x columns
    y = ctx.permute(y, [2, 0, 1, 3] if y.rank == 4 else [1, 0, 2])
    y = _with_last(c, y, y.rank - 2, [heads * q.dims[-1]])
    y = linear(ctx, y, c.tensor("out_proj_weight"), c.optional("out_proj_bias"))
    averaged = c.arg("average_attn_weights", True)
    if not shown:
        return y, None
    return y, ctx.mean(weights, weights.rank - 3) if averaged else weights


def _projected(c: Call) -> list[Arr]:
    """Queries, keys and values, each by its part of the weights."""
    ctx, bias = c.ctx, c.optional("in_proj_bias")
    given = [c.tensor(name) for name in ("query", "key", "value")]
    if any(x.dims[0] is not None and not isinstance(x.dims[0], int) for x in given):
        raise NoRule(_OF_ALL)
    width = given[0].dims[-1]
    apart = c.arg("use_separate_proj_weight", False)
    names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
    out = []
    for i, x in enumerate(given):
        lo, hi = i * width, (i + 1) * width
        weight = c.tensor(names[i]) if apart else ctx.narrow(c.tensor("in_proj_weight"), 0, lo, hi)
        out.append(linear(ctx, x, weight, None if bias is None else ctx.narrow(bias, 0, lo, hi)))
    if apart:
        c.seen_in_result("in_proj_weight")
    else:
        c.seen_in_result(*names)
    return out


def _by_heads(c: Call, x: Arr, heads: int) -> Arr:
    """positions x batch x columns as batch x heads x positions x columns."""
    width = x.dims[-1]
    assert isinstance(width, int)
    x = _with_last(c, x, x.rank - 1, [heads, width // heads])
    return c.ctx.permute(x, [1, 2, 0, 3] if x.rank == 4 else [1, 0, 2])


def _with_last(c: Call, x: Arr, kept: int, sizes: list[int]) -> Arr:
    """The last columns in other sizes, behind the first dimensions that are kept."""
    dims = [*x.dims[:kept], *sizes]
    return Arr(dims, c.ctx.values.reshape(x.v, numbers(dims)))


def _left_out(c: Call, batched: bool) -> Arr | None:
    """What is added to the scores: -inf where a mask is true."""
    found = []
    for name in ("attn_mask", "key_padding_mask"):
        mask = c.optional(name)
        if mask is None:
            continue
        if name == "attn_mask" and mask.rank != 2:
            raise NoRule("attention with a mask for each head")
        if mask.elem == "i1":
            mask = c.ctx.where(mask, -math.inf, 0.0, elem=c.tensor("query").elem)
        if name == "key_padding_mask":  # batch x keys
            for _ in range(2 if batched else 0):
                mask = c.ctx.unsqueeze(mask, mask.rank - 1)
        found.append(mask)
    return None if not found else found[0] if len(found) == 1 else c.ctx.binary("add", *found)
