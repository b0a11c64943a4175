"""PyG's functions on pointers, which say where groups of rows in order begin."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv
from torch_geometric.utils import cumsum, segment

from .contract import check

X = torch.linspace(-1, 1, 24).view(6, 4).sin()
EDGES = torch.tensor([[0, 1, 2, 2, 5], [1, 0, 2, 1, 3]])


def test_a_running_sum_of_columns_is_compiled():
    def function(x: Tensor) -> Tensor:
        return cumsum(x.detach() * 2, 1)

    report = check(function, (X,), (X[:4],))
    assert report.graphs == 1 and not report.fallbacks, report.fallbacks


class OfSizes(nn.Module):
    """A layer, and an aggregation of as many rows each as `sizes` says."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = GCNConv(4, 3), nn.Linear(3, 2)

    def forward(self, x: Tensor, edge_index: Tensor, sizes: Tensor) -> Tensor:
        h = self.conv(x, edge_index).tanh()
        return self.out(segment(h, cumsum(sizes), "max"))


def test_a_running_sum_of_arguments_cuts_nothing():
    report = check(OfSizes(), (X, EDGES, torch.tensor([2, 0, 4])))
    assert report.graphs == 1 and not [r for r in report.fallbacks if "out=" in r], report.fallbacks


@pytest.mark.parametrize(
    "function, args",
    [
        (cumsum, (X.clone().requires_grad_(),)),
        (lambda x: cumsum(x, -1), (X,)),
        (lambda x: cumsum(x > 0), (X,)),
        (cumsum, (torch.arange(5, dtype=torch.int32),)),
    ],
    ids=["gradient", "last", "bool", "int32"],
)
def test_running_sums_that_pyg_refuses_or_does_otherwise(
    function: Callable[..., Any], args: tuple[Any, ...]
):
    check(function, args)


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_an_infinite_extremum_is_that_of_no_rows(reduce: str):
    """And rows of 0 tie with nothing, as they do with the start of `scatter`."""
    x = X.clone()
    x[0:2, 0], x[5, -1], x[2, 1], x[3, 2] = math.inf, math.inf, -math.inf, 0.0
    x[2:4, 3] = 0.0  # two that tie
    x[4, 3] = 1.0 if reduce == "min" else -1.0

    def function(x: Tensor, ptr: Tensor) -> Tensor:
        return segment(x, ptr, reduce).exp()

    report = check(function, (x.requires_grad_(), torch.tensor([0, 2, 5, 5, 6])))
    assert report.graphs == 1


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_an_extremum_among_numbers_that_are_none(reduce: str):
    x = X.clone()
    x[3, 1] = math.nan
    check(lambda x, ptr: segment(x, ptr, reduce), (x, torch.tensor([0, 2, 5, 6])))


@pytest.mark.parametrize("reduce", ["sum", "max"])
def test_integers_between_pointers_are_refused_as_by_torch(reduce: str):
    x = torch.arange(12).view(6, 2)
    check(lambda x, ptr: segment(x, ptr, reduce), (x, torch.tensor([0, 2, 6])))
