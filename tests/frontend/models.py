"""Models whose compiled calls have to equal their own, with the arguments that they take."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, MessagePassing, SAGEConv

import gnnc

from .equality import Edges, random_edges


class Edgewise(MessagePassing):
    """A user's own layer: both ends and the edge's attributes."""

    def __init__(self, a: int, b: int, aggr: str) -> None:
        super().__init__(aggr=aggr)
        self.lin = nn.Linear(2 * a + 2, b)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, edge_attr=edge_attr)

    def message(self, x_i: Tensor, x_j: Tensor, edge_attr: Tensor) -> Tensor:
        return F.leaky_relu(self.lin(torch.cat([x_i, x_j - x_i, edge_attr], dim=-1)), 0.1)


class Gated(MessagePassing):
    """Messages of another nature, and an update."""

    def __init__(self, a: int, b: int, flow: str = "source_to_target") -> None:
        super().__init__(aggr="add", flow=flow)
        self.gate, self.lin = nn.Linear(a, b), nn.Linear(a, b, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, h=self.lin(x), gate=self.gate(x))

    def message(self, h_j: Tensor, gate_i: Tensor, gate_j: Tensor) -> Tensor:
        return torch.sigmoid(gate_i + gate_j) * h_j

    def update(self, aggregated: Tensor, h: Tensor) -> Tensor:
        return F.elu(aggregated) + torch.tanh(h)


def mlp(a: int, b: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU(), nn.Linear(b, b))


class Stack(nn.Module):
    """Layers with a normalisation, an activation, dropout and a residual around each."""

    def __init__(
        self,
        layers: list[nn.Module],
        act: Callable[[Tensor], Tensor] = F.relu,
        norms: list[nn.Module] | None = None,
        residual: bool = False,
        last: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(layers)
        self.norms = nn.ModuleList(norms or [])
        self.act, self.residual, self.last = act, residual, last

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        for k, conv in enumerate(self.convs):
            y = conv(x, *edges)
            if k + 1 < len(self.convs):
                y = self.norms[k](y) if len(self.norms) else y
                y = F.dropout(self.act(y), 0.0, self.training)
            x = x + y if self.residual and x.shape == y.shape else y
        return x if self.last is None else self.last(x)


@dataclass(frozen=True)
class Case:
    """`make(a, b)` builds a model from width a to b; `takes` names its arguments."""

    name: str
    make: Callable[[int, int], nn.Module]
    takes: str = "x"
    evaluate: bool = False

    @property
    def bipartite(self) -> bool:
        return self.takes == "pair"

    def model(self, a: int, b: int, dtype: torch.dtype) -> nn.Module:
        torch.manual_seed(3)
        model = self.make(a, b).to(dtype)
        with torch.no_grad():
            for p in model.parameters():  # biases start as zeros, which hides mistakes
                p.add_(0.1 * torch.randn_like(p))
            for b in model.buffers():
                if b.is_floating_point():
                    b.add_(torch.rand_like(b))
        return model.train(not self.evaluate)

    def arguments(self, g: Edges, width: int, dtype: torch.dtype, seed: int = 0) -> tuple[Any, ...]:
        generator = torch.Generator().manual_seed(seed + 1)

        def rows(*shape: int) -> Tensor:
            x = torch.randn(*shape, generator=generator, dtype=torch.float64)
            return x.to(dtype).requires_grad_()

        x = rows(g.sources, width)
        if self.takes == "pair":
            return (x, rows(g.targets, width)), g.index
        if self.takes == "weight":
            weight = torch.rand(g.count, generator=generator, dtype=torch.float64) + 0.1
            return x, g.index, weight.to(dtype).requires_grad_()
        if self.takes == "attr":
            return x, g.index, rows(g.count, 2)
        return x, g.index


def two_gcn(**options: Any) -> Callable[[int, int], nn.Module]:
    def make(a: int, b: int) -> nn.Module:
        return Stack([GCNConv(a, 16, **options), GCNConv(16, b, **options)])

    return make


CASES = [
    Case("gcn", GCNConv),
    Case("gcn-improved", lambda a, b: GCNConv(a, b, improved=True)),
    Case("gcn-plain", lambda a, b: GCNConv(a, b, normalize=False, bias=False)),
    Case("gcn-no-loops", lambda a, b: GCNConv(a, b, add_self_loops=False)),
    Case("gcn-weight", GCNConv, "weight"),
    Case("gcn-weight-no-loops", lambda a, b: GCNConv(a, b, add_self_loops=False), "weight"),
    Case("gcn-weight-plain", lambda a, b: GCNConv(a, b, normalize=False), "weight"),
    Case("gcn-flow", lambda a, b: GCNConv(a, b, flow="target_to_source")),
    Case("sage-mean", SAGEConv),
    Case("sage-max", lambda a, b: SAGEConv(a, b, aggr="max")),
    Case("sage-sum", lambda a, b: SAGEConv(a, b, aggr="sum")),
    Case("sage-min", lambda a, b: SAGEConv(a, b, aggr="min")),
    Case("sage-pool", lambda a, b: SAGEConv(a, b, aggr="max", project=True)),
    Case("sage-normalize", lambda a, b: SAGEConv(a, b, normalize=True)),
    Case("sage-no-root", lambda a, b: SAGEConv(a, b, root_weight=False, bias=False)),
    Case("sage-pair", lambda a, b: SAGEConv((a, a), b), "pair"),
    Case("sage-pair-max", lambda a, b: SAGEConv((a, a), b, aggr="max", project=True), "pair"),
    Case("gin", lambda a, b: GINConv(mlp(a, b))),
    Case("gin-train-eps", lambda a, b: GINConv(mlp(a, b), eps=0.3, train_eps=True)),
    Case("gin-eval", lambda a, b: GINConv(mlp(a, b), eps=0.3), evaluate=True),
    Case("own-add", lambda a, b: Edgewise(a, b, "add"), "attr"),
    Case("own-mean", lambda a, b: Edgewise(a, b, "mean"), "attr"),
    Case("own-max", lambda a, b: Edgewise(a, b, "max"), "attr"),
    Case("own-gated", Gated),
    Case("own-gated-flow", lambda a, b: Gated(a, b, flow="target_to_source")),
    Case("gcn-gcn", two_gcn()),
    Case("gcn-gcn-weight", two_gcn(), "weight"),
    Case(
        "gcn-batchnorm",
        lambda a, b: Stack(
            [GCNConv(a, 16), GCNConv(16, 16), GCNConv(16, b)],
            norms=[nn.BatchNorm1d(16), nn.BatchNorm1d(16)],
            residual=True,
            last=lambda y: F.log_softmax(y, dim=-1),
        ),
    ),
    Case(
        "gcn-batchnorm-eval",
        lambda a, b: Stack([GCNConv(a, 16), GCNConv(16, b)], norms=[nn.BatchNorm1d(16)]),
        evaluate=True,
    ),
    Case(
        "sage-elu",
        lambda a, b: Stack([SAGEConv(a, 12), SAGEConv(12, 12), SAGEConv(12, b)], F.elu, None, True),
    ),
    Case(
        "sage-leaky",
        lambda a, b: Stack([SAGEConv(a, 12, aggr="max"), SAGEConv(12, b)], F.leaky_relu),
    ),
    Case(
        "gin-gin",
        lambda a, b: Stack(
            [GINConv(mlp(a, 12), train_eps=True), GINConv(mlp(12, b))],
            last=lambda y: F.log_softmax(y, dim=1),
        ),
    ),
]
BY_NAME = {c.name: c for c in CASES}


# ---------------------------------------------------------------- one small model

NODES, EDGES, WIDTH, CLASSES = 30, 90, 8, 4


class Net(nn.Module):
    """Two GCN layers."""

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.first, self.second, self.p = GCNConv(WIDTH, 8), GCNConv(8, CLASSES), p

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.first(x, edge_index).relu(), self.p, self.training)
        return self.second(h, edge_index)


def graph(seed: int = 0, nodes: int = NODES, edges: int = EDGES) -> tuple[Tensor, Tensor]:
    """Features and a random multigraph."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, WIDTH, generator=generator)
    return x, random_edges(seed, nodes, nodes, edges, "uniform").index


def pair(make: Callable[[], nn.Module] = Net) -> tuple[nn.Module, nn.Module]:
    """An eager model and the same compiled."""
    torch.manual_seed(1)
    eager = make()
    return eager, gnnc.compile(copy.deepcopy(eager))


def close(a: Tensor, b: Tensor) -> bool:
    """Equal but for rounding in float32."""
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)
