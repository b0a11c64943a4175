"""Rows in segments one after the other: reductions, softmax, and products with a weight each."""

from __future__ import annotations

import torch
from torch import Tensor

from .base import DGLError
from .reduce import reduce_messages


def segment_ids(seglen: Tensor, rows: int) -> Tensor:
    """The number of the segment of each of `rows` rows, `int64`."""
    numbers = torch.arange(seglen.shape[0], device=seglen.device)
    return numbers.repeat_interleave(seglen.to(numbers.dtype), output_size=rows)


def segment_reduce(seglen: Tensor, value: Tensor, reducer: str = "sum") -> Tensor:
    """The sum, mean, max or min of each segment, zero for empty ones.

    `seglen` has the lengths, `(segments,)`, that sum to the rows of `value`, `(rows, ..)`.
    """
    ids = segment_ids(seglen, value.shape[0])
    return reduce_messages(value, ids, seglen.shape[0], reducer)


def segment_softmax(seglen: Tensor, value: Tensor) -> Tensor:
    """Softmax over the rows of each segment; arguments are those of `segment_reduce`."""
    ids, rows = segment_ids(seglen, value.shape[0]), seglen.shape[0]
    highest = reduce_messages(value.detach(), ids, rows, "max")
    powers = (value - highest.index_select(0, ids)).exp()
    return powers / reduce_messages(powers, ids, rows, "sum").index_select(0, ids)


def segment_mm(a: Tensor, b: Tensor, seglen_a: Tensor) -> Tensor:
    """Rows of segment `i` of `a`, `(rows, k)`, times `b[i]`, with `b` of `(segments, k, n)`."""
    if seglen_a.shape[0] != b.shape[0]:
        raise DGLError(
            f"segment_mm: there are {seglen_a.shape[0]} segments and {b.shape[0]} matrices"
        )
    if torch.compiler.is_compiling():
        return gather_mm(a, b, idx_b=segment_ids(seglen_a.to(a.device), a.shape[0]))
    parts = a.split(seglen_a.tolist())
    return torch.cat([part @ weight for part, weight in zip(parts, b, strict=True)])


def gather_mm(a: Tensor, b: Tensor, *, idx_b: Tensor) -> Tensor:
    """Row `i` of `a`, `(rows, k)`, times `b[idx_b[i]]`, with `b` of `(matrices, k, n)`.

    In eager, rows of a matrix are multiplied together: nothing of `rows * k * n` is made.
    """
    if torch.compiler.is_compiling():
        return torch.bmm(a.unsqueeze(1), b.index_select(0, idx_b.long())).squeeze(1)
    order = idx_b.argsort(stable=True)
    lengths = torch.bincount(idx_b, minlength=b.shape[0])
    products = segment_mm(a.index_select(0, order), b, lengths)
    return products.new_empty(products.shape).index_copy(0, order, products)
