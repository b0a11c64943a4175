"""Recurrent cells are compiled: the rows of a graph's nodes are their inputs and states."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

import gnnc

from .equality import assert_interchangeable, random_edges
from .function_checks import drawn
from .layer_checks import perturbed

WIDTH = 4


class Cells(nn.Module):
    """Messages into each kind of cell, whose states the next round reads."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.lstm = nn.GRUCell(WIDTH, WIDTH), nn.LSTMCell(WIDTH, WIDTH)
        self.tanh = nn.RNNCell(WIDTH, WIDTH, bias=False)
        self.relu = nn.RNNCell(WIDTH, WIDTH, nonlinearity="relu")

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        h, cell = x, torch.zeros_like(x)
        for _ in range(2):
            m = torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]])
            h, cell = self.lstm(m, (self.gru(m, h), cell))
            h = h + self.relu(m, self.tanh(m, h))
        return h, cell


def test_cells_of_nodes() -> None:
    eager = perturbed(Cells).double()
    compiled = gnnc.compile(copy.deepcopy(eager))
    for n in (6, 11):
        g = random_edges(n, n, n, 3 * n, "uniform")
        assert_interchangeable(eager, compiled, (drawn(n, WIDTH), g.index))
    report = gnnc.explain(compiled)
    assert report.graphs == 1 and report.kernels and report.fallbacks == []


class Gated(nn.Module):
    """Messages into a cell, and a product of its states."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gru, self.out = nn.GRUCell(width, width), nn.Linear(width, 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        m = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return self.out(self.gru(m, x).tanh()).square().mean()


def test_a_step_keeps_six_rows_a_cell() -> None:
    """Messages, both gates, the new state, its part that the reset gate scales, and the state of
    the cell: not all that a product gives for three gates, nor what follows from these."""
    width, sizes = 64, (4000, 8000)
    planned: list[int] = []
    for n in sizes:
        model, edge_index = Gated(width), random_edges(n, n, n, 3 * n, "uniform").index
        optimizer = torch.optim.SGD(model.parameters())
        step = gnnc.train_step(model, optimizer, hoist_inputs=False)
        step(torch.randn(n, width), edge_index)
        (found,) = gnnc.explain(step).footprints()
        planned.append(found.forward)
    rows = (planned[1] - planned[0]) / ((sizes[1] - sizes[0]) * width * 4)
    assert rows < 7
