"""What compiled models make of their inputs: wrong ones, edited ones, any type and layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, SAGEConv

import gnnc

from .models import CLASSES, EDGES, NODES, WIDTH, Net, close, graph, pair


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "make", [Net, lambda: SAGEConv(WIDTH, 4), lambda: GINConv(nn.Linear(8, 3))]
)
@pytest.mark.parametrize("bad", [NODES, NODES + 10**6, -1])
def test_an_index_out_of_range(make: Any, bad: int) -> None:
    eager, model = pair(make=make)
    x, edge_index = graph()
    model(x, edge_index)
    for row in (0, 1):
        wrong = edge_index.clone()
        wrong[row, 3] = bad
        with pytest.raises((IndexError, RuntimeError, ValueError)) as own:
            eager(x, wrong)
        with pytest.raises(own.type, match=rf"^edge_index.*{bad}"):
            model(x, wrong)
    assert gnnc.explain(model).fallbacks == []


def test_an_index_out_of_range_in_the_first_call() -> None:
    eager, model = pair()
    x, edge_index = graph()
    edge_index[1, 0] = NODES
    with pytest.raises((IndexError, RuntimeError)) as own:
        eager(x, edge_index)
    with pytest.raises(own.type, match="edge_index"):
        model(x, edge_index)


@pytest.mark.parametrize("partly", [False, True], ids=["in torch", "in parts"])
def test_an_index_out_of_range_in_torch_within_pyg(partly: bool) -> None:
    """torch has a RuntimeError for it, of which PyG makes an IndexError."""
    conv = GCNConv(WIDTH, 4, normalize=False)

    def function(x: Tensor, e: Tensor) -> Tensor:
        y = conv(x, e)
        return y.relu() * 2 + y.median() if partly else y.median(0).values

    compiled = gnnc.compile(function)
    x, e = graph()
    assert close(compiled(x, e), function(x, e))
    for f in (function, compiled):
        with pytest.raises(IndexError):
            f(x[:0], e)


def test_an_edit_in_place_of_the_graph_is_seen() -> None:
    eager, model = pair()
    x, edge_index = graph()
    for _ in range(3):
        assert close(model(x, edge_index), eager(x, edge_index))
        edge_index[0] = (edge_index[0] + 1) % NODES
    edge_index[0, 0] = NODES
    with pytest.raises(IndexError, match="edge_index"):
        model(x, edge_index)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "change",
    [
        lambda x, e: (x[:, :-1], e),
        lambda x, e: (x, e.float()),
        lambda x, e: (x.long(), e),
        lambda x, e: (x.double(), e),
        lambda x, e: (x, e[:1]),
    ],
    ids=["narrow", "float edges", "integer features", "double features", "one row of edges"],
)
@pytest.mark.parametrize("first", [True, False])
def test_wrong_input_raises_as_in_torch(change: Any, first: bool) -> None:
    eager, model = pair()
    x, edge_index = graph()
    if not first:
        model(x, edge_index)
    with pytest.raises(Exception) as expected:
        eager(*change(x, edge_index))
    with pytest.raises(expected.type) as found:
        model(*change(x, edge_index))
    assert str(found.value)


def test_lengths_that_do_not_meet() -> None:
    model = gnnc.compile(GCNConv(WIDTH, 4))
    x, edge_index = graph()
    for _ in range(2):
        with pytest.raises(
            IndexError, match="edge_index and edge_weight meet row by row: 90 and 89"
        ):
            model(x, edge_index, torch.rand(EDGES - 1))
        model(x, edge_index, torch.rand(EDGES))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_runs_in_torch(dtype: torch.dtype) -> None:
    eager, model = pair(make=lambda: SAGEConv(WIDTH, 4))
    x, edge_index = graph()
    eager, model, x = eager.to(dtype), model.to(dtype), x.to(dtype)
    y = model(x, edge_index)
    assert y.dtype == dtype
    assert torch.equal(y, eager(x, edge_index))
    (message,) = gnnc.explain(model).fallbacks
    assert "float" in message
    y.float().sum().backward()


def test_autocast_runs_in_torch() -> None:
    eager, model = pair()
    x, edge_index = graph()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x, edge_index)
        assert torch.equal(y, eager(x, edge_index))
    assert any("autocast" in f for f in gnnc.explain(model).fallbacks)
    assert close(model(x, edge_index), eager(x, edge_index))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "change",
    [
        lambda x, e: (x.T.contiguous().T, e),
        lambda x, e: (torch.cat([x, x], dim=1)[:, 3:11], e),
        lambda x, e: (x[torch.arange(NODES)][::1], e.T.contiguous().T),
        lambda x, e: (x, e.repeat_interleave(2, dim=1)[:, ::2]),
        lambda x, e: (x, e.int()),
        lambda x, e: (x, torch.cat([e, e])[1:3].flip(0)),
        lambda x, e: (x[:1].expand(NODES, WIDTH), e),
        lambda x, e: (torch.cat([torch.zeros(1), x.flatten()])[1:].view(NODES, WIDTH), e),
        lambda x, e: (x.clone().requires_grad_() * 2, e),
    ],
    ids=[
        "columns first",
        "columns of a wider matrix",
        "edges first",
        "strided edges",
        "int32",
        "flipped",
        "expanded",
        "unaligned",
        "not a leaf",
    ],
)
@pytest.mark.filterwarnings(  # Dynamo asks for the gradient of an argument that was computed
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"
)
def test_any_layout_of_inputs(change: Any) -> None:
    eager, model = pair(make=lambda: SAGEConv(WIDTH, 4))
    for k in range(2):
        x, edge_index = change(*graph(k))
        assert close(model(x, edge_index), eager(x, edge_index))
    assert gnnc.explain(model).fallbacks == []
    x = graph()[0].requires_grad_()
    for m in (eager, model):
        m(change(x, edge_index)[0], edge_index).square().sum().backward()
        grad, x.grad = x.grad, None
    assert grad is not None
    for p, q in zip(eager.parameters(), model.parameters(), strict=True):
        assert close(p.grad, q.grad)


def test_a_copy_of_an_input_is_a_new_tensor() -> None:
    def copies(x: Tensor) -> tuple[Tensor, ...]:
        return x.clone(), torch.cat([x]), x * 1.0, x.contiguous(), x + 1

    compiled = gnnc.compile(copies, fullgraph=True)
    for call in (copies, compiled):
        x = graph()[0].requires_grad_()
        *new, same, _ = call(x)
        assert all(torch.equal(y, x) and y.data_ptr() != x.data_ptr() for y in new)
        assert same.data_ptr() == x.data_ptr()
        sum(y.sum() for y in new).backward()
        assert x.grad is not None
        assert torch.equal(x.grad, torch.full_like(x, 3.0))


class OfEach(nn.Module):
    """A layer a graph, given as what shows them of a dict, as `HeteroData.edge_index_dict`'s."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(GCNConv(WIDTH, CLASSES) for _ in range(2))

    def forward(self, x: Tensor, graphs: Iterable[Tensor], named: Iterable[Any]) -> list[Tensor]:
        out = [conv(x, ends) for conv, ends in zip(self.layers, graphs, strict=True)]
        return out + [self.layers[0](x, ends) for name, ends in named if name[1] == "cites"]


def test_views_of_dicts_are_followed() -> None:
    eager, model = pair(make=OfEach)
    x, edge_index = graph()
    for graphs in (
        {("a", "cites", "a"): edge_index, ("a", "writes", "a"): edge_index.flip(0)},
        {("a", "cites", "a"): edge_index[:, :5].clone(), ("a", "writes", "a"): edge_index},
    ):
        want = eager(x, graphs.values(), graphs.items())
        got = model(x, graphs.values(), named=graphs.items())
        assert len(want) == len(got) == 3
        assert all(close(a, b) for a, b in zip(want, got, strict=True))
    report = gnnc.explain(model)
    assert report.graphs == 1 and not report.fallbacks
    assert close(want[0], model(x, list(graphs.values()), list(graphs.items()))[0])
