"""Gradients where a sum is over no rows, and the slope behind it or the cotangent is no number."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import scatter

import gnnc

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]

WITH_ISOLATED = torch.tensor([[0, 1, 2], [1, 1, 1]])
NONE = torch.zeros(2, 0, dtype=torch.long)


def mean(x: Tensor, w: Tensor, edge_index: Tensor) -> Tensor:
    return (x @ w)[edge_index[0]].mean(0)


def root(x: Tensor, w: Tensor, edge_index: Tensor) -> Tensor:
    """The factor of the target leaves the sum where that is safe."""
    h, (src, dst) = x @ w, edge_index
    return scatter(h[src] * h[dst], dst, 0, dim_size=x.shape[0]).square().sum(-1).sqrt()


def gradients(f: Loss, edge_index: Tensor, cotangent: Tensor | None = None) -> list[Tensor]:
    torch.manual_seed(0)
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    y = f(x, w, edge_index)
    y.backward(torch.ones_like(y) if cotangent is None else cotangent)
    assert x.grad is not None and w.grad is not None
    return [x.grad, w.grad]


@pytest.mark.parametrize("f", [mean, root])
@pytest.mark.parametrize("edge_index", [WITH_ISOLATED, NONE], ids=["isolated", "none"])
def test_infinite_slopes_of_sums_over_nothing_reach_nobody(f: Loss, edge_index: Tensor) -> None:
    compiled = gnnc.compile(f)
    found = gradients(compiled, edge_index)
    assert not gnnc.explain(compiled).fallbacks
    torch.testing.assert_close(found, gradients(f, edge_index))
    assert all(bool(d.isfinite().all()) for d in found)


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize("node", [1, 3], ids=["with edges", "without"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "mul"])
def test_cotangents_that_are_no_numbers(reduce: str, node: int, number: float) -> None:
    """They go where eager's go: from a node without edges nowhere."""

    def f(x: Tensor, w: Tensor, edge_index: Tensor) -> Tensor:
        h, (src, dst) = x @ w, edge_index
        return scatter(h[src], dst, 0, dim_size=x.shape[0], reduce=reduce)

    cotangent = torch.ones(4, 3, dtype=torch.float64)
    cotangent[node] = number
    found = gradients(gnnc.compile(f), WITH_ISOLATED, cotangent)
    expected = gradients(f, WITH_ISOLATED, cotangent)
    torch.testing.assert_close(found, expected, equal_nan=True)
    if node == 3:
        assert all(bool(d.isfinite().all()) for d in found)
