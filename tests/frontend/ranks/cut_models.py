"""Models and graphs that train alike on one rank and on several."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch_geometric import nn as G
from torch_geometric.data import Data

import gnnc
from gnnc.frontend.torch.calls import bound_program
from gnnc.frontend.torch.ranks import ranked_program
from gnnc.runtime.ranks import virtual

WIDTH, HIDDEN, CLASSES, RELATIONS = 6, 8, 3, 4

MakeOptimizer = Callable[[Any], Optimizer]


def perceptron(a: int, b: int) -> nn.Module:
    return nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b))


LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "gcn": G.GCNConv,
    "sage": G.SAGEConv,
    "sage-max": lambda a, b: G.SAGEConv(a, b, aggr="max"),
    "gin": lambda a, b: G.GINConv(perceptron(a, b)),
    "gat": lambda a, b: G.GATConv(a, b, heads=2, concat=False),
    "gatv2": lambda a, b: G.GATv2Conv(a, b, heads=2, concat=False),
    "transformer": lambda a, b: G.TransformerConv(a, b, heads=2, concat=False),
    "rgcn": lambda a, b: G.RGCNConv(a, b, RELATIONS, num_bases=2),
    "rgat": lambda a, b: G.RGATConv(a, b, RELATIONS),
}


class Net(nn.Module):
    """Two layers, with batch normalisation and dropout between them."""

    def __init__(self, name: str, norm: bool) -> None:
        super().__init__()
        make = LAYERS[name]
        self.first, self.second = make(WIDTH, HIDDEN), make(HIDDEN, CLASSES)
        self.norm = nn.BatchNorm1d(HIDDEN) if norm else nn.Identity()
        self.drop = nn.Dropout(0.4)

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        return self.second(self.drop(F.elu(self.norm(self.first(x, *edges)))), *edges)


def net(name: str) -> Net:
    """With batch normalisation, unless the name ends in `-plain`."""
    torch.manual_seed(1)
    made = Net(name.removesuffix("-plain"), not name.endswith("-plain")).double()
    for key, x in made.named_parameters():  # RGATConv leaves some as they come
        if key.split(".")[-1] in ("l1", "l2", "b1", "b2"):
            nn.init.ones_(x)
    return made


def graph(nodes: int, edges: int, seed: int = 0, hub: bool = False) -> Data:
    """A random multigraph with loops; its last node has no edge."""
    torch.manual_seed(seed)
    index = torch.randint(0, max(1, nodes - 1), (2, edges))
    if hub:
        index[1, ::2] = 0
    y = torch.randint(0, CLASSES, (nodes,))
    mask = torch.rand(nodes) < 0.6
    mask[0] = True
    return Data(
        x=torch.randn(nodes, WIDTH, dtype=torch.float64),
        edge_index=index,
        edge_type=torch.randint(0, RELATIONS, (edges,)),
        y=y,
        train_mask=mask,
        num_nodes=nodes,
    )


def edges_of(model: Net, data: Data) -> tuple[Tensor, ...]:
    typed = isinstance(model.first, G.RGCNConv | G.RGATConv)
    return (data.edge_index, data.edge_type) if typed else (data.edge_index,)


def adam(parameters: Any) -> Optimizer:
    return Adam(parameters, lr=0.01)


def trained(model: Net, data: Data, make: MakeOptimizer = adam, steps: int = 4) -> list[float]:
    """The losses of some steps."""

    def loss(x: Tensor, edges: Sequence[Tensor], y: Tensor, mask: Tensor) -> Tensor:
        return F.cross_entropy(model(x, *edges)[mask], y[mask])

    step = gnnc.train_step(loss, make(model.parameters()))
    given = data.x, edges_of(model, data), data.y, data.train_mask
    losses = [step(*given).item() for _ in range(steps)]
    assert gnnc.explain(step).fallbacks == []
    return losses


class Drawn(threading.local):
    """The numbers that masks are drawn by, the same on each rank that is a thread."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(3)

    def __call__(self) -> Tensor:
        return torch.randint(-(2**63), 2**63 - 1, (1,), generator=self.generator)


def on_ranks(monkeypatch: Any, ranks: int, work: Callable[[], Any]) -> list[Any]:
    """What ranks that are threads give; with none, what this process gives."""
    drawn = Drawn()
    for module in (bound_program, ranked_program):
        monkeypatch.setattr(module, "dropout_key", drawn)
    if not ranks:
        return [work()]
    return virtual.run(ranks, lambda _: work())


def training(name: str, data: Data, make: MakeOptimizer = adam, **options: Any) -> Any:
    """Work of a rank: its losses, and what its model holds afterwards."""
    model = net(name)

    def work() -> tuple[list[float], dict[str, Tensor]]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, **options)
        losses = trained(mine, part, make)
        return losses, {k: v.clone() for k, v in mine.state_dict().items()}

    return work


def training_alone(name: str, data: Data, make: MakeOptimizer = adam) -> Any:
    """The same without ranks."""

    def work() -> tuple[list[float], dict[str, Tensor]]:
        model = gnnc.compile(net(name))
        losses = trained(model, data, make)
        return losses, dict(model.state_dict())

    return work
