"""Models that predict, without gradients: what is computed is what training computes forward."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch_geometric.nn import GATConv, RGATConv, SAGEConv

import gnnc

CONVOLUTIONS: dict[str, Callable[[], nn.Module]] = {
    "gat": lambda: GATConv(32, 4, heads=2),
    "rgat": lambda: RGATConv(32, 32, 40),
    "sage": lambda: SAGEConv(32, 4),
}


def products(report: gnnc.Report) -> int:
    """How many forward kernels multiply with weights."""
    return sum(k.startswith("forward") and "matmul" in k for k in report.kernels)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_predictions_have_the_products_of_training(kind: str):
    torch.manual_seed(0)
    x, edge_index = torch.randn(300, 32), torch.randint(0, 300, (2, 2000))
    types = (torch.arange(2000) % 40,) if kind == "rgat" else ()
    model = CONVOLUTIONS[kind]()
    trained, predicting = gnnc.compile(model), gnnc.compile(copy.deepcopy(model))
    expected = trained(x, edge_index, *types)
    expected.sum().backward()
    with torch.no_grad():
        found = predicting(x, edge_index, *types)
    torch.testing.assert_close(found, expected.detach())
    assert products(gnnc.explain(predicting)) <= products(gnnc.explain(trained))
