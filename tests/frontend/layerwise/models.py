"""Models for whole graphs, and their arguments, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn

NODES, EDGES, HUB, ISOLATED = 40, 150, 5, 3


@dataclass
class Case:
    """A model and the arguments of a call."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Layers(nn.Module):
    """Convolutions with BatchNorm and a skip connection around each."""

    def __init__(self, *convs: nn.Module) -> None:
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.norm = nn.BatchNorm1d(8)
        self.skip = nn.Linear(6, 8)
        self.norm.running_mean = torch.randn(8)
        self.norm.running_var = torch.rand(8) + 0.5

    def forward(self, x: Tensor, *graph: Tensor, **more: Tensor) -> Tensor:
        first, *middle, last = self.convs
        h = self.norm(first(x, *graph, **more)).relu() + self.skip(x)
        for conv in middle:
            h = conv(h, *graph, **more).relu() + h
        return last(h, *graph, **more)


class Hetero(nn.Module):
    """Two layers over two kinds of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = self.layer(6, 4, 8), self.layer(8, 8, 5)

    @staticmethod
    def layer(a: int, b: int, out: int) -> nn.Module:
        return pyg.HeteroConv(
            {
                ("a", "to", "b"): pyg.SAGEConv((a, b), out),
                ("b", "rev", "a"): pyg.GATConv((b, a), out, add_self_loops=False),
                ("a", "in", "a"): pyg.GCNConv(a, out),
            }
        )

    def forward(self, x: dict[str, Tensor], edges: dict[Any, Tensor]) -> dict[str, Tensor]:
        return self.second({k: v.relu() for k, v in self.first(x, edges).items()}, edges)


class OverAll(nn.Module):
    """Statistics of the batch, a softmax and sums over all nodes, also as a result."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GCNConv(6, 8), pyg.SAGEConv(8, 3)
        self.norm = nn.BatchNorm1d(8, track_running_stats=False)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.norm(self.first(x, edges))
        h = h * torch.softmax(h, 0)
        return self.second(h @ (h.t() @ h) - h.mean(0), edges), h.sum(0), h.amax(0)


class OfEdges(nn.Module):
    """Results on edges, with loops behind them, and features of edges through layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GATConv(6, 6)
        self.message, self.out = nn.Linear(5, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor, edges: Tensor, features: Tensor) -> tuple[Tensor, ...]:
        x, (ends, weights) = self.conv(x, edges, return_attention_weights=True)
        f = self.message(features)
        for _ in range(2):
            f = f + torch.tanh(x[edges[0]] + f + x[edges[1]])
            x = x + torch.zeros_like(x).index_add_(0, edges[1], f)
        return self.out(x), f, weights, ends


class Pooled(nn.Module):
    """Nodes that read their graph's mean, and a maximum for each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.SAGEConv(6, 4), pyg.SAGEConv(4, 4)

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        h = self.first(x, edges)
        h = self.second(h + pyg.global_mean_pool(h, batch)[batch], edges)
        return pyg.global_max_pool(h, batch)


def edge_index(sources: int = NODES, targets: int = NODES, count: int = EDGES) -> Tensor:
    """Random edges: a third end at one node, and none touches the last nodes."""
    ends = torch.stack(
        [torch.randint(0, sources - ISOLATED, (count,)), torch.randint(0, targets - 3, (count,))]
    )
    ends[1, : count // 3] = HUB
    return ends


def layers_of(conv: Callable[..., nn.Module], *more: Any, **options: Any) -> nn.Module:
    return Layers(*(conv(a, b, *more, **options) for a, b in ((6, 8), (8, 8), (8, 3))))


def heads_of(conv: Callable[..., nn.Module], **options: Any) -> nn.Module:
    first, second = (conv(a, 4, heads=2, **options) for a in (6, 8))
    return Layers(first, second, conv(8, 3, **options))


def case(name: str) -> Case:
    """A model in double precision, in evaluation, with its arguments."""
    torch.manual_seed(len(name))
    x, edges = torch.randn(NODES, 6), edge_index()
    features, relation = torch.randn(EDGES, 5), torch.randint(0, 3, (EDGES,))
    nodes = {"a": x, "b": torch.randn(23, 4)}
    relations = {
        ("a", "to", "b"): edge_index(NODES, 23, 80),
        ("b", "rev", "a"): edge_index(23, NODES, 60),
        ("a", "in", "a"): edges,
    }
    weight = {"edge_weight": torch.rand(EDGES)}
    made: dict[str, Callable[[], Case]] = {
        "gcn": lambda: Case(layers_of(pyg.GCNConv), (x, edges)),
        "gcn weights": lambda: Case(layers_of(pyg.GCNConv), (x, edges), weight),
        "sage": lambda: Case(layers_of(pyg.SAGEConv, aggr=["mean", "max"]), (x, edges)),
        "gat": lambda: Case(heads_of(pyg.GATConv), (x, edges)),
        "gat features": lambda: Case(
            heads_of(pyg.GATConv, edge_dim=5), (x, edges), {"edge_attr": features}
        ),
        "gatv2": lambda: Case(heads_of(pyg.GATv2Conv), (x, edges)),
        "rgcn": lambda: Case(layers_of(pyg.RGCNConv, 3, num_bases=2), (x, edges, relation)),
        "hetero": lambda: Case(Hetero(), (nodes, relations)),
        "hgt": lambda: Case(
            pyg.HGTConv({"a": 6, "b": 4}, 8, (["a", "b"], list(relations)), 2), (nodes, relations)
        ),
        "cheb": lambda: Case(pyg.ChebConv(6, 4, 3), (x, edges)),
        "other way": lambda: Case(pyg.SAGEConv(6, 4, flow="target_to_source"), (x, edges)),
        "jumping": lambda: Case(pyg.GCN(6, 8, 3, 3, jk="cat", norm="batch"), (x, edges)),
        "over all": lambda: Case(OverAll(), (x, edges)),
        "of edges": lambda: Case(OfEdges(), (x, edges, features)),
        "pooled": lambda: Case(Pooled(), (x, edges, torch.arange(NODES) // 9)),
        "no edge": lambda: Case(layers_of(pyg.GATConv), (x, edges[:, :0])),
        "no node": lambda: Case(layers_of(pyg.SAGEConv), (x[:0], edges[:, :0])),
    }
    out = made[name]()
    out.model.eval()
    return out


CASES = [
    "gcn",
    "gcn weights",
    "sage",
    "gat",
    "gat features",
    "gatv2",
    "rgcn",
    "hetero",
    "hgt",
    "cheb",
    "other way",
    "jumping",
    "over all",
    "of edges",
    "pooled",
    "no edge",
    "no node",
]
