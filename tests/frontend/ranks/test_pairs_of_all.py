"""Reductions in groups of edges that several ranks have: over all pairs of link prediction, by the
end that edges do not lie with, and by layers whose messages go from targets to sources."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import nn as G
from torch_geometric.data import Data
from torch_geometric.utils import scatter, softmax

import gnnc
from gnnc.runtime.ranks import virtual

from .cut_models import WIDTH, graph

PAIRS = 70


class Ranking(nn.Module):
    """What a listwise loss is made of: each pair's share of all pairs, its share of those with the
    same first node, and the best score of these."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = G.SAGEConv(WIDTH, 4)

    def forward(self, x: Tensor, edges: Tensor, pairs: Tensor) -> tuple[Tensor, ...]:
        z = self.layer(x, edges)
        score = (z[pairs[1]] * z[pairs[0]].tanh()).sum(-1)
        of_all = F.softmax(score, 0)
        of_node = softmax(score, pairs[0], num_nodes=x.size(0))
        best = scatter(score, pairs[0], 0, x.size(0), reduce="max")
        return best, of_all, of_node


class Backwards(nn.Module):
    """A layer whose messages go from targets to sources."""

    def __init__(self, make: Callable[..., nn.Module], **options: Any) -> None:
        super().__init__()
        self.layer = make(WIDTH, 4, flow="target_to_source", **options)

    def forward(self, x: Tensor, edges: Tensor, pairs: Tensor) -> tuple[Tensor, ...]:
        return (self.layer(x, edges),)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "ranking": Ranking,
    "gcn": lambda: Backwards(G.GCNConv),
    "sage": lambda: Backwards(G.SAGEConv),
    "sage-max": lambda: Backwards(G.SAGEConv, aggr="max"),
    "sage-mul": lambda: Backwards(G.SAGEConv, aggr="mul"),
    "gat": lambda: Backwards(G.GATConv, heads=2),
    "gat-plain": lambda: Backwards(G.GATConv, heads=2, add_self_loops=False),
}


def linked() -> Data:
    """Pairs with equal ones among them, and nodes that no pair begins with."""
    data = graph(30, 110)
    pairs = torch.stack([torch.randint(0, 20, (PAIRS,)), torch.randint(0, 30, (PAIRS,))])
    pairs[:, :9] = pairs[:, 9:18]
    data.edge_label_index = pairs
    return data


def results(called: nn.Module, x: Tensor, part: Data) -> list[Tensor]:
    """Results, and gradients of a sum with factors that follow from numbers in the whole graph."""
    x.requires_grad_()
    nodes = getattr(part, "n_id", torch.arange(30))
    pairs = getattr(part, "edge_label_id", torch.arange(PAIRS))
    out = called(x, part.edge_index, part.edge_label_index)
    numbers = [nodes if len(y) == len(nodes) else pairs for y in out]
    factors = [torch.sin(n.double() + i + 1) for i, n in enumerate(numbers)]
    each = [y * f.view(-1, *[1] * (y.dim() - 1)) for y, f in zip(out, factors, strict=True)]
    sum(y.sum() for y in each).backward()
    return [*(y.detach() for y in out), x.grad, *(p.grad for p in called.parameters())]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "ranks", "chunks"), [("ranking", 2, 1), *((n, 3, 2) for n in MODELS)]
)
def test_groups_of_all_ranks_are_those_of_one_process(name: str, ranks: int, chunks: int) -> None:
    data = linked()
    torch.manual_seed(4)
    model = MODELS[name]().double()
    models = [copy.deepcopy(model) for _ in range(ranks)]

    def work(c: Any) -> Any:
        mine, part = gnnc.distribute(models[c.rank], data, chunks=chunks)
        return part, results(mine, part.x, part)

    wanted = results(copy.deepcopy(model), data.x.clone(), data)
    for part, found in virtual.run(ranks, work):
        for a, b in zip(found, wanted, strict=True):
            chosen = {30: part.n_id, PAIRS: part.edge_label_id}.get(len(b))
            b = b if chosen is None or a.shape == b.shape else b[chosen]
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)
