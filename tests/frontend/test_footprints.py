"""The memory that programs take on a graph, as planned."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GraphConv, RGATConv

import gnnc
from gnnc.runtime.cpu import pool

RELATIONS = 3


def drawn(nodes: int, edges: int) -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(nodes)
    ends = torch.randint(0, nodes, (2, edges), generator=random)
    kinds = torch.randint(0, RELATIONS, (edges,), generator=random)
    return torch.randn(nodes, 8, generator=random), ends, kinds


def test_what_a_call_takes_is_what_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = pool.spares.take

    def watched(size: int) -> Any:
        taken.append(size)
        return take(size)

    monkeypatch.setattr(pool.spares, "take", watched)
    model = gnnc.compile(RGATConv(8, 4, RELATIONS))
    for nodes in (20, 50):  # the footprint is that of the last graph
        x, ends, kinds = drawn(nodes, 9 * nodes)
        taken.clear()
        y = model(x, ends, kinds)
        forward = sum(taken)
        y.sum().backward()
        backward = sum(taken) - forward
        (found,) = gnnc.explain(model).footprints()
        returned = found.forward - forward
        assert returned >= y.nbytes
        gradients = sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)
        model.zero_grad()
        assert found.backward == returned + backward + gradients
        assert found.peak == found.tables + max(found.forward, found.backward)
        assert found.tables >= 9 * nodes * 4, "an index for each edge"


def test_no_graph_no_footprint() -> None:
    model = gnnc.compile(RGATConv(8, 4, RELATIONS))
    assert gnnc.explain(model).footprints() == []


def test_scratch_memory_follows_the_sizes() -> None:
    """Of few rows there are few chunks, each of which has a partial sum of the gradient."""
    model = gnnc.compile(GraphConv(256, 64))
    live: list[int] = []
    for nodes in (40, 100_000):
        ends = torch.randint(0, nodes, (2, nodes))
        model(torch.randn(nodes, 256), ends).sum().backward()
        (found,) = gnnc.explain(model).footprints()
        live.append(found.live - found.bound)
        assert found.over_bound < 1.2
    gradient = 4 * 64 * 256
    assert live[0] < 3 * gradient and live[1] > 20 * gradient  # two matrices
