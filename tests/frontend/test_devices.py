"""Tensors on another device, and arguments that do not fit: torch's results and exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import SAGEConv

import gnnc

from .eagerly import assert_as_eager
from .models import NODES, WIDTH, graph

X, EDGES = graph()


class Summed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, edge_index[1], self.lin(x)[edge_index[0]])


@pytest.mark.parametrize(
    "run",
    [
        lambda m: m(X.to("meta"), EDGES),
        lambda m: m(X, EDGES.to("meta")),
        lambda m: m(X.to("meta"), EDGES.to("meta")),
        lambda m: m.to("meta")(X.to("meta"), EDGES.to("meta")),
        lambda m: (m(X, EDGES), m(X, EDGES.to("meta"))),
    ],
    ids=["rows", "edges", "arguments", "all", "after a call"],
)
def test_another_device_never_reaches_a_kernel(run: Callable[[Any], Any]) -> None:
    model = assert_as_eager(Summed, run)
    assert gnnc.explain(model).fallbacks


def test_a_result_on_another_device() -> None:
    class Moved(Summed):
        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            y = super().forward(x, edge_index)
            return y, y.to("meta")

    model = assert_as_eager(Moved, lambda m: m(X, EDGES))
    assert any("device meta" in f for f in gnnc.explain(model).fallbacks)


class Chosen(nn.Module):
    """Rows by `x[i]`, which counts from the end too."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        return self.lin(x)[i].relu()


class Selected(Chosen):
    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        return self.lin(x).index_select(0, i).relu()


class Embedded(Chosen):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, WIDTH)

    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        return self.lin(self.table(i)).relu()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", [Chosen, Selected, Embedded])
@pytest.mark.parametrize("index", [[-1, 0, 3], [1, 0, NODES], [-NODES - 1, 2, 0]])
def test_indices_from_the_end_and_out_of_range(kind: type[nn.Module], index: list[int]) -> None:
    i = torch.tensor(index)

    def run(model: nn.Module) -> Any:
        y = model(X, i)
        y.sum().backward()
        return y, [p.grad for p in model.parameters()]

    assert_as_eager(kind, run)


def test_an_index_out_of_range_is_named() -> None:
    model = gnnc.compile(Selected())
    with pytest.raises(IndexError, match=rf"i\[2\] is {NODES}, but it must be between 0 and"):
        model(X, torch.tensor([1, 0, NODES]))


def test_no_kernel_runs_on_an_index_out_of_range() -> None:
    """torch's scatter raises a RuntimeError."""
    bad = EDGES.clone()
    bad[1, 3] = NODES
    assert_as_eager(Summed, lambda m: (m(X, EDGES), m(X, bad)))


@pytest.mark.parametrize(
    "args",
    [
        (X, EDGES[:1]),
        (torch.randn(NODES, WIDTH + 1), EDGES),
        (X.double(), EDGES),
        (X, EDGES.float()),
        (X[:3], EDGES),
    ],
    ids=["length", "width", "dtype", "floats", "rows"],
)
def test_arguments_that_do_not_fit(args: Any) -> None:
    assert_as_eager(Summed, lambda m: (m(X, EDGES), m(*args)))


def test_the_size_of_an_edge_index_counts() -> None:
    class Bipartite(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, 4)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv((x, None), edge_index)

    edges = EdgeIndex(EDGES, sparse_size=(NODES, NODES + 3))
    assert_as_eager(Bipartite, lambda m: m(X, edges))
    same = EdgeIndex(EDGES, sparse_size=(NODES, NODES))
    model = assert_as_eager(Bipartite, lambda m: m(X, same))
    assert gnnc.explain(model).graphs == 1
