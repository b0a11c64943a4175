"""`to_dense_batch` in a compiled model: compiled where its sizes are given, with eager's numbers in
all forms; and aggregations that are made of it, or of pointers.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GPSConv, aggr
from torch_geometric.utils import to_dense_batch

import gnnc

BATCH = torch.tensor([0, 0, 1, 3, 3, 3, 3])  # graph 2 has no nodes
GRAPHS, WIDTH = 5, 4


class Dense(nn.Module):
    """Sums of the dense rows behind a layer, the mask, and the rows."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, 3), nn.Linear(3, 2)
        self.options = options

    def forward(self, x: Tensor, batch: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, mask = to_dense_batch(self.first(x).tanh(), batch, **self.options)
        return self.second(rows).tanh().sum(1), mask, rows


def check(model: nn.Module, *args: Any) -> Any:
    """The compiled model has eager's results and gradients. Returns the report."""
    eager, compiled = copy.deepcopy(model), gnnc.compile(model)
    found: list[list[Tensor]] = []
    for m in (eager, compiled):
        x = torch.randn(*args[0], generator=torch.Generator().manual_seed(1)).requires_grad_()
        results = m(x, *args[1:])
        results = results if isinstance(results, tuple) else (results,)
        loss = sum((y * y.detach().cos()).sum() for y in results if y.is_floating_point())
        grads = torch.autograd.grad(loss, [x, *m.parameters()], allow_unused=True)  # pyright: ignore
        found.append([*results, *(g for g in grads if g is not None)])
    torch.testing.assert_close(found[1], found[0], rtol=1e-10, atol=1e-12)
    return gnnc.explain(compiled)


@pytest.mark.parametrize("fill", [0.0, 1.5])
@pytest.mark.parametrize("places", [2, 4, 6])
def test_sizes_that_are_given(places: int, fill: float) -> None:
    model = Dense(max_num_nodes=places, batch_size=GRAPHS, fill_value=fill)
    report = check(model, (7, WIDTH), BATCH)
    assert report.graphs == 1 and report.fallbacks == []


@pytest.mark.parametrize("rows", [0, 1, 12])
def test_other_numbers_of_rows(rows: int) -> None:
    model = Dense(max_num_nodes=3, batch_size=GRAPHS)
    eager, compiled = copy.deepcopy(model), gnnc.compile(model)
    for batch in (BATCH, torch.arange(rows) // 3):
        x = torch.randn(len(batch), WIDTH)
        torch.testing.assert_close(compiled(x, batch), eager(x, batch))
    assert gnnc.explain(compiled).fallbacks == []


def test_rows_that_are_not_finite_stay_at_their_places() -> None:
    def dense(x: Tensor, batch: Tensor, weight: Tensor) -> Tensor:
        return to_dense_batch(x @ weight, batch, 0.5, 3, GRAPHS)[0]

    x = torch.randn(7, WIDTH)
    x[1] = torch.inf
    args = x, BATCH, torch.eye(WIDTH)
    torch.testing.assert_close(gnnc.compile(dense)(*args), dense(*args), equal_nan=True)


def test_groups_that_are_not_in_order() -> None:
    compiled = gnnc.compile(Dense(max_num_nodes=4, batch_size=GRAPHS))
    compiled(torch.randn(7, WIDTH), BATCH)
    with pytest.raises(ValueError, match="not in the order of their groups"):
        compiled(torch.randn(7, WIDTH), BATCH.flip(0))


def test_whether_an_index_is_sorted_cuts_nothing() -> None:
    model = Readout(aggr.MLPAggregation(WIDTH, 2, 4, num_layers=1), 2).eval()
    eager, batch = copy.deepcopy(model), BATCH.clamp(max=2)
    report = check(model, (7, WIDTH), EDGES, batch)
    assert report.graphs == 1 and report.fallbacks == []
    for m in (eager, model):
        with pytest.raises(ValueError, match="the 'index' tensor is not sorted. Specifically"):
            m(torch.randn(7, WIDTH), EDGES, batch.flip(0))


@pytest.mark.parametrize("options", [{}, {"batch_size": GRAPHS}, {"max_num_nodes": 3}])
def test_sizes_that_are_read_from_data(options: dict[str, int]) -> None:
    report = check(Dense(**options), (7, WIDTH), BATCH)
    if "max_num_nodes" not in options:
        assert [r for r in report.fallbacks if "to_dense_batch without max_num_nodes" in r]
    assert not [r for r in report.fallbacks if "cumsum" in r or "setitem" in r]


def test_one_graph() -> None:
    """Without numbers of graphs all rows are one, and nothing breaks the program before the mask.

    Dynamo could not read the decorator around the function."""

    class One(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(WIDTH, 3), nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            rows, mask = to_dense_batch(self.first(x).tanh())
            return self.second(rows)[mask]

    report = check(One(), (7, WIDTH))
    assert not [r for r in report.fallbacks if "Dynamo cannot trace" in r]


class ByPointer(nn.Module):
    """A layer, and an aggregation of the rows between pointers."""

    def __init__(self, aggregation: nn.Module) -> None:
        super().__init__()
        self.conv, self.aggregation = GCNConv(WIDTH, WIDTH), aggregation
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor, edge_index: Tensor, ptr: Tensor) -> Tensor:
        h = self.conv(x, edge_index).relu()
        return self.out(self.aggregation(h, ptr=ptr))


@pytest.mark.parametrize("make", [aggr.SumAggregation, aggr.SoftmaxAggregation])
def test_what_torch_makes_of_arguments_alone_comes_first(make: type[nn.Module]) -> None:
    """The groups that pointers tell: the layer before is in one graph with what is behind."""
    model = ByPointer(make())
    report = check(model, (7, WIDTH), EDGES, torch.tensor([0, 2, 3, 3, 7]))
    assert report.graphs == 1
    assert len(report.fallbacks) == 1 and "index_of_pointer" in report.fallbacks[0]


AGGREGATIONS = {
    "sort": (lambda: aggr.SortAggregation(3), 3 * WIDTH),
    "gru": (lambda: aggr.GRUAggregation(WIDTH, WIDTH), WIDTH),
    "lstm": (lambda: aggr.LSTMAggregation(WIDTH, WIDTH), WIDTH),
    "set-transformer": (lambda: aggr.SetTransformerAggregation(WIDTH, heads=2), WIDTH),
    "multiset-transformer": (lambda: aggr.GraphMultisetTransformer(WIDTH, 2, heads=2), WIDTH),
}


class Readout(nn.Module):
    """A layer, an aggregation of each graph's nodes, a layer."""

    def __init__(self, aggregation: nn.Module, width: int) -> None:
        super().__init__()
        self.conv, self.aggregation = GCNConv(WIDTH, WIDTH), aggregation
        self.out = nn.Linear(width, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        h = self.conv(x, edge_index).relu()
        return self.out(self.aggregation(h, batch, dim_size=3).flatten(1))


EDGES = torch.tensor([[0, 1, 3, 4, 5, 2], [1, 0, 4, 5, 6, 2]])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", AGGREGATIONS)
def test_aggregations(name: str) -> None:
    make, width = AGGREGATIONS[name]
    report = check(Readout(make(), width).eval(), (7, WIDTH), EDGES, BATCH.clamp(max=2))
    whole = "transformer" in name  # else torch runs recurrent layers and sorts
    assert report.graphs == 1 if whole else report.graphs >= 2
    assert not [r for r in report.fallbacks if "assert_sorted_index" in r]


def test_global_attention() -> None:
    model = GPSConv(WIDTH, GCNConv(WIDTH, WIDTH), heads=2).eval()
    assert check(model, (7, WIDTH), EDGES, BATCH.clamp(max=2)).graphs >= 1
