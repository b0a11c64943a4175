"""Models in the style of DGL's examples, a family each, over whichever library is given as `dgl`:
each makes a module and the arguments of its calls, of which the first is the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

NODES, EDGES, WIDTH, CLASSES = 40, 160, 8, 4


@dataclass
class Family:
    """`model` gives logits, one row a label; `args` are its arguments."""

    model: nn.Module
    args: tuple[Any, ...]
    labels: int = NODES


def numbers(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ends(seed: int, n: int, m: int, e: int) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return torch.randint(n, (e,), generator=g), torch.randint(m, (e,), generator=g)


def graph(dgl: Any, n: int = NODES, e: int = EDGES, seed: int = 0) -> Any:
    return dgl.add_self_loop(dgl.graph(ends(seed, n, n, e), num_nodes=n))


class Stack(nn.Module):
    """Layers one after the other, heads side by side."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, g: Any, x: Tensor, *more: Any) -> Tensor:
        for k, layer in enumerate(self.layers):
            x = layer(g, x if k == 0 else x.tanh(), *more)
            x = x.flatten(1) if x.dim() > 2 else x
        return x


def nodes(dgl: Any, make: Callable[[Any, int, int], nn.Module]) -> Family:
    """Two layers that classify nodes."""
    nn_ = dgl.nn.pytorch
    model = Stack(make(nn_, WIDTH, 6), make(nn_, 6, CLASSES))
    return Family(model, (graph(dgl), numbers(1, NODES, WIDTH)))


def gat(dgl: Any, name: str) -> Family:
    layer = getattr(dgl.nn.pytorch, name)
    model = Stack(layer(WIDTH, 3, 2), layer(6, CLASSES, 1))
    return Family(model, (graph(dgl), numbers(1, NODES, WIDTH)))


def relational(dgl: Any) -> Family:
    layer, g = dgl.nn.pytorch.RelGraphConv, graph(dgl)
    model = Stack(layer(WIDTH, 6, 3, "basis", 2), layer(6, CLASSES, 3))
    types = torch.arange(g.num_edges()) % 3
    return Family(model, (g, numbers(1, NODES, WIDTH), types))


class OnTypes(nn.Module):
    def __init__(self, dgl: Any) -> None:
        super().__init__()
        layer, names = dgl.nn.pytorch.GraphConv, ("buys", "bought-by", "follows")

        def of_all(a: int, b: int) -> nn.Module:
            layers = {n: layer(a, b, norm="right", allow_zero_in_degree=True) for n in names}
            return dgl.nn.pytorch.HeteroGraphConv(layers, aggregate="sum")

        self.first, self.second = of_all(WIDTH, 6), of_all(6, CLASSES)

    def forward(self, g: Any, users: Tensor, items: Tensor) -> Tensor:
        h = self.first(g, {"user": users, "item": items})
        return self.second(g, {name: x.tanh() for name, x in h.items()})["user"]


def hetero(dgl: Any) -> Family:
    n, m = NODES, 25
    data = {
        ("user", "buys", "item"): ends(1, n, m, 120),
        ("item", "bought-by", "user"): ends(2, m, n, 120),
        ("user", "follows", "user"): ends(3, n, n, 90),
    }
    g = dgl.heterograph(data, num_nodes_dict={"user": n, "item": m})
    return Family(OnTypes(dgl), (g, numbers(1, n, WIDTH), numbers(2, m, WIDTH)))


def transformer(dgl: Any) -> Family:
    g = graph(dgl)
    layer = dgl.nn.pytorch.HGTConv(WIDTH, 4, 2, 2, 3, dropout=0.0)
    types = torch.arange(NODES) % 2, torch.arange(g.num_edges()) % 3
    return Family(Stack(layer), (g, numbers(1, NODES, WIDTH), *types))


class OfGraphs(nn.Module):
    """Layers, and a readout of each graph of a batch."""

    def __init__(self, dgl: Any, pool: Callable[[Any], nn.Module], width: int) -> None:
        super().__init__()
        self.first = dgl.nn.pytorch.GINConv(nn.Linear(WIDTH, 6), "sum", learn_eps=True)
        self.second = dgl.nn.pytorch.GINConv(nn.Linear(6, 6), "mean")
        self.pool, self.out = pool(dgl.nn.pytorch), nn.Linear(width, CLASSES)

    def forward(self, g: Any, x: Tensor) -> Tensor:
        h = self.second(g, self.first(g, x).tanh()).tanh()
        return self.out(self.pool(g, h))


def of_graphs(dgl: Any, pool: Callable[[Any], nn.Module], width: int = 6) -> Family:
    g = dgl.batch([graph(dgl, n, 4 * n, n) for n in (5, 9, 12, 7, 4)])
    return Family(OfGraphs(dgl, pool, width), (g, numbers(1, 37, WIDTH)), 5)


