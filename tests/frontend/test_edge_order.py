"""Edges that a program works on one by one lie by the node that they are summed for, where nobody
sees it: the numbers are torch's, of values, gradients, errors and graphs that change."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import EdgeConv, GATConv, GATv2Conv, TransformerConv

import gnnc
from gnnc.frontend.torch.calls import arguments
from gnnc.runtime.sets.sets import SetData

from .equality import FIXED, assert_interchangeable, random_edges

NODES, WIDTH = 40, 6
LAYERS = {
    "gatv2": lambda: GATv2Conv(WIDTH, 4, heads=2),
    "transformer": lambda: TransformerConv(WIDTH, 4, heads=2),
    "edge": lambda: EdgeConv(nn.Sequential(nn.Linear(2 * WIDTH, 8), nn.ReLU(), nn.Linear(8, 4))),
    "source": lambda: GATv2Conv(WIDTH, 4, flow="target_to_source"),
}


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """By which map sets were put in order, however small they are."""
    found: list[str] = []
    plain = SetData.in_order_of

    def in_order_of(self: SetData, by: str) -> SetData:
        found.append(by)
        return plain(self, by)

    monkeypatch.setattr(arguments, "LARGEST", 0)
    monkeypatch.setattr(SetData, "in_order_of", in_order_of)
    return found


def graph(seed: int) -> Tensor:
    return random_edges(seed, NODES, NODES, 150, "uniform").index


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str, ordered: list[str]) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name]()
    compiled = gnnc.compile(copy.deepcopy(layer))
    for edges in FIXED:
        x = torch.randn(edges.sources, WIDTH, requires_grad=True)
        assert_interchangeable(layer, compiled, (x, edges.index))
    assert not gnnc.explain(compiled).fallbacks
    assert set(ordered) == {"dst"}  # where messages go, whichever row of the list that is


def test_a_graph_that_is_edited_is_put_in_order_anew(ordered: list[str]) -> None:
    torch.manual_seed(0)
    layer = TransformerConv(WIDTH, 4)
    compiled = gnnc.compile(copy.deepcopy(layer))
    x, edges = torch.randn(NODES, WIDTH), graph(0)
    assert_interchangeable(layer, compiled, (x, edges))
    edges.copy_(graph(1))
    assert_interchangeable(layer, compiled, (x, edges))
    assert len(ordered) >= 2


def test_what_tells_edges_apart_keeps_their_order(ordered: list[str]) -> None:
    torch.manual_seed(0)
    x, edges = torch.randn(NODES, WIDTH), graph(0)
    weights = torch.randn(edges.shape[1], 3)
    with_rows = TransformerConv(WIDTH, 4, edge_dim=3)
    compiled = gnnc.compile(copy.deepcopy(with_rows))
    assert_interchangeable(with_rows, compiled, (x, edges, weights))
    plain = GATConv(WIDTH, 4)  # whose edges are nothing but sums of both ends
    compiled = gnnc.compile(copy.deepcopy(plain))
    assert_interchangeable(plain, compiled, (x, edges))
    assert ordered == []


@pytest.mark.parametrize("row", [0, 1])
def test_a_node_that_is_not_there(row: int, ordered: list[str]) -> None:
    compiled = gnnc.compile(GATv2Conv(WIDTH, 4))
    x, edges = torch.randn(NODES, WIDTH), graph(0)
    edges[row, 7] = NODES
    with pytest.raises(IndexError, match="edge_index"):
        compiled(x, edges)
