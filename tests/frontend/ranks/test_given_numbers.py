"""Ranks that give a call other numbers than the rest are found out, where nothing else differs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_mean_pool

import gnnc
from gnnc.frontend.torch.ranks.given_numbers import checksum
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.errors import Disagreement

from .cut_models import CLASSES, WIDTH, graph, net

Step = Callable[[], Tensor]


def step(
    given: tuple[nn.Module, Data], *, rate: float = 0.1, weight: float = 1.0, bound: float = 1.0
) -> Step:
    """A step of training of this rank, with a number of its own. What ranks are given is drawn once
    for all: they are threads, which draw from one generator."""
    plain, data = given
    model, part = gnnc.distribute(copy.deepcopy(plain), data)
    weights = torch.full((CLASSES,), weight, dtype=torch.float64)

    def loss() -> Tensor:
        return F.cross_entropy(model(part.x, part.edge_index), part.y, weight=weights)

    optimizer = Adam(model.parameters(), lr=rate)
    return gnnc.train_step(loss, optimizer, clip_grad_norm=bound)


@pytest.mark.parametrize(
    ("name", "what"), [("rate", "_numbers"), ("weight", "_cell_contents"), ("bound", "bounds")]
)
def test_one_rank_gives_another_number(name: str, what: str) -> None:
    given = net("gcn-plain"), graph(24, 90)
    match = rf"ranks differ in \w*{what}, an argument of a call: rank 1 from ranks 0 and 2"

    def work(c: Any) -> None:
        mine = step(given, **{name: 0.5 if c.rank == 1 else 0.25})
        with pytest.raises(Disagreement, match=match):
            mine()

    virtual.run(3, work)


def test_a_rate_that_all_change_together() -> None:
    plain, data = net("gcn-plain"), graph(24, 90)

    def work(_: Any) -> list[float]:
        model, part = gnnc.distribute(copy.deepcopy(plain), data)
        optimizer = SGD(model.parameters(), lr=0.1)
        mine = gnnc.train_step(
            lambda: F.cross_entropy(model(part.x, part.edge_index), part.y), optimizer
        )
        losses: list[float] = []
        for rate in (0.1, 0.05, 0.025):
            optimizer.param_groups[0]["lr"] = rate
            losses.append(mine().item())
        return losses

    first, second = virtual.run(2, work)
    assert first == second and first[2] < first[0]


def test_numbers_that_parameters_share_count_once() -> None:
    rate, other = torch.tensor([0.1]), torch.tensor([0.1])
    assert checksum([rate, rate]) == checksum([other])
    assert checksum([rate, other]) != checksum([rate])
    assert checksum([]) == 0


class OfGraphs(nn.Module):
    """A row for each of three graphs, which all ranks have."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = GCNConv(WIDTH, 4), nn.Linear(4, CLASSES)

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        h = self.layer(x, edges).tanh()
        return self.out(global_mean_pool(h, batch, 3)), h.square().mean()


@pytest.mark.parametrize(("name", "number"), [("out0", 0), ("out1", 1)])
def test_a_result_of_all_ranks_takes_one_gradient(name: str, number: int) -> None:
    """That of one process; ranks that give shares of it would part without a word."""
    data = graph(24, 90)
    data.batch = torch.arange(24) // 8
    torch.manual_seed(1)
    model = OfGraphs().double()
    models = [copy.deepcopy(model) for _ in range(4)]
    for y in model(data.x, data.edge_index, data.batch):
        y.sin().sum().backward(retain_graph=True)

    def work(c: Any) -> Any:
        mine, part = gnnc.distribute(models[c.rank], data)
        for y in mine(part.x, part.edge_index, part.batch):
            y.sin().sum().backward(retain_graph=True)
        other, part = gnnc.distribute(models[2 + c.rank], data)
        share = other(part.x, part.edge_index, part.batch)[number].sum() * (1 + c.rank)
        with pytest.raises(Disagreement, match=rf"ranks differ in the gradient of {name}, a resul"):
            share.backward()
        return [p.grad for p in mine.parameters()]

    for grads in virtual.run(2, work):
        for a, p in zip(grads, model.parameters(), strict=True):
            torch.testing.assert_close(a, p.grad, rtol=1e-10, atol=1e-10)
