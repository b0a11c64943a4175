"""Pairs that are no edges, drawn in each call over ranks: those that one process draws."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import nn as G
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import negative_sampling

import gnnc
from gnnc.frontend.torch.ranks import cut_tensors, drawn_pairs
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.errors import Disagreement

from .cut_models import WIDTH, graph

LONG = pytest.mark.long


def labelled(nodes: int, edges: int) -> Data:
    data = graph(nodes, edges)
    data.edge_label_index = torch.randint(0, nodes, (2, edges // 2))
    return data


def score(z: Tensor, pairs: Tensor) -> Tensor:
    return (z[pairs[0]] * z[pairs[1]]).sum(-1)


def as_many_as_edges(z: Tensor, data: Data) -> Tensor:
    drawn = negative_sampling(data.edge_index, z.size(0))
    return F.softplus(-score(z, data.edge_index)).mean() + F.softplus(score(z, drawn)).mean()


def as_many_as_labels(z: Tensor, data: Data) -> Tensor:
    """As PyG's example of link prediction has them, with further edges that are given."""
    given = data.edge_label_index
    drawn = negative_sampling(data.edge_index, z.size(0), given.size(1), method="dense")
    pairs = torch.cat([given, drawn], dim=-1)
    label = torch.cat([z.new_ones(given.size(1)), z.new_zeros(drawn.size(1))])
    return F.binary_cross_entropy_with_logits(score(z, pairs), label)


def twice(z: Tensor, data: Data) -> Tensor:
    first = negative_sampling(data.edge_index, z.size(0), 30)
    second = negative_sampling(data.edge_index, z.size(0), 2.0)
    found = score(z, second).sigmoid().mean() + score(z, first).max()
    return found - score(z, data.edge_index).sigmoid().mean()


def both_directions(z: Tensor, data: Data) -> Tensor:
    drawn = negative_sampling(data.edge_index, z.size(0), 31, force_undirected=True)
    bad = (z[drawn[0]] * z[drawn[1]].tanh()).sum(-1)
    return F.softplus(-score(z, data.edge_index)).mean() + F.softplus(bad).mean()


LOSSES = (as_many_as_edges, as_many_as_labels, twice, both_directions)
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "sage": lambda: G.SAGEConv(WIDTH, 4),
    "gat": lambda: G.GATConv(WIDTH, 4),
    "gcn": lambda: G.GCNConv(WIDTH, 4),
}


def trained(
    model: nn.Module, data: Data, loss: Callable[[Tensor, Data], Tensor]
) -> tuple[list[float], list[Tensor]]:
    step = gnnc.train_step(
        lambda: loss(model(data.x, data.edge_index), data),
        torch.optim.SGD(model.parameters(), lr=0.05),
    )
    losses = [step().item() for _ in range(4)]
    return losses, [p.detach().clone() for p in model.parameters()]


def in_torch(
    model: nn.Module, data: Data, loss: Callable[[Tensor, Data], Tensor]
) -> tuple[list[float], list[Tensor]]:
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), list[float]()
    for _ in range(4):
        optimizer.zero_grad()
        value = loss(model(data.x, data.edge_index), data)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses, [p.detach() for p in model.parameters()]


