"""Trainings in many forms, and graphs to train on."""

# ruff: noqa: F722, F821, UP037 (names of widths, and functions of the loop language)

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, RGCNConv, SAGEConv

import gnnc
from gnnc import Graph, Nodes, Weights
from gnnc.frontend.torch.training.data import GraphArrays

FEATURES, HIDDEN, CLASSES, TYPES = 12, 8, 4, 3


def graph(
    seed: int = 0, nodes: int = 120, edges: int = 600, dtype: torch.dtype = torch.float32
) -> GraphArrays:
    """A random multigraph with loops, types of edges, and two ways to say where the loss is."""
    g = torch.Generator().manual_seed(seed)
    return GraphArrays(
        {
            "x": torch.randn(nodes, FEATURES, dtype=dtype, generator=g),
            "edge_index": torch.randint(nodes, (2, edges), generator=g),
            "edge_type": torch.randint(TYPES, (edges,), generator=g),
            "y": torch.randint(CLASSES, (nodes,), generator=g),
            "train_mask": torch.rand(nodes, generator=g) < 0.3,
            "chosen": torch.randperm(nodes, generator=g)[: nodes // 4],
        }
    )


def sparse_graph(seed: int = 0) -> GraphArrays:
    """Features that are taken as sparse: enough numbers, nearly all of them 0."""
    g = torch.Generator().manual_seed(seed)
    found = graph(seed, nodes=700)
    x = torch.rand(700, 500, generator=g)
    arrays = {name: found[name] for name in found}
    return GraphArrays(arrays | {"x": x * (torch.rand(x.shape, generator=g) < 0.01)})


def mlp(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(), nn.Linear(outputs, outputs)
    )


LAYERS: dict[str, Any] = {
    "gcn": GCNConv,
    "sage": SAGEConv,
    "gin": lambda a, b: GINConv(mlp(a, b)),
    "gat": lambda a, b: GATConv(a, b, 2, concat=False),
    "rgcn": lambda a, b: RGCNConv(a, b, TYPES),
}


class Net(nn.Module):
    """Two layers, with dropout in front of each."""

    def __init__(self, kind: str, features: int, dropout: float) -> None:
        super().__init__()
        self.first = LAYERS[kind](features, HIDDEN)
        self.second = LAYERS[kind](HIDDEN, CLASSES)
        self.dropout = dropout

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        x = F.dropout(self.first(x, *edges).relu(), self.dropout, self.training)
        return self.second(x, *edges)


@gnnc.training
def masked(data, kind, dropout=0.5, optimizer="Adam", epochs=20, **options):
    model = Net(kind, data.num_features, dropout).to(data.x.dtype)
    update = getattr(torch.optim, optimizer)(model.parameters(), **{"lr": 0.01, **options})
    for epoch in range(epochs):
        model.train()
        update.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        update.step()
        print(epoch, loss.item())


@gnnc.training
def indexed(data, bound=0.5, epochs=20):
    model = Net("sage", data.num_features, 0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, epochs + 1):
        optimizer.zero_grad()
        out = model(data["x"], data.edge_index)[data.chosen]
        loss = F.cross_entropy(out, data.y[data.chosen])
        right = (out.argmax(1) == data.y[data.chosen]).float().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), bound)
        optimizer.step()
        if epoch % 5 == 0 or epoch == epochs - 1:
            print(
                f"{epoch:3d} of {epochs}: loss {loss.item():.5f},",
                "right",
                float(right),
                -epoch // 2,
            )


@gnnc.training
def relational(data, epochs=20):
    model = Net("rgcn", data.num_features, 0.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index, data.edge_type)
        loss = F.cross_entropy(out, data.y)
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


@gnnc.program
def rgat(
    g: Graph,
    x: Nodes["in"],
    W: Weights["etype", "in", "out"],
    a_src: Weights["etype", "out"],
    a_dst: Weights["etype", "out"],
):
    for e in g.edges():
        e["z"] = e.src.x @ W[e.etype]
        score = dot(e["z"], a_src[e.etype]) + dot(e.dst.x @ W[e.etype], a_dst[e.etype])
        e["alpha"] = edge_softmax(leaky_relu(score, 0.2))
    for n in g.nodes():
        n["out"] = 0.0
        for e in n.incoming_edges():
            n["out"] += e["alpha"] * e["z"]
    return n["out"]


@gnnc.training
def loops(data, epochs=20):
    g = gnnc.Graph(data.edge_index, data.num_nodes, data.edge_type, num_edge_types=TYPES)
    W = nn.init.xavier_uniform_(nn.Parameter(torch.empty(TYPES, data.num_features, CLASSES)))
    a, b = (nn.init.xavier_uniform_(nn.Parameter(torch.empty(TYPES, CLASSES))) for _ in range(2))
    optimizer = torch.optim.Adam([W, a, b], lr=0.01)
    for epoch in range(epochs):
        optimizer.zero_grad()
        out = rgat(g, data.x, W, a, b)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())
