"""Sums, means and extremes of rows that lead to the same place."""

from __future__ import annotations

import torch
from torch import Tensor

from .base import DGLError

INFINITY = {"max": float("-inf"), "min": float("inf")}
"""What the reducers without an identity among the numbers start from."""


def reduce_messages(messages: Tensor, index: Tensor, rows: int, reducer: str) -> Tensor:
    """Row `i` of the result is the `reducer` of messages whose `index` is `i`, and else zero.

    `messages` is `(edges, ..)`, `index` `int64` of `(edges,)`, the result `(rows, ..)`. Where
    several messages are the maximum, each gets an equal share of the gradient.
    """
    if reducer == "sum":
        return _sum(messages, index, rows)
    if reducer == "mean":
        total = _sum(messages, index, rows)
        count = counts(index, rows).clamp(min=1).to(total.dtype)
        return total / count.reshape((-1,) + (1,) * (total.dim() - 1))
    if reducer in ("max", "min"):
        zeros = messages.new_zeros((rows, *messages.shape[1:]))
        at = index.reshape((-1,) + (1,) * (messages.dim() - 1)).expand_as(messages)
        return zeros.scatter_reduce(0, at, messages, f"a{reducer}", include_self=False)
    raise DGLError(f"reducer {reducer!r} not recognized: sum, mean, max or min")


def without_messages(reduced: Tensor, index: Tensor, reducer: str) -> Tensor:
    """A result of `reduce_messages` with infinities, for max and min, where there is no message.

    DGL has zeros there in the results of `update_all`, and where there is no message at all.
    """
    if reducer not in INFINITY:
        return reduced
    received = counts(index, reduced.shape[0])
    empty = (received == 0) & (received.sum() > 0)
    empty = empty.reshape((-1,) + (1,) * (reduced.dim() - 1))
    return reduced.masked_fill(empty, INFINITY[reducer])


def _sum(messages: Tensor, index: Tensor, rows: int) -> Tensor:
    return messages.new_zeros((rows, *messages.shape[1:])).index_add_(0, index, messages)


def counts(index: Tensor, rows: int) -> Tensor:
    """How often each of `rows` numbers is in an index."""
    return index.new_zeros(rows).index_add_(0, index, torch.ones_like(index))


def softmax_by(logits: Tensor, index: Tensor, rows: int) -> Tensor:
    """Softmax over rows of `logits`, `(edges, ..)`, that have the same `index`, below `rows`."""
    highest = reduce_messages(logits.detach(), index, rows, "max")
    powers = (logits - highest.index_select(0, index)).exp()
    return powers / reduce_messages(powers, index, rows, "sum").index_select(0, index)
