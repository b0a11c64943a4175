"""Results with a row for each edge and loop that a layer makes: attention weights on ranks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as G
from torch_geometric.data import Data

import gnnc
from gnnc.runtime.ranks import virtual

from .cut_models import WIDTH, graph

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "gat": lambda: G.GATConv(WIDTH, 4, heads=2),
    "gatv2": lambda: G.GATv2Conv(WIDTH, 4, heads=2),
    "transformer": lambda: G.TransformerConv(WIDTH, 4, heads=2),
    "edge features": lambda: G.GATConv(WIDTH, 4, heads=2, edge_dim=2, fill_value="mean"),
}


class Attention(nn.Module):
    """What a layer gives for nodes, and the edges it made with their weights."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.layer, self.weighs = LAYERS[name](), name == "edge features"

    def forward(self, x: Tensor, edges: Tensor, attr: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        given = (edges, attr) if self.weighs else (edges,)
        out, (made, weight) = self.layer(x, *given, return_attention_weights=True)
        return out, made, weight


def attention(name: str) -> Attention:
    torch.manual_seed(2)
    return Attention(name).double()


def edged(nodes: int = 30, edges: int = 110) -> Data:
    data = graph(nodes, edges)
    data.edge_attr = torch.randn(edges, 2, dtype=torch.float64)
    return data


def factors(made: Tensor) -> Tensor:
    """Of each edge, the same wherever it is."""
    return torch.sin(3.0 * made[0] + made[1]).double()[:, None]


def results(called: nn.Module, part: Data, whole: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    x = part.x.clone().requires_grad_() if not hasattr(part, "n_id") else part.x.requires_grad_()
    out, made, weight = called(x, part.edge_index, part.edge_attr)
    if made is part.edge_index and hasattr(part, "n_id"):  # which has places
        made = whole[:, part.e_id]
    (out.square().sum() + (weight * factors(made)).sum()).backward()
    return made, weight.detach(), [out.detach(), x.grad, *(p.grad for p in called.parameters())]


@pytest.mark.long
@pytest.mark.parametrize(("name", "ranks", "chunks"), [("gat", 2, 1), *((n, 3, 2) for n in LAYERS)])
def test_weights_are_those_of_one_process(name: str, ranks: int, chunks: int) -> None:
    data, model = edged(), attention(name)
    models = [copy.deepcopy(model) for _ in range(ranks)]

    def work(c: Any) -> Any:
        mine, part = gnnc.distribute(models[c.rank], data, chunks=chunks)
        return part, *results(mine, part, data.edge_index)

    made, weight, (out, grad, *wanted) = results(copy.deepcopy(model), data, data.edge_index)
    seen: list[tuple[Tensor, Tensor]] = []
    for part, edges, mine, (y, dx, *found) in virtual.run(ranks, work):
        for a, b in zip((y, dx, *found), (out[part.n_id], grad[part.n_id], *wanted), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)
        src, dst = data.edge_index[:, part.e_id]
        kept = src != dst if name != "transformer" else src == src
        loops = part.n_id[:0] if name == "transformer" else part.n_id
        ends = torch.stack([torch.cat([src[kept], loops]), torch.cat([dst[kept], loops])])
        assert torch.equal(edges, ends)  # in the order of the edges of the part, then loops
        seen.append((edges, mine))
    edges, mine = torch.cat([e for e, _ in seen], 1), torch.cat([a for _, a in seen])
    key = [e[0] * data.num_nodes + e[1] for e in (made, edges)]
    orders = [k.argsort(stable=True) for k in key]
    assert torch.equal(key[0][orders[0]], key[1][orders[1]])
    torch.testing.assert_close(mine[orders[1]], weight[orders[0]], rtol=1e-11, atol=1e-11)


class Upwards(nn.Module):
    """A layer on the edges that lead to a greater number, each of which it weighs by its ends."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = G.GraphConv(WIDTH, 4)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        kept = edges[:, edges[0] < edges[1]]
        return self.layer(x, kept, (kept[1] - kept[0]).to(x.dtype)), kept


@pytest.mark.long
def test_numbers_of_ends_are_those_of_the_whole_graph() -> None:
    data, model = edged(), Upwards().double()
    models = [copy.deepcopy(model) for _ in range(2)]
    wanted, _ = model(data.x, data.edge_index)

    def work(c: Any) -> Any:
        mine, part = gnnc.distribute(models[c.rank], data)
        return part, *mine(part.x, part.edge_index)

    for part, y, kept in virtual.run(2, work):
        torch.testing.assert_close(y, wanted[part.n_id], rtol=1e-11, atol=1e-11)
        ends = data.edge_index[:, part.e_id]
        assert torch.equal(kept, ends[:, ends[0] < ends[1]])
