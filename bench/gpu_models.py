"""The models that bench/gpu.py checks: two layers of each kind, on small graphs with a few nodes of
many edges and one of none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    HGTConv,
    RGATConv,
    RGCNConv,
    SAGEConv,
    TransformerConv,
)

NODES, EDGES, RELATIONS = 300, 3000, 5
FEATURES, HIDDEN, CLASSES, HEADS = 20, 32, 7, 4
METADATA = (["a", "b"], [("a", "to", "b"), ("b", "to", "a"), ("a", "with", "a")])


class Layers(nn.Module):
    """Layers of one kind with ELU between them; a call takes what a layer takes."""

    def __init__(self, make: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = make(FEATURES, HIDDEN), make(HIDDEN, CLASSES)

    def forward(self, x: Tensor, *graph: Tensor) -> Tensor:
        return self.second(nn.functional.elu(self.first(x, *graph)), *graph)


class Attention(nn.Module):
    """Two layers with heads, the second with one."""

    def __init__(self, make: type[nn.Module]) -> None:
        super().__init__()
        self.first = make(FEATURES, HIDDEN // HEADS, heads=HEADS)
        self.second = make(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(nn.functional.elu(self.first(x, edge_index)), edge_index)


class Types(nn.Module):
    """A layer on dictionaries by type."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = HGTConv(FEATURES, HIDDEN, METADATA, heads=HEADS)

    def forward(self, x: dict[str, Tensor], edges: dict[tuple[str, str, str], Tensor]) -> Any:
        return self.layer(x, edges)


def _gin(inputs: int, outputs: int) -> nn.Module:
    linear = nn.Linear(inputs, outputs), nn.Linear(outputs, outputs)
    return GINConv(nn.Sequential(linear[0], nn.ReLU(), linear[1]), train_eps=True)


def _ends(count: int, sources: int, destinations: int) -> Tensor:
    """Edges of which many end at few nodes, and none at the last."""
    hubs = torch.rand(count) ** 3
    ends = (hubs * (destinations - 1)).long()
    return torch.stack([torch.randint(sources, (count,)), ends])


def _plain() -> tuple[Any, ...]:
    return torch.randn(NODES, FEATURES), _ends(EDGES, NODES, NODES)


def _typed() -> tuple[Any, ...]:
    return *_plain(), torch.randint(RELATIONS, (EDGES,))


def _by_type() -> tuple[Any, ...]:
    counts = {"a": NODES, "b": NODES // 2}
    x = {kind: torch.randn(n, FEATURES) for kind, n in counts.items()}
    edges = {kind: _ends(EDGES // 3, counts[kind[0]], counts[kind[2]]) for kind in METADATA[1]}
    return x, edges


@dataclass(frozen=True)
class Checked:
    """How a model is made, and what it is called on; both draw from torch's generator."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...]] = _plain


CHECKS: dict[str, Checked] = {
    "gcn": Checked(lambda: Layers(GCNConv)),
    "sage-mean": Checked(lambda: Layers(SAGEConv)),
    "sage-max": Checked(lambda: Layers(lambda a, b: SAGEConv(a, b, aggr="max"))),
    "gin": Checked(lambda: Layers(_gin)),
    "gat": Checked(lambda: Attention(GATConv)),
    "gatv2": Checked(lambda: Attention(GATv2Conv)),
    "transformer": Checked(lambda: Attention(TransformerConv)),
    "rgcn": Checked(lambda: Layers(lambda a, b: RGCNConv(a, b, RELATIONS)), _typed),
    "rgat": Checked(lambda: Layers(lambda a, b: RGATConv(a, b, RELATIONS)), _typed),
    "hgt": Checked(Types, _by_type),
}
