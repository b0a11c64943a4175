"""Graphs that are cut where torch has to run something: layers before and behind it are compiled,
whatever of a graph's structure both read, and rows cross whose number only running tells."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGPooling, TopKPooling
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import remove_self_loops, softmax

import gnnc

from .users import drawn, edges

W, V = (drawn(4, 4, seed=k).detach().double().requires_grad_() for k in (5, 6))


def passed(h: Tensor, e: Tensor, weight: Tensor) -> Tensor:
    return torch.zeros_like(h).index_add(0, e[1], h[e[0]] * weight[:, None])


def by_rank(h: Tensor) -> Tensor:
    return h[torch.sort(h.sum(1), stable=True)[1]]  # torch does this


def normalised(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    return gcn_norm(e, None, x.size(0), dtype=x.dtype)


def norm_of_each_layer(x: Tensor, e: Tensor, b: Tensor, w: Tensor, v: Tensor) -> Tensor:
    h = by_rank(passed(x @ w, *normalised(x, e)))
    return passed(h @ v, *normalised(h, e))


def norm_of_both_layers(x: Tensor, e: Tensor, b: Tensor, w: Tensor, v: Tensor) -> Tensor:
    normal = normalised(x, e)
    return passed(by_rank(passed(x @ w, *normal)) @ v, *normal)


def edges_of_a_mask(x: Tensor, e: Tensor, b: Tensor, w: Tensor, v: Tensor) -> Tensor:
    kept = e[:, b[e[0]] == b[e[1]]]
    ones = x.new_ones(kept.size(1))
    return passed(by_rank(passed(x @ w, kept, ones)) @ v, kept, ones / (1 + kept.size(1)))


def scores_that_cross(x: Tensor, e: Tensor, b: Tensor, w: Tensor, v: Tensor) -> Tensor:
    kept, _ = remove_self_loops(e)
    h = x @ w
    score = softmax((h[kept[0]] * h[kept[1]]).sum(1), kept[1], num_nodes=x.size(0))
    return passed(by_rank(passed(h, kept, score)) @ v, kept, score)


def nodes_of_a_mask(x: Tensor, e: Tensor, b: Tensor, w: Tensor, v: Tensor) -> Tensor:
    h = (x @ w)[b > 0].tanh()
    return (h @ v + by_rank(h) * h.size(0)).view(h.size(0), 2, 2)


PROGRAMS = {
    norm_of_each_layer: 2,
    norm_of_both_layers: 2,
    edges_of_a_mask: 2,
    scores_that_cross: 2,
    nodes_of_a_mask: 1,
}
"""Functions, and how many parts of them are worth a program."""


@pytest.mark.parametrize("f", PROGRAMS)
def test_layers_around_what_torch_runs(f: Callable[..., Tensor]) -> None:
    compiled = gnnc.compile(f)
    for n, count in ((9, 20), (14, 30), (5, 0), (1, 2)):
        x, b = drawn(n, 4, seed=n).detach().double().requires_grad_(), torch.arange(n) % 3
        args: tuple[Any, ...] = (x, edges(n, count), b.sort()[0], W, V)
        found: list[tuple[Tensor, ...]] = []
        for g in (f, compiled):
            y = g(*args)
            made = torch.autograd.grad((y * y.detach().cos()).sum(), [args[0], W, V])  # pyright: ignore
            found.append((y.detach(), *made))
        torch.testing.assert_close(found[1], found[0])
    report = gnnc.explain(compiled)
    assert report.graphs == PROGRAMS[f]
    assert [r for r in report.fallbacks if "too little" not in r and "sort" not in r] == []


def until_a_number_is_asked(x: Tensor, e: Tensor, b: Tensor, w: Tensor, v: Tensor) -> Tensor:
    h = passed(x @ w, e, x.new_ones(e.size(1)))
    groups = int(b.max()) + 1
    if groups > 2:  # the graph ends here, and the number is one of its results
        h = h.tanh() @ v
    return torch.zeros(groups, 4, dtype=x.dtype).index_add(0, b, h)


# Dynamo hides torch's warning of a tensor between two parts, but not where it is an error
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_layers_before_a_number_that_is_asked_for() -> None:
    compiled = gnnc.compile(until_a_number_is_asked)
    for n, groups in ((9, 3), (14, 2), (5, 1)):
        x, b = drawn(n, 4, seed=n).detach().double().requires_grad_(), torch.arange(n) % groups
        args = (x, edges(n, 20), b, W, V)
        results = [f(*args) for f in (until_a_number_is_asked, compiled)]
        made = [torch.autograd.grad(y.square().sum(), [x, W]) for y in results]
        torch.testing.assert_close([results[1], *made[1]], [results[0], *made[0]])
    report = gnnc.explain(compiled)
    assert report.graphs > 1
    assert [r for r in report.fallbacks if "which no input of the graph tells" in r] == []


class Pooled(nn.Module):
    """A layer, pooling by rank, and a layer on the nodes that stay."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.pool = GCNConv(4, 4), GCNConv(4, 3), pool

    def forward(self, x: Tensor, e: Tensor, b: Tensor) -> Tensor:
        h, kept, *_ = self.pool(self.first(x, e).relu(), e, None, b)
        return self.second(h, kept).sum(0)


@pytest.mark.parametrize("pool", [TopKPooling(4, 0.5), SAGPooling(4, 0.5)])
def test_a_layer_on_the_nodes_that_pooling_keeps(pool: nn.Module) -> None:
    """The ends of edges are numbers of nodes that stay, of some edges -1."""
    torch.manual_seed(0)
    eager = Pooled(copy.deepcopy(pool)).double()
    compiled = gnnc.compile(copy.deepcopy(eager))
    for n, groups in ((9, 3), (14, 2), (5, 1)):
        x, b = drawn(n, 4, seed=n).detach().double(), torch.arange(n) % groups
        found: list[list[Tensor]] = []
        for model in (eager, compiled):
            model.zero_grad()
            y = model(x, edges(n, 20), b.sort()[0])
            y.square().sum().backward()
            found.append([y.detach(), *(p.grad for p in model.parameters() if p.grad is not None)])
        torch.testing.assert_close(found[1], found[0])
    report = gnnc.explain(compiled)
    assert report.graphs == 2
    assert not [r for r in report.fallbacks if "self-loops" in r or "a call runs in torch" in r]
