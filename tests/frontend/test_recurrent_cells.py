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
