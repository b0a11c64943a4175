"""Random programs trained by `gnnc.train_step`, in front of them features that are taken as sparse
or kept aggregated, behind them a loss over some rows: all equal torch."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam
from torch_geometric.nn import GraphConv

import gnnc
from gnnc.frontend.torch import constant_inputs
from gnnc.frontend.torch.sparse import features

from .equality import random_edges
from .test_random_models import WIDTH, Program

WORDS, NODES, EDGES = 50, 40, 160


class Trained(nn.Module):
    """A layer on wide features, and a random program on what it gives."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first: Callable[..., Tensor] = GraphConv(WORDS, WIDTH)
        self.program = Program(seed, 3 + seed % 8)

    def forward(self, x: Tensor, e: Tensor, w: Tensor) -> Tensor:
        h = torch.tanh(self.first(x, e))
        return torch.cat([h, *(y for y in self.program(h, e, w) if y.shape == h.shape)], dim=1)


def check(seed: int) -> None:
    """Losses and parameters after some steps, and after a change of the features."""
    eager = Trained(seed).double()
    model = copy.deepcopy(eager)
    kind = (SGD, Adam)[seed % 2]
    optimizers = [kind(m.parameters(), lr=0.02) for m in (eager, model)]
    g = random_edges(seed, NODES, NODES, EDGES, ("uniform", "hub", "isolated")[seed % 3])
    x = torch.randn(NODES, WORDS, dtype=torch.float64)
    x *= torch.rand(NODES, WORDS) < 0.1
    w = torch.randn(EDGES, WIDTH, dtype=torch.float64)
    y = torch.randint(0, WIDTH, (NODES,))
    rows = torch.rand(NODES) < 0.2
    chosen = rows if seed % 4 < 2 else rows.nonzero().flatten()

    def loss(m: nn.Module) -> Callable[..., Tensor]:
        return lambda x, e, w, y, chosen: F.cross_entropy(m(x, e, w)[chosen], y[chosen])

    step = gnnc.train_step(loss(model), optimizers[1])
    for k in range(4):
        if k == 2:
            x[3] += 1.0
        want = loss(eager)(x, g.index, w, y, chosen)
        optimizers[0].zero_grad()
        want.backward()
        optimizers[0].step()
        torch.testing.assert_close(step(x, g.index, w, y, chosen), want.detach())
    for a, b in zip(eager.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(b, a, atol=1e-8, rtol=1e-6)
    assert gnnc.explain(step).fallbacks == []


SEEDS = [*range(4), *(pytest.param(k, marks=pytest.mark.long) for k in range(4, 60))]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "kept"])
def test_random_steps(seed: int, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant_inputs, "LEAST", NODES * WORDS)
    monkeypatch.setattr(features, "pays", lambda products: sparse)
    check(seed)
