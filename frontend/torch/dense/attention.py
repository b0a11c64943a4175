"""Attention among the nodes of each graph, or of other queries and a graph's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.nn import functional as F

from .functions import Call, affine, left_out, of, over_nodes
from .moves import permuted, unsqueezed
from .products import Operand, matmul, sizes_of
from .values import KEY, PLACE, Dense, NotByRows, Places


@of("scaled_dot_product_attention")
def _attention(c: Call) -> Any:
    a = c.arguments
    if a.get("is_causal") or a.get("enable_gqa"):
        raise NotByRows("causal attention, or heads that share keys")
    q, k, v, mask = a["query"], a["key"], a["value"], a["attn_mask"]
    return attention(c.of, q, k, v, mask, a["dropout_p"], a.get("scale"))


def attention(
    of: Places, q: Operand, k: Operand, v: Operand, mask: Any, p: float, scale: float | None
) -> Any:
    """softmax(q k^T * scale + mask) v, of a mask that leaves out what stands behind the nodes."""
    if not isinstance(mask, Dense):
        raise NotByRows("attention with another mask than that of the nodes")
    width = sizes_of(q)[-1]
    last = _rank(k) - 1
    keys = _permuted(k, [*range(last - 1), last, last - 1])
    scores = matmul(of, q, keys)
    scores = scores.made(scores.axes, lambda x: x * (width**-0.5 if scale is None else scale))
    if not isinstance(scores, Dense) or scores.axes[-1] != (KEY if scores.paired else PLACE):
        raise NotByRows("attention to other rows than nodes")
    weights = over_nodes(left_out(scores, mask))
    if p:
        rows = F.dropout(weights.rows, p)
        weights = Dense(of, weights.axes, rows, weights.pad)
    return matmul(of, weights, v)


def _rank(x: Operand) -> int:
    return len(sizes_of(x))


def _permuted(x: Operand, order: Sequence[int]) -> Operand:
    return permuted(x, order) if isinstance(x, Dense) else x.permute(*order)


@of("multi_head_attention_forward")
def multi_head_attention(c: Call) -> Any:
    """F.multi_head_attention_forward (places x graphs x columns), without weights as a result."""
    a, of = c.arguments, c.of
    for name in ("bias_k", "bias_v", "static_k", "static_v", "attn_mask"):
        if a.get(name) is not None:
            raise NotByRows(f"attention with {name}=")
    if a.get("need_weights") or a.get("add_zero_attn") or a.get("is_causal"):
        raise NotByRows("attention whose weights are a result, with zeros added, or causal")
    mask = a.get("key_padding_mask")
    if not isinstance(mask, Dense):
        raise NotByRows("attention without a mask of the nodes")
    if not isinstance(mask.rows, fx.Proxy) and mask.rows.dtype == torch.bool:  # what is left out
        mask = mask.made(mask.axes, torch.logical_not)
    mask = unsqueezed(unsqueezed(mask, 1), 1)  # for all heads and queries
    q, k, v = (_by_heads(x, a["num_heads"]) for x in _projected(a))
    p = a["dropout_p"] if a["training"] else 0.0
    y = attention(of, q, k, v, mask, p, None)
    y = _permuted(y, (2, 0, 1, 3))
    joined = _joined(y)
    y = (
        affine(joined, a["out_proj_weight"], a["out_proj_bias"])
        if isinstance(joined, Dense)
        else (F.linear(joined, a["out_proj_weight"], a["out_proj_bias"]))
    )
    return y, None


def _projected(a: Any) -> list[Operand]:
    """Queries, keys and values."""
    given = [a["query"], a["key"], a["value"]]
    bias = a["in_proj_bias"]
    biases = [None] * 3 if bias is None else bias.chunk(3)
    if a.get("use_separate_proj_weight"):
        weights = [a["q_proj_weight"], a["k_proj_weight"], a["v_proj_weight"]]
    else:
        weights = a["in_proj_weight"].chunk(3)
    return [
        affine(x, weights[i], biases[i])
        if isinstance(x, Dense)
        else F.linear(x, weights[i], biases[i])
        for i, x in enumerate(given)
    ]


def _by_heads(x: Operand, heads: int) -> Operand:
    """places x graphs x columns as graphs x heads x places x columns."""
    width = sizes_of(x)[-1] // heads
    if isinstance(x, Dense):
        axes = (*x.axes[:-1], heads, width)
        x = x.made(axes, lambda rows: rows.unflatten(-1, (heads, width)))
    else:
        x = x.unflatten(-1, (heads, width))
    return _permuted(x, (1, 2, 0, 3))


def _joined(x: Operand) -> Operand:
    """The last two dimensions as one."""
    if isinstance(x, Dense):
        heads, width = x.axes[-2:]
        return x.made((*x.axes[:-2], heads * width), lambda rows: rows.flatten(-2))
    return x.flatten(-2)
