"""The script of `gnnc bench ranks`, which `gnnc launch` runs: a model trains on this rank's part.

Its arguments are a JSON object, `{"contestant": .., "model": .., "nodes": .., "edges": ..,
"halo": .., "features": .., "hidden": .., "classes": .., "steps": ..}`, and the file for the answer
of rank 0: `seconds` of each step, of the slowest rank, and `losses` of all.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    SAGEConv,
)
from torch_geometric.nn.conv.gcn_conv import (
    gcn_norm,
)

import gnnc
from gnnc.runtime.partition import edges, parts
from gnnc.runtime.ranks.world import world

PARTS = 2
"""The graph has so many, whether ranks have one each or one has all."""
HEADS = 4
WARM = 4


def layer(model: str, a: int, b: int, normalize: bool) -> nn.Module:
    """A layer with the output of width `b`; a GCN's may leave the degrees to others."""
    match model:
        case "gcn":
            return GCNConv(a, b, normalize=normalize)
        case "sage":
            return SAGEConv(a, b)
        case "gat":
            return GATConv(a, b // HEADS if b % HEADS == 0 else b, HEADS, concat=b % HEADS == 0)
        case _:
            return GINConv(nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b)))


class Net(nn.Module):
    """Two layers."""

    def __init__(self, model: str, widths: tuple[int, int, int], normalize: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layer(model, a, b, normalize) for a, b in pairwise(widths))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        first, second = self.layers
        return second(first(x, edges).relu(), edges)


def drawn(nodes: int, edges: int, halo: float, features: int, classes: int) -> Any:
    """A graph of halves. Where `halo` is below 1, an edge in twenty leads to the other half, from
    one of so great a share of its nodes; else edges lead anywhere."""
    torch.manual_seed(0)
    half = nodes // PARTS
    src, dst = torch.randint(0, half, (PARTS, edges))
    of_dst = torch.randint(0, PARTS, (edges,))
    crosses = torch.rand(edges) < (0.05 if halo < 1 else 0.5)
    border = max(1, int(half * halo))
    src = torch.where(crosses, src % border, src)
    index = torch.stack([src + (of_dst + crosses) % PARTS * half, dst + of_dst * half])
    x, y = torch.randn(PARTS * half, features), torch.randint(0, classes, (PARTS * half,))
    return Data(x=x, edge_index=index, y=y)


def by_gnnc(net: Net, model: str, data: Any, owner: Tensor) -> Callable[[], Tensor]:
    """A step by gnnc."""
    cut, part = gnnc.distribute(net, data, owner=owner)
    optimizer = torch.optim.Adam(cut.parameters(), lr=0.01)
    return gnnc.train_step(lambda: F.cross_entropy(cut(part.x, part.edge_index), part.y), optimizer)


class Halo(torch.autograd.Function):
    """The rows of ghosts by gloo's all_to_all, and their gradients back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sent: Tensor, to: list[int], by: list[int]) -> Tensor:
        ctx.counts, ctx.nodes = (to, by), len(x)
        ctx.save_for_backward(sent)
        out = x.new_empty(sum(by), x.shape[1])
        dist.all_to_all_single(out, x[sent], by, to)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (sent,), (to, by) = ctx.saved_tensors, ctx.counts
        back = grads[0].new_empty(sum(to), grads[0].shape[1])
        dist.all_to_all_single(back, grads[0].contiguous(), to, by)
        out = back.new_zeros(ctx.nodes, back.shape[1]).index_add_(0, sent, back)
        return out, None, None, None


class ByGloo(nn.Module):
    """PyG's layers on the part of a rank, between exchanges of rows."""

    def __init__(self, net: Net, model: str, data: Any, owner: Tensor) -> None:
        super().__init__()
        self.net, self.model = net, model
        index = data.edge_index
        weights = torch.ones(index.shape[1])
        if model == "gcn":  # by degrees in the whole graph
            index, weights = gcn_norm(index, num_nodes=data.num_nodes)
        graph = edges.in_memory(*index.numpy(), data.num_nodes)
        part = parts.make_part(gnnc.rank(), gnnc.world_size(), owner.int().numpy(), graph)
        self.owned = torch.from_numpy(part.owned)
        self.edges = torch.from_numpy(part.ends)
        self.weights = weights[torch.from_numpy(part.numbers)]
        self.sent = torch.from_numpy(part.sent).long()
        self.to, self.by = part.send_counts.tolist(), part.receive_counts.tolist()

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.net.layers
        return self.of_layer(second, self.of_layer(first, x).relu())

    def of_layer(self, conv: nn.Module, x: Tensor) -> Tensor:
        every = torch.cat([x, Halo.apply(x, self.sent, self.to, self.by)])
        if self.model == "gcn":
            return conv(every, self.edges, self.weights)[: len(x)]
        return conv((every, x), self.edges)


def by_gloo(net: Net, model: str, data: Any, owner: Tensor) -> Callable[[], Tensor]:
    """A step by PyG and torch.distributed."""
    cut = ByGloo(net, model, data, owner)
    x, y = data.x[cut.owned], data.y[cut.owned]
    optimizer: Any = torch.optim.Adam(cut.parameters(), lr=0.01)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(cut(x), y, reduction="sum") / len(owner)
        loss.backward()
        for p in cut.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        whole = loss.detach().clone()
        dist.all_reduce(whole)
        return whole

    return step


STEPS: dict[str, Callable[[Net, str, Any, Tensor], Callable[[], Tensor]]] = {
    "gnnc": by_gnnc,
    "pyg": by_gloo,
}


def timed(
    contestant: str,
    model: str,
    nodes: int,
    edges: int,
    halo: float,
    features: int,
    hidden: int,
    classes: int,
    steps: int,
) -> dict[str, Any]:
    """The answer; all ranks begin each step together."""
    ranks = world()
    data = drawn(nodes, edges, halo, features, classes)
    net = Net(model, (features, hidden, classes), normalize=contestant == "gnnc")
    owner = torch.arange(len(data.y)) // (len(data.y) // PARTS) % ranks.size
    step = STEPS[contestant](net, model, data, owner)
    losses = [float(step()) for _ in range(WARM)]
    seconds: list[float] = []
    for _ in range(steps):
        ranks.barrier()
        start = time.perf_counter()
        loss = step()
        seconds.append(time.perf_counter() - start)
        losses.append(float(loss))
    every = ranks.gather(seconds) or [seconds]
    return {"seconds": [max(s) for s in zip(*every, strict=True)], "losses": losses}


def main() -> None:
    question, answer = json.loads(sys.argv[1]), Path(sys.argv[2])
    if question["contestant"] == "pyg":
        dist.init_process_group(
            "gloo",
            init_method=f"file://{answer}.store",
            rank=gnnc.rank(),
            world_size=gnnc.world_size(),
        )
    found = timed(**question)
    if dist.is_initialized():
        dist.destroy_process_group()  # its threads would abort a process that ends before them
    if gnnc.rank() == 0:
        answer.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
