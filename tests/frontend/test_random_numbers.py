"""Random numbers that a model draws with torch's functions: they are those of eager, from the same
seed, and cut no step in two."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD
from torch_geometric.nn import GCNConv
from torch_geometric.utils import dropout_edge, negative_sampling

import gnnc

from .users import drawn, edges

WIDTH = 6


class Net(nn.Module):
    """Two layers; what is drawn, and for what, is `draw`'s."""

    def __init__(self, draw: Callable[[Net, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.scale = (GCNConv(WIDTH, WIDTH) for _ in range(3))
        self.draw = draw
        self.double()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.draw(self, x, edge_index)


def sampled(net: Net, x: Tensor, e: Tensor) -> Tensor:
    """The codes of a variational autoencoder."""
    h = net.first(x, e).relu()
    mean, scale = net.second(h, e), net.scale(h, e)
    return mean + torch.randn_like(scale) * scale.exp()


def edges_dropped(net: Net, x: Tensor, e: Tensor) -> Tensor:
    kept, _ = dropout_edge(e, 0.4)
    return net.second(net.first(x, kept).relu(), kept)


def edges_masked(net: Net, x: Tensor, e: Tensor) -> Tensor:
    kept = e[:, torch.rand(e.size(1)) > 0.4]
    keep = torch.bernoulli(torch.full((x.size(0),), 0.7)).bool()
    return net.second(net.first(torch.where(keep[:, None], x, 0.0), kept).relu(), kept)


def columns_masked(net: Net, x: Tensor, e: Tensor) -> Tensor:
    mask = torch.empty((x.size(1),)).uniform_(0, 1) < 0.5
    x = x.clone()
    x[:, mask] = 0
    return net.second(net.first(x, e).relu(), e)


def noisy(net: Net, x: Tensor, e: Tensor) -> Tensor:
    h = net.first(x, e)
    h = h + torch.empty_like(h).uniform_(-0.1, 0.1) + torch.rand_like(h) * 0.1
    return net.second(h, e)


def rows_shuffled(net: Net, x: Tensor, e: Tensor) -> Tensor:
    """The corruption of Deep Graph Infomax."""
    other = x[torch.randperm(x.size(0))]
    return net.first(x, e) - net.first(other, e)


def pairs_drawn(net: Net, x: Tensor, e: Tensor) -> Tensor:
    h = net.first(x, e)
    a, b = torch.randint(0, x.size(0), (2, e.size(1)))
    return (h[a] * h[b]).sum(-1, keepdim=True)


def no_edges_drawn(net: Net, x: Tensor, e: Tensor) -> Tensor:
    h = net.first(x, e)
    a, b = negative_sampling(e, x.size(0), num_neg_samples=9)
    c, d = negative_sampling(e, (x.size(0), 2 * x.size(0)), 7, method="dense")
    return (h[a] * h[b]).sum() + torch.cat([h, h])[d].sum() * h[c].sin().sum()


DRAWS = (
    *(sampled, edges_dropped, edges_masked, columns_masked, noisy, rows_shuffled, pairs_drawn),
    no_edges_drawn,
)
GRAPHS = {"graph": (12, 40), "node": (1, 2), "no-edges": (5, 0)}


def loss_of(net: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, e: net(x, e).sin().sum()


def seeded(call: Callable[..., Tensor], *args: Tensor) -> Tensor:
    torch.manual_seed(7)
    random.seed(7)
    return call(*args)


@pytest.mark.parametrize("draw", DRAWS)
def test_they_are_those_of_eager(draw: Callable[[Net, Tensor, Tensor], Tensor]) -> None:
    eager = Net(draw)
    compiled = gnnc.compile(copy.deepcopy(eager))
    for nodes, count in GRAPHS.values():
        x, e = drawn(nodes, WIDTH, grad=False).double(), edges(nodes, count)
        want, got = seeded(loss_of(eager), x, e), seeded(loss_of(compiled), x, e)
        torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
        want.backward()
        got.backward()
    for p, q in zip(eager.parameters(), compiled.parameters(), strict=True):
        if p.grad is not None:
            torch.testing.assert_close(q.grad, p.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("draw", DRAWS)
def test_a_step_is_one_program_all_the_same(draw: Callable[[Net, Tensor, Tensor], Tensor]) -> None:
    eager = Net(draw)
    trained = copy.deepcopy(eager)
    optimizer, own = SGD(eager.parameters(), lr=0.01), SGD(trained.parameters(), lr=0.01)
    step = gnnc.train_step(loss_of(trained), own)
    x, e = drawn(12, WIDTH, grad=False).double(), edges(12, 40)
    losses = [seeded(step, x, e), *(step(x, e) for _ in range(2))]
    torch.manual_seed(7)
    random.seed(7)
    for loss in losses:
        optimizer.zero_grad()
        want = loss_of(eager)(x, e)
        want.backward()
        optimizer.step()
        torch.testing.assert_close(loss, want.detach(), atol=1e-5, rtol=1e-5)
    for p, q in zip(eager.parameters(), trained.parameters(), strict=True):
        torch.testing.assert_close(q, p, atol=1e-5, rtol=1e-4)
    report = gnnc.explain(step)
    assert report.graphs == 1 and not any("update of parameters" in f for f in report.fallbacks)


def test_a_step_that_cannot_be_one_program_draws_once() -> None:
    """Rows are chosen by what the layers give, between two of them."""
    eager = Net(lambda net, x, e: net.second(net.first(x, e).sort(0).values + torch.rand(1), e))
    trained = copy.deepcopy(eager)
    step = gnnc.train_step(loss_of(trained), SGD(trained.parameters(), lr=0.01))
    x, e = drawn(12, WIDTH, grad=False).double(), edges(12, 40)
    want, got = seeded(loss_of(eager), x, e), seeded(step, x, e)
    torch.testing.assert_close(got, want.detach(), atol=1e-5, rtol=1e-5)
    assert any("update of parameters" in f for f in gnnc.explain(step).fallbacks)


def test_dropout_before_what_torch_draws() -> None:
    """A dropout is in the program, which cannot start with it and end before it."""
    net = Net(lambda net, x, e: _noisy_after_dropout(net, x, e))
    step = gnnc.train_step(loss_of(net), SGD(net.parameters(), lr=0.01))
    assert step(drawn(12, WIDTH, grad=False).double(), edges(12, 40)).isfinite()
    assert gnnc.explain(step).graphs == 1


def _noisy_after_dropout(net: Net, x: Tensor, e: Tensor) -> Tensor:
    h = F.dropout(net.first(x, e).relu())
    return net.second(h + torch.randn_like(h), e)
