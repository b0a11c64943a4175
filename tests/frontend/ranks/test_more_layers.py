"""Layers over ranks against torch: what each rank gives of its nodes, all gradients, and steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import nn as G
from torch_geometric.data import Data
from torch_geometric.utils import add_self_loops

import gnnc
from gnnc.runtime.ranks import virtual

from .cut_models import CLASSES, RELATIONS, WIDTH, graph

LONG = pytest.mark.long
FEATURES = 4
DEGREES = torch.tensor([1, 3, 5, 4, 2, 1])


class LearnedWeights(nn.Module):
    """GCN with weights that a network makes of an edge's features; loops keep the last one's."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.layer = nn.Linear(FEATURES, 1), G.GCNConv(WIDTH, CLASSES)

    def forward(self, x: Tensor, edges: Tensor, features: Tensor, _: Tensor) -> Tensor:
        return self.layer(x, edges, self.weight(features).sigmoid().squeeze(-1))


class Residual(nn.Module):
    """GCN2's layers, which read the first features too."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.out = nn.Linear(WIDTH, 6), nn.Linear(6, CLASSES)
        self.layers = nn.ModuleList([G.GCN2Conv(6, 0.1, 0.5, k + 1) for k in range(2)])

    def forward(self, x: Tensor, edges: Tensor, *_: Tensor) -> Tensor:
        x = first = self.first(x).relu()
        for layer in self.layers:
            x = layer(x, first, edges).relu()
        return self.out(x)


class Plain(nn.Module):
    """A layer that takes no features of edges."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, edges: Tensor, *_: Tensor) -> Tensor:
        return self.layer(x, edges)


class Featured(Plain):
    """A layer that takes features of edges."""

    def forward(self, x: Tensor, edges: Tensor, *others: Tensor) -> Tensor:
        return self.layer(x, edges, others[0])


class MeansByRelation(G.MessagePassing):
    """A mean and a product for each type of edges, in a loop over masks."""

    def __init__(self) -> None:
        super().__init__(aggr="mean")
        self.layers = nn.ModuleList([nn.Linear(WIDTH, CLASSES) for _ in range(RELATIONS)])

    def forward(self, x: Tensor, edges: Tensor, _: Tensor, types: Tensor) -> Tensor:
        out = x.new_zeros(x.size(0), CLASSES)
        for k, layer in enumerate(self.layers):
            out = out + layer(self.propagate(edges[:, types == k], x=x))
        return out

    def message(self, x_j: Tensor) -> Tensor:
        return x_j


class CountedLoops(nn.Module):
    """Loops of the nodes up to the last one with an edge, with features of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = G.GINEConv(nn.Linear(WIDTH, CLASSES), edge_dim=FEATURES)

    def forward(self, x: Tensor, edges: Tensor, features: Tensor, _: Tensor) -> Tensor:
        return self.layer(x, *add_self_loops(edges, features, fill_value=0.5))


class Propagated(nn.Module):
    """A network, and then its results among neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.then = nn.Linear(WIDTH, CLASSES), G.APPNP(3, 0.1)

    def forward(self, x: Tensor, edges: Tensor, *_: Tensor) -> Tensor:
        return self.then(self.first(x).tanh(), edges)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "learned-weights": LearnedWeights,
    "pdn": lambda: Featured(G.PDNConv(WIDTH, CLASSES, FEATURES, 8)),
    "appnp": Propagated,
    "gcn2": Residual,
    "arma": lambda: Plain(G.ARMAConv(WIDTH, CLASSES, 2, 2)),
    "pna": lambda: Featured(
        G.PNAConv(
            *(WIDTH, CLASSES, ["mean", "min", "max", "std"], ["identity", "amplification"]),
            *(DEGREES, FEATURES),
        )
    ),
    "means-by-relation": MeansByRelation,
    # edges are loops or not, and weights of loops alone are changed
    "cheb": lambda: Plain(G.ChebConv(WIDTH, CLASSES, 3)),
    # as many loops as the greatest number of a node with an edge says
    "eg": lambda: Plain(G.EGConv(WIDTH, CLASSES, ["sum", "max", "std"], num_heads=1)),
    "counted-loops": CountedLoops,
    # the second ends of edges are hyperedges, as many as their greatest number says
    "hypergraph": lambda: Plain(G.HypergraphConv(WIDTH, CLASSES)),
    "cluster-gcn": lambda: Plain(G.ClusterGCNConv(WIDTH, CLASSES, diag_lambda=0.5)),
}


def featured(nodes: int, edges: int) -> Data:
    data = graph(nodes, edges, hub=True)
    data.edge_attr = torch.randn(edges, FEATURES, dtype=torch.float64)
    return data


def outputs(model: nn.Module, data: Data) -> Tensor:
    return model(data.x, data.edge_index, data.edge_attr, data.edge_type)


def gradients(model: nn.Module, data: Data, weights: Tensor) -> tuple[Tensor, list[Any]]:
    """What a model gives, and the gradients of its sum with these weights."""
    given: Sequence[Tensor] = (data.x, data.edge_attr)
    for x in given:
        x.requires_grad_()
    out = outputs(model, data)
    (out * weights).sum().backward()
    grads = [p.grad for p in model.parameters()]
    rows = [x.grad for x in given]
    for x in given:
        x.requires_grad_(False)
        x.grad = None
    return out.detach(), [grads, *rows]


def loss_of(model: nn.Module, data: Data) -> Tensor:
    return F.cross_entropy(outputs(model, data)[data.train_mask], data.y[data.train_mask])


def close(a: Any, b: Any) -> None:
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "ranks", "nodes"),
    [
        ("learned-weights", 2, 20),
        ("learned-weights", 3, 20),
        ("eg", 3, 20),
        ("hypergraph", 3, 20),
        *(
            pytest.param(n, r, 20, marks=LONG)
            for n in MODELS
            for r in (2, 3)
            if n != "learned-weights" and (n, r) not in (("eg", 3), ("hypergraph", 3))
        ),
        # a hypergraph is asked whether it has edges, which a rank may have none of
        *(pytest.param(n, 4, 3, marks=LONG) for n in MODELS if n != "hypergraph"),
    ],
)
def test_they_are_those_of_torch(name: str, ranks: int, nodes: int) -> None:
    data = featured(nodes, 4 * nodes)
    torch.manual_seed(1)
    model, weights = MODELS[name]().double(), torch.randn(nodes, CLASSES, dtype=torch.float64)
    models = [copy.deepcopy(model) for _ in range(2 * ranks)]
    out, (grads, of_x, of_edges) = gradients(copy.deepcopy(model), data, weights)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01), list[float]()
    for _ in range(3):
        optimizer.zero_grad()
        loss = loss_of(model, data)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    def work(c: Any) -> Any:
        mine, part = gnnc.distribute(models[c.rank], data)
        found = gradients(mine, part, weights[part.n_id])
        mine, again = gnnc.distribute(models[ranks + c.rank], data)
        step = gnnc.train_step(
            lambda: loss_of(mine, again), torch.optim.Adam(mine.parameters(), lr=0.01)
        )
        return part, found, [step().item() for _ in range(3)], mine

    for part, (mine, (own, own_x, own_edges)), steps, trained in virtual.run(ranks, work):
        close(mine, out[part.n_id])
        for a, b in zip(own, grads, strict=True):
            close(a, b)
        close(own_x, of_x[part.n_id])
        if of_edges is not None:
            close(own_edges, of_edges[part.e_id])
        close(steps, losses)
        for a, b in zip(trained.parameters(), model.parameters(), strict=True):
            close(a, b)
