"""Moves and their gradients are adjoint: <A x, y> = <x, A^T y>, where A brings rows of nodes to the
edges that read them, on whichever rank these lie, and A^T adds up what edges have for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import gnnc
from gnnc.runtime.ranks import virtual

NODES, EDGES, WIDTH = 23, 160, 5


class Ends(nn.Module):
    """The rows of both ends of each edge, each with a factor of its own."""

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        return x[edges[0]] * 2.0, x[edges[1]] * -3.0


def graph(seed: int) -> Data:
    """Integers, whose sums are exact. The last node has no edge, half of the edges lead to 0."""
    torch.manual_seed(seed)
    index = torch.randint(0, NODES - 1, (2, EDGES))
    index[1, ::2] = 0
    x, y = (torch.randint(-9, 10, (n, WIDTH)).double() for n in (NODES, EDGES))
    return Data(x=x, edge_index=index, edge_attr=y, num_nodes=NODES)


def products(data: Data, ranks: int, chunks: int, owner: Tensor) -> list[tuple[float, float]]:
    """On each rank its parts of <A x, y> and of <x, A^T y>."""

    def work(_: Any) -> tuple[float, float]:
        model, part = gnnc.distribute(Ends(), data, owner=owner, chunks=chunks)
        x = part.x.requires_grad_()
        ends = model(x, part.edge_index)
        first = sum((a * part.edge_attr).sum() for a in ends)
        assert isinstance(first, Tensor)
        first.backward()
        assert x.grad is not None
        return first.item(), (x * x.grad).sum().item()

    return virtual.run(ranks, work)


@pytest.mark.parametrize(("ranks", "chunks"), [(3, 1), (4, 3)])
def test_moves_and_their_gradients_are_adjoint(ranks: int, chunks: int) -> None:
    """Exactly; with owners at random, of whom one has nothing."""
    data = graph(ranks)
    owner = torch.randint(0, ranks, (NODES,))
    owner[owner == ranks - 1] = 0
    src, dst = data.edge_index
    wanted = ((2 * data.x[src] - 3 * data.x[dst]) * data.edge_attr).sum().item()
    found = products(data, ranks, chunks, owner)
    assert sum(a for a, _ in found) == wanted
    assert sum(b for _, b in found) == wanted
    assert any(a != b for a, b in found), "nothing has crossed"
