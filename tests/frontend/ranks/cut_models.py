"""Models and graphs that train alike on one rank and on several."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch_geometric import nn as G
from torch_geometric.data import Data, HeteroData

import gnnc
from gnnc.frontend.torch.calls import arguments as call_arguments
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


NODE_TYPES = ("author", "paper", "venue")
EDGE_TYPES = (
    ("author", "writes", "paper"),
    ("paper", "written_by", "author"),
    ("paper", "cites", "paper"),
    ("paper", "appears_in", "venue"),
)
METADATA = list(NODE_TYPES), list(EDGE_TYPES)


def hetero_graph(nodes: Sequence[int], edges: int, seed: int = 0) -> HeteroData:
    """Random nodes of three types, the classes those of papers."""
    torch.manual_seed(seed)
    data, count = HeteroData(), dict(zip(NODE_TYPES, nodes, strict=True))
    for t, n in count.items():
        data[t].x = torch.randn(n, WIDTH, dtype=torch.float64)
    for t in EDGE_TYPES:
        ends = [torch.randint(0, count[k], (edges,)) for k in (t[0], t[2])]
        data[t].edge_index = torch.stack(ends)
    data["paper"].y = torch.randint(0, CLASSES, (count["paper"],))
    data["paper"].train_mask = torch.rand(count["paper"]) < 0.7
    return data


class HeteroNet(nn.Module):
    """Two layers over types of nodes, of which the second gives classes of papers."""

    def __init__(self, layer: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = layer(WIDTH, HIDDEN), layer(HIDDEN, HIDDEN)
        self.norm = nn.ModuleDict({t: nn.BatchNorm1d(HIDDEN) for t in NODE_TYPES})
        self.drop, self.out = nn.Dropout(0.4), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: dict[str, Tensor], edges: dict[Any, Tensor]) -> Tensor:
        x = {t: self.drop(F.elu(self.norm[t](v))) for t, v in self.first(x, edges).items()}
        return self.out(self.second(x, edges)["paper"])


HETERO: dict[str, Callable[[int, int], nn.Module]] = {
    "hgt": lambda a, b: G.HGTConv(a, b, METADATA, heads=2),
    "sage": lambda a, b: G.HeteroConv({t: G.SAGEConv((a, a), b) for t in EDGE_TYPES}),
    "gat": lambda a, b: G.HeteroConv(
        {t: G.GATConv((a, a), b, add_self_loops=False) for t in EDGE_TYPES}, aggr="mean"
    ),
}


def hetero_net(name: str) -> HeteroNet:
    torch.manual_seed(1)
    return HeteroNet(HETERO[name]).double()


def arguments(model: nn.Module, data: Any) -> tuple[Any, ...]:
    """What a model and its loss take of a graph."""
    if isinstance(model, HeteroNet):
        papers = data["paper"]
        return data.x_dict, (data.edge_index_dict,), papers.y, papers.train_mask
    assert isinstance(model, Net)
    typed = isinstance(model.first, G.RGCNConv | G.RGATConv)
    edges = (data.edge_index, data.edge_type) if typed else (data.edge_index,)
    return data.x, edges, data.y, data.train_mask


def adam(parameters: Any) -> Optimizer:
    return Adam(parameters, lr=0.01)


def sgd(parameters: Any) -> Optimizer:
    return SGD(parameters, lr=0.1)


def trained(
    model: nn.Module, data: Any, make: MakeOptimizer = adam, steps: int = 4, **options: Any
) -> list[float]:
    """The losses of some steps, which have these options."""

    def loss(x: Any, edges: Sequence[Any], y: Tensor, mask: Tensor) -> Tensor:
        return F.cross_entropy(model(x, *edges)[mask], y[mask])

    step = gnnc.train_step(loss, make(model.parameters()), **options)
    losses = [step(*arguments(model, data)).item() for _ in range(steps)]
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
    for module in (call_arguments, ranked_program):
        monkeypatch.setattr(module, "dropout_key", drawn)
    if not ranks:
        return [work()]
    return virtual.run(ranks, lambda _: work())


def training(
    model: nn.Module, data: Any, make: MakeOptimizer = adam, steps: int = 4, **options: Any
) -> Any:
    """Work of a rank: its losses, and what its model holds afterwards."""

    def work() -> tuple[list[float], dict[str, Tensor]]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, **options)
        losses = trained(mine, part, make, steps)
        return losses, {k: v.clone() for k, v in mine.state_dict().items()}

    return work


def training_alone(model: nn.Module, data: Any, make: MakeOptimizer = adam, steps: int = 4) -> Any:
    """The same without ranks."""

    def work() -> tuple[list[float], dict[str, Tensor]]:
        mine = gnnc.compile(copy.deepcopy(model))
        losses = trained(mine, data, make, steps)
        return losses, dict(mine.state_dict())

    return work


def check(
    monkeypatch: Any,
    model: nn.Module,
    data: Any,
    ranks: int,
    make: MakeOptimizer = adam,
    tolerance: float = 1e-9,
    steps: int = 4,
    **options: Any,
) -> None:
    """Ranks train as one process does, and have the same bits."""
    ((losses, state),) = on_ranks(monkeypatch, 0, training_alone(model, data, make, steps))
    every = on_ranks(monkeypatch, ranks, training(model, data, make, steps, **options))
    for other_losses, other in every:
        torch.testing.assert_close(other_losses, losses, rtol=0, atol=tolerance)
        for key, x in state.items():
            torch.testing.assert_close(other[key], x, rtol=tolerance, atol=tolerance, msg=key)
            assert torch.equal(other[key], every[0][1][key]), f"ranks have another {key}"
