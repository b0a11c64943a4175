"""Tables of so many numbers for each row (sampled neighbours, the nearest points), made flat and
given their shape again, as users write what runs over all pairs: rows grouped side by side."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from .contract import check
from .users import drawn

W = drawn(4, 3, seed=7, grad=False)


def table(n: int, rows: int, width: int = 3) -> Tensor:
    return torch.randint(n, (rows, width), generator=torch.Generator().manual_seed(n))


def messages(x: Tensor, t: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Flat rows in products, pointwise, with a row for each of the table's, and in a view."""
    k = t.size(1)
    h = x[t.flatten()].tanh() @ W + y.repeat_interleave(k, 0)
    h = torch.cat([h, x.index_select(0, t.reshape(-1))], 1)
    return h.view(t.size(0), k, -1).amax(1), h, h.square().sum(-1)


def attention(x: Tensor, t: Tensor, y: Tensor) -> Tensor:
    n, k = t.shape
    keys = F.linear(x[t.view(-1)], W.t()).view(n, k, 3)
    scores = torch.einsum("bd,bkd->bk", y, keys)
    flat = F.leaky_relu(scores.reshape(-1)).view(n, k)
    return (flat.softmax(1).unsqueeze(-1) * keys).sum(1)


def edges(x: Tensor, t: Tensor, y: Tensor) -> Tensor:
    """The ends of edges from each row of the table to what it names."""
    k = t.size(1)
    h = y.unsqueeze(1).expand(-1, k, -1).reshape(-1, 3)
    own = torch.arange(t.size(0)).repeat_interleave(k)
    return F.layer_norm(x[t.flatten()] @ W - h, (3,)) * y[own]


def both_ways(x: Tensor, t: Tensor, y: Tensor) -> Tensor:
    """Numbers that a table's columns have side by side, and one column after the other."""
    slow, fast = x[t.t().reshape(-1)], x[t.reshape(-1)]
    n, k = t.shape
    return (slow @ W).view(k, n, 3).transpose(0, 1) - (fast @ W).view(n, k, 3) * y.unsqueeze(1)


def mixed(x: Tensor, t: Tensor, y: Tensor) -> Tensor:
    """Groupings that differ are torch's."""
    return x[t.t().reshape(-1)] * x[t.reshape(-1)]


CALLS = [(drawn(n, 4, seed=n), table(n, m), drawn(m, 3)) for n, m in ((7, 5), (6, 9))]


@pytest.mark.parametrize("function", [messages, attention, edges, both_ways])
def test_flat_tables(function: Callable[..., Tensor]) -> None:
    assert check(function, *CALLS).fallbacks == []


def test_groupings_that_differ() -> None:
    check(mixed, *CALLS)
