"""Recurrent cells are compiled: the rows of a graph's nodes are their inputs and states."""

from __future__ import annotations

import copy
from typing import Any

import pytest
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


class OneStep(nn.Module):
    """Messages as sequences of one step, as in examples of MPNN."""

    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.layer = kind(WIDTH, WIDTH, **options)
        directions = self.layer.num_layers * (2 if self.layer.bidirectional else 1)
        self.states = directions
        self.linear = nn.Linear(self.layer.hidden_size * (2 if self.layer.bidirectional else 1), 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, ...]:
        h = x.unsqueeze(0).repeat(self.states, 1, 1)
        state: Any = (h, h.sin()) if isinstance(self.layer, nn.LSTM) else h
        time = 1 if self.layer.batch_first else 0
        for _ in range(2):
            m = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
            out, state = self.layer(m.unsqueeze(time), state)
            x = self.linear(out.squeeze(time))
        return x, *(state if isinstance(state, tuple) else (state,))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_layers": 2, "bidirectional": True, "bias": False},
        {"batch_first": True, "bidirectional": True},
    ],
    ids=["plain", "layers", "both-directions"],
)
@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
def test_layers_over_one_step(kind: type[nn.RNNBase], options: dict[str, Any]) -> None:
    eager = perturbed(lambda: OneStep(kind, **options)).double()
    compiled = gnnc.compile(copy.deepcopy(eager))
    for n in (6, 11):
        g = random_edges(n, n, n, 3 * n, "uniform")
        assert_interchangeable(eager, compiled, (drawn(n, WIDTH), g.index))
    report = gnnc.explain(compiled)
    assert report.graphs == 1 and report.kernels and report.fallbacks == []


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(
    "steps, options, why",
    [
        (2, {}, "sequences of more than one step"),
        (1, {"num_layers": 2, "dropout": 0.5}, "dropout between recurrent layers"),
        (1, {"proj_size": 2}, "states are projected"),
    ],
)
def test_what_of_recurrent_layers_torch_runs(steps: int, options: dict[str, Any], why: str) -> None:
    """And only that: what is around it is compiled."""

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.layer = nn.Linear(WIDTH, WIDTH), nn.LSTM(WIDTH, WIDTH, **options)

        def forward(self, x: Tensor) -> Tensor:
            h = self.linear(x).tanh()
            return self.layer(torch.stack([h] * steps))[0].sum(0).tanh()

    eager, x = perturbed(Around), torch.randn(5, WIDTH)
    compiled = gnnc.compile(copy.deepcopy(eager))
    torch.manual_seed(0)
    want = eager(x)
    torch.manual_seed(0)
    torch.testing.assert_close(compiled(x), want)
    report = gnnc.explain(compiled)
    assert report.kernels and any(why in text for text in report.fallbacks)


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