class OfMolecules(nn.Module):
    def __init__(self, dgl: Any) -> None:
        super().__init__()
        self.dgl = dgl
        self.first = dgl.nn.pytorch.NNConv(WIDTH, 6, nn.Linear(3, WIDTH * 6), "mean")
        self.second = dgl.nn.pytorch.CFConv(6, 3, 6, CLASSES)

    def forward(self, g: Any, x: Tensor, w: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["h"] = self.second(g, self.first(g, x, w).tanh(), w)
            return self.dgl.sum_nodes(g, "h")


def of_molecules(dgl: Any) -> Family:
    g = dgl.batch([graph(dgl, n, 3 * n, n) for n in (6, 8, 5)])
    return Family(OfMolecules(dgl), (g, numbers(1, 19, WIDTH), numbers(2, g.num_edges(), 3)), 3)


class OfLinks(nn.Module):
    """A score for each edge of a second graph."""

    def __init__(self, dgl: Any) -> None:
        super().__init__()
        self.fn = dgl.function
        self.encode = dgl.nn.pytorch.SAGEConv(WIDTH, 6, "mean")
        self.out = nn.Linear(1, CLASSES)

    def forward(self, g: Any, pairs: Any, x: Tensor) -> Tensor:
        h = self.encode(g, x).tanh()
        with pairs.local_scope():
            pairs.ndata["h"] = h
            pairs.apply_edges(self.fn.u_dot_v("h", "h", "score"))
            return self.out(pairs.edata["score"])


def of_links(dgl: Any) -> Family:
    pairs = dgl.graph(ends(9, NODES, NODES, 70), num_nodes=NODES)
    return Family(OfLinks(dgl), (graph(dgl), pairs, numbers(1, NODES, WIDTH)), 70)


class OfUsers(nn.Module):
    """Message, reduce and apply functions of a user's own."""

    def __init__(self, dgl: Any) -> None:
        super().__init__()
        self.fn = dgl.function
        self.message, self.out = nn.Linear(2 * WIDTH, 6), nn.Linear(WIDTH + 6, CLASSES)

    def forward(self, g: Any, x: Tensor) -> Tensor:
        def send(edges: Any) -> dict[str, Tensor]:
            return {"m": self.message(torch.cat([edges.src["x"], edges.dst["x"]], 1)).tanh()}

        def finish(nodes: Any) -> dict[str, Tensor]:
            return {"y": self.out(torch.cat([nodes.data["x"], nodes.data["h"]], 1))}

        with g.local_scope():
            g.ndata["x"] = x
            g.update_all(send, self.fn.mean("m", "h"))
            g.apply_nodes(finish)
            return g.ndata["y"]


class OnBlocks(nn.Module):
    def __init__(self, dgl: Any) -> None:
        super().__init__()
        layer = dgl.nn.pytorch.SAGEConv
        self.layers = nn.ModuleList([layer(WIDTH, 6, "mean"), layer(6, CLASSES, "mean")])

    def forward(self, blocks: list[Any], x: Tensor) -> Tensor:
        for k, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            x = layer(block, (x, x[: block.num_dst_nodes()]))
            x = x.tanh() if k == 0 else x
        return x


def on_blocks(dgl: Any) -> Family:
    def block(n: int, m: int, e: int) -> Any:
        return dgl.create_block(ends(n, n, m, e), num_src_nodes=n, num_dst_nodes=m)

    blocks = [block(40, 20, 130), block(20, 8, 50)]
    return Family(OnBlocks(dgl), (blocks, numbers(1, NODES, WIDTH)), 8)


def mlp(a: int, b: int) -> nn.Module:
    return nn.Sequential(nn.Linear(a, b), nn.Tanh(), nn.Linear(b, b))


FAMILIES: dict[str, Callable[[Any], Family]] = {
    "gcn": lambda dgl: nodes(dgl, lambda layers, a, b: layers.GraphConv(a, b)),
    "sage": lambda dgl: nodes(dgl, lambda layers, a, b: layers.SAGEConv(a, b, "mean")),
    "sage-pool": lambda dgl: nodes(dgl, lambda layers, a, b: layers.SAGEConv(a, b, "pool")),
    "gin": lambda dgl: nodes(dgl, lambda layers, a, b: layers.GINConv(mlp(a, b), "sum")),
    "gat": lambda dgl: gat(dgl, "GATConv"),
    "gatv2": lambda dgl: gat(dgl, "GATv2Conv"),
    "dot-gat": lambda dgl: gat(dgl, "DotGatConv"),
    "tag": lambda dgl: nodes(dgl, lambda layers, a, b: layers.TAGConv(a, b, 2)),
    "sgc": lambda dgl: nodes(dgl, lambda layers, a, b: layers.SGConv(a, b, 2)),
    "appnp": lambda dgl: Family(Appnp(dgl), (graph(dgl), numbers(1, NODES, WIDTH))),
    "edge": lambda dgl: nodes(dgl, lambda layers, a, b: layers.EdgeConv(a, b)),
    "rgcn": relational,
    "rgcn-hetero": hetero,
    "hgt": transformer,
    "gin-graphs": lambda dgl: of_graphs(dgl, lambda layers: layers.SumPooling()),
    "attention-graphs": lambda dgl: of_graphs(
        dgl, lambda layers: layers.GlobalAttentionPooling(nn.Linear(6, 1))
    ),
    "molecules": of_molecules,
    "links": of_links,
    "users-functions": lambda dgl: Family(OfUsers(dgl), (graph(dgl), numbers(1, NODES, WIDTH))),
    "blocks": on_blocks,
}


class Appnp(nn.Module):
    def __init__(self, dgl: Any) -> None:
        super().__init__()
        self.dense, self.spread = mlp(WIDTH, CLASSES), dgl.nn.pytorch.APPNPConv(3, 0.1)

    def forward(self, g: Any, x: Tensor) -> Tensor:
        return self.spread(g, self.dense(x))


def losses(family: Family, call: Callable[..., Tensor], steps: int = 20) -> list[float]:
    """Of training with Adam, before each step."""
    optimizer = torch.optim.Adam(family.model.parameters(), 0.02)
    labels, found = torch.arange(family.labels) % CLASSES, list[float]()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(call(*family.args), labels)
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found