@pytest.mark.parametrize(
    ("ranks", "layer", "loss", "nodes"),
    [
        (2, "sage", as_many_as_labels, 24),
        *(pytest.param(3, n, f, 24, marks=LONG) for n in LAYERS for f in LOSSES),
        pytest.param(4, "sage", twice, 3, marks=LONG),
        pytest.param(4, "sage", both_directions, 4, marks=LONG),
        pytest.param(4, "gcn", as_many_as_edges, 4, marks=LONG),
    ],
)
def test_they_are_those_of_one_process(
    ranks: int, layer: str, loss: Callable[[Tensor, Data], Tensor], nodes: int
) -> None:
    data = labelled(nodes, 3 * nodes if nodes > 4 else 5)
    torch.manual_seed(2)
    model = LAYERS[layer]().double()
    models = [copy.deepcopy(model) for _ in range(ranks)]
    random.seed(5)
    losses, parameters = in_torch(model, data, loss)
    random.seed(5)

    def work(c: Any) -> Any:
        mine, part = gnnc.distribute(models[c.rank], data)
        return trained(mine, part, loss)

    every = virtual.run(ranks, work)
    for found, mine in every:
        torch.testing.assert_close(found, losses, rtol=0, atol=1e-10)
        for a, b, c in zip(mine, parameters, every[0][1], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
            assert torch.equal(a, c)


@pytest.mark.parametrize("both", [False, True])
def test_each_rank_has_those_that_lead_to_its_nodes(both: bool) -> None:
    data, model = graph(30, 110), nn.Linear(1, 1)
    random.seed(3)
    wanted = negative_sampling(data.edge_index, 30, 60, force_undirected=both)
    random.seed(3)

    def work(_: Any) -> Tensor:
        _, part = gnnc.distribute(model, data)
        nodes = [part.num_nodes]
        made = drawn_pairs.negative_sampling(part.edge_index, nodes, 60, both=both)
        known = cut_tensors.edges_of(made, "made")
        assert known.total == wanted.size(1) and known.stops[-1] == made.size(1)
        assert (made[0, : known.stops[0]] < part.num_nodes).all()
        assert (made[0, known.stops[0] :] >= part.num_nodes).all()
        numbers = torch.from_numpy(known.numbers)
        assert torch.equal(known.numbers_of_ends(made.t()).t(), wanted[:, numbers])
        assert (part.n_id[made[1]] == wanted[1, numbers]).all()
        return numbers

    every = torch.cat(virtual.run(3, work))
    assert torch.equal(every.sort().values, torch.arange(wanted.size(1)))


class OfTwoKinds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = G.SAGEConv((3, 5), 4)
        self.user = nn.Linear(3, 4)

    def forward(self, x: dict[str, Tensor], edges: Tensor) -> Tensor:
        items, users = self.layer((x["user"], x["item"]), edges), self.user(x["user"])
        sizes = users.size(0), items.size(0)
        drawn = negative_sampling(edges, sizes, num_neg_samples=40)
        good, bad = ((users[e[0]] * items[e[1]]).sum(-1) for e in (edges, drawn))
        return F.softplus(-good).mean() + F.softplus(bad).mean()


@LONG
def test_of_nodes_of_two_kinds() -> None:
    torch.manual_seed(0)
    data = HeteroData()
    data["user"].x = torch.randn(9, 3, dtype=torch.float64)
    data["item"].x = torch.randn(14, 5, dtype=torch.float64)
    ends = torch.stack([torch.randint(0, 9, (40,)), torch.randint(0, 14, (40,))])
    data["user", "likes", "item"].edge_index = ends
    model = OfTwoKinds().double()
    models = [copy.deepcopy(model) for _ in range(3)]
    random.seed(5)
    wanted = model(data.x_dict, ends)
    wanted.backward()
    random.seed(5)

    def work(c: Any) -> Any:
        mine, part = gnnc.distribute(models[c.rank], data)
        found = mine(part.x_dict, part["user", "likes", "item"].edge_index)
        found.backward()
        return found.detach(), [p.grad for p in mine.parameters()]

    for found, grads in virtual.run(3, work):
        torch.testing.assert_close(found, wanted.detach(), rtol=1e-11, atol=1e-11)
        for a, p in zip(grads, model.parameters(), strict=True):
            torch.testing.assert_close(a, p.grad, rtol=1e-11, atol=1e-11)


def test_what_is_refused() -> None:
    data, model = graph(20, 60), nn.Linear(1, 1)

    def work(c: Any) -> None:
        _, part = gnnc.distribute(model, data)
        with pytest.raises(ValueError, match="pairs of 21 nodes are asked for, and there are 20"):
            drawn_pairs.negative_sampling(part.edge_index, [21], 5)
        with pytest.raises(Disagreement, match="the pairs that are drawn"):
            drawn_pairs.negative_sampling(part.edge_index, [20], 5 + c.rank)

    def in_chunks(_: Any) -> None:
        _, part = gnnc.distribute(model, data, chunks=2)
        with pytest.raises(ValueError, match="rows cross in several chunks"):
            drawn_pairs.negative_sampling(part.edge_index, [20], 5)

    virtual.run(2, work)
    virtual.run(2, in_chunks)
