"""Dense batches where rows are not enough, or not as they lie: eager's numbers and gradients.

There are as many graphs as columns, and one batch fills all places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import to_dense_batch

import gnnc

from .checked import WIDTH, Model, check

HOLES = torch.tensor([0, 0, 0, 1, 1, 3, 3, 3])  # graph 2 has no nodes
FULL = torch.arange(3 * WIDTH) // 3
INF = torch.inf


def scores(d: Tensor) -> Tensor:
    return d @ d.transpose(1, 2)


def infinite(m: Tensor) -> Tensor:
    return torch.zeros_like(m, dtype=torch.float64).masked_fill(~m, -INF)


def wide(d: Tensor) -> Tensor:
    return d.unsqueeze(-1).expand(-1, -1, -1, 16).flatten(2)


def edited_product(d: Tensor, m: Tensor) -> Tensor:
    kv = d.transpose(1, 2) @ wide(d)
    kv.mul_(2.0)
    return (d @ kv)[m]


def product_without_history(d: Tensor, m: Tensor) -> Tensor:
    keys, values = d.transpose(1, 2) * 1.0, wide(d)
    with torch.no_grad():
        kv = keys @ values
    return (d @ kv)[m]


def edited_where_it_is_filled(d: Tensor, m: Tensor) -> tuple[Tensor, Tensor]:
    y = d * 2
    z = y.transpose(1, 2)
    s = y.sort(1)[0]
    y[0] = 0
    return z.transpose(1, 2)[m], s


def edited_without_history(d: Tensor, m: Tensor) -> Tensor:
    y = d * 2
    with torch.no_grad():
        y.mul_(3)
    return y[m]


def edited_twice(d: Tensor, m: Tensor) -> Tensor:
    y = d * 2
    y += d
    y *= m.unsqueeze(-1)
    return y.sum(1)


def without_history(d: Tensor, m: Tensor) -> Tensor:
    with torch.no_grad():
        y, z = F.dropout(d, 0.5, False), d[m]
    return (y * d)[m] * z


def of_all_queries(d: Tensor, m: Tensor) -> Tensor:
    heads = d.unsqueeze(1).expand(-1, WIDTH, -1, -1)
    return F.scaled_dot_product_attention(heads, heads, heads, attn_mask=m[:, None, :]).sum(1)[m]


W = torch.arange(3.0 * WIDTH, dtype=torch.float64).reshape(3, WIDTH).sin()

CASES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    # a mask of the queries leaves out no key
    "mask-of-queries": lambda d, m: (scores(d).masked_fill(~m[:, :, None], -INF).softmax(-1) @ d)[
        m
    ],
    "infinite-mask-of-queries": lambda d, m: (
        (scores(d) + infinite(m)[:, :, None]).softmax(-1) @ d
    )[m],
    "attention-of-queries": lambda d, m: F.scaled_dot_product_attention(
        d, d.tanh(), d.exp(), attn_mask=m[:, :, None]
    )[m],
    "attention-to-others": lambda d, m: F.scaled_dot_product_attention(
        d, W.expand(len(d), 3, WIDTH), W.exp().expand(len(d), 3, WIDTH), attn_mask=m[:, :, None]
    )[m],
    "mask-of-heads": of_all_queries,
    # the pad
    "columns-of-the-pad": lambda d, m: d.masked_fill(~m[..., None], 0.25).sum(-1).sum(1),
    "columns-of-a-chosen-pad": lambda d, m: (
        torch.where(m[..., None], d, d.sum(-1, keepdim=True) + 1).norm(dim=-1).sum(1)
    ),
    "precision-of-the-pad": lambda d, m: (
        torch.where(m[..., None], d, torch.full_like(d, 0.1, dtype=torch.float32)).exp().sum(1)
    ),
    "no-place-of-an-infinite-pad": lambda d, m: d.masked_fill(~m[..., None], -INF).sum(1),
    "no-place-of-an-infinite-logarithm": lambda d, m: d.square().log().sum(1),
    "nothing-of-infinity": lambda d, m: (
        scores(d).masked_fill(~m[:, None], -INF).softmax(-1) @ (1 / d.sign())
    )[m],
    # what is the same for all rows
    "equal-rows": lambda d, m: (m.unsqueeze(-1) * W[0]).sum(1) + d.sum(1),
    "equal-rows-of-a-layer": lambda d, m: F.linear(torch.ones_like(d), W)[m] + d[m].sum(),
    "equal-rows-in-a-product": lambda d, m: torch.einsum("bpq,bq->bp", scores(d), m.double())[m],
    "equal-rows-in-pairs": lambda d, m: (
        (((m[:, :, None] * 0.5) @ (m[:, None, :] * 2.0)) * scores(d))
        .masked_fill(~m[:, None], -INF)
        .softmax(-1)
        .matmul(d)[m]
    ),
    # memory and history
    "edited-product": edited_product,
    "product-without-history": product_without_history,
    "edited-where-it-is-filled": edited_where_it_is_filled,
    "edited-without-history": edited_without_history,
    "edited-twice": edited_twice,
    "without-history": without_history,
    "repeated": lambda d, m: torch.einsum(
        "bpx,x->bp", d.sum(-1, keepdim=True), W[0, :1].expand(WIDTH)
    )[m],
}

ELSEWHERE = {
    "mask-of-queries",
    "infinite-mask-of-queries",
    "attention-of-queries",
    "attention-to-others",
    "mask-of-heads",
    "nothing-of-infinity",
    "edited-where-it-is-filled",
    "edited-without-history",
}
"""The cases that are none of rows."""


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    case = CASES[name]

    def function(x: Tensor, batch: Tensor, layer: Any) -> Any:
        return case(*to_dense_batch(x, batch, batch_size=WIDTH))

    report = check(Model(function), (HOLES, FULL, HOLES))
    assert (report.fallbacks == []) == (name not in ELSEWHERE)


def test_rows_that_are_edited_later() -> None:
    def function(x: Tensor, batch: Tensor, layer: Any) -> Tensor:
        y = x * 2
        d, m = to_dense_batch(y, batch, batch_size=WIDTH)
        y.mul_(3)
        return d[m] + y

    assert check(Model(function), (HOLES, FULL)).fallbacks == []


def test_a_batch_that_is_made_without_history() -> None:
    def function(x: Tensor, batch: Tensor, layer: Any) -> Tensor:
        with torch.no_grad():
            d, m = to_dense_batch(x, batch, batch_size=WIDTH)
        return (d * x.sum())[m]

    assert check(Model(function), (HOLES, FULL)).fallbacks == []


def test_rows_are_nobody_elses() -> None:
    def rows(x: Tensor, batch: Tensor, edit: bool) -> Tensor:
        d, m = to_dense_batch(x, batch, batch_size=WIDTH)
        return d[m].mul_(2) if edit else d[m]

    compiled = gnnc.compile(rows)
    for edit in (False, True):
        x = torch.randn(len(HOLES), WIDTH)
        before = x.clone()
        y = compiled(x, HOLES, edit)
        assert y.data_ptr() != x.data_ptr()
        torch.testing.assert_close(x, before, rtol=0, atol=0)
        torch.testing.assert_close(y, x * (1 + edit))


def test_numbers_that_backward_needs_are_edited() -> None:
    def edited(x: Tensor, batch: Tensor) -> Tensor:
        d, m = to_dense_batch(x, batch, batch_size=WIDTH)
        y = d.exp()
        y.mul_(2)
        return y[m]

    def repeated(x: Tensor, batch: Tensor) -> Tensor:
        d, m = to_dense_batch(x, batch, batch_size=WIDTH)
        return d[:, :, :1].expand(-1, -1, WIDTH).add_(1)[m]

    x = torch.randn(len(HOLES), WIDTH, requires_grad=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gnnc.compile(edited)(x, HOLES).sum().backward()
    with pytest.raises(RuntimeError, match="single memory location"):
        gnnc.compile(repeated)(x, HOLES)


def test_few_bits_of_a_batch() -> None:
    def function(x: Tensor, batch: Tensor, layer: Any) -> Tensor:
        return to_dense_batch(x, batch, batch_size=WIDTH)[0].amax(1)

    report = check(Model(function), (HOLES.int(),))
    assert not [r for r in report.fallbacks if "longest_group" in r]


@pytest.mark.parametrize("more", [0, 1])
def test_rows_of_more_graphs_than_there_are(more: int) -> None:
    """Nothing else reads the batch as a place: pairs come from outside."""

    def attention(x: Tensor, batch: Tensor, size: int) -> Tensor:
        d, m = to_dense_batch(x, batch, batch_size=size)
        return (scores(d).masked_fill(~m[:, None], -INF).softmax(-1) @ d)[m]

    compiled, x = gnnc.compile(attention), torch.randn(len(HOLES), WIDTH)
    for k in range(more + 1):  # the second time the number is an argument
        torch.testing.assert_close(
            compiled(x, HOLES, WIDTH + k), attention(x, HOLES, WIDTH + k), equal_nan=True
        )
    with pytest.raises(RuntimeError, match="out of bounds"):
        compiled(x, HOLES + 1 + more, WIDTH + more)


def test_rows_of_more_graphs_than_sizes_tell() -> None:
    """The number of graphs follows from the rows of another argument."""

    def attention(x: Tensor, batch: Tensor, pointer: Tensor) -> Tensor:
        d, m = to_dense_batch(x, batch, batch_size=pointer.numel() - 1)
        return (scores(d).masked_fill(~m[:, None], -INF).softmax(-1) @ d)[m]

    compiled, x = gnnc.compile(attention), torch.randn(len(HOLES), WIDTH)
    graphs = int(HOLES.max()) + 1
    args = x, HOLES, torch.zeros(graphs + 1)
    torch.testing.assert_close(compiled(*args), attention(*args), equal_nan=True)
    assert gnnc.explain(compiled).fallbacks == []
    with pytest.raises(RuntimeError, match="out of bounds"):
        compiled(x, HOLES, torch.zeros(graphs))
