"""Recurrent layers over a constant number of steps are compiled step by step, as cells are."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, JumpingKnowledge, Set2Set

import gnnc

from .equality import assert_interchangeable, random_edges
from .function_checks import drawn
from .layer_checks import perturbed

WIDTH, HIDDEN, STEPS = 4, 3, 2

LAYERS: dict[str, tuple[type[nn.Module], dict[str, Any]]] = {
    "gru": (nn.GRU, {"batch_first": True}),
    "gru-both-ways": (nn.GRU, {"bidirectional": True, "bias": False}),
    "lstm": (nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    "lstm-projected": (nn.LSTM, {"num_layers": 2, "proj_size": 2, "batch_first": True}),
    "rnn": (nn.RNN, {"num_layers": 2}),
    "rnn-relu": (nn.RNN, {"nonlinearity": "relu", "batch_first": True}),
}


def made(name: str) -> nn.Module:
    kind, options = LAYERS[name]
    return perturbed(lambda: kind(WIDTH, HIDDEN, **options)).double()


def sequences(layer: Any, rows: int) -> Tensor:
    return drawn(rows, STEPS, WIDTH) if layer.batch_first else drawn(STEPS, rows, WIDTH)


def assert_equal(eager: nn.Module, compiled: nn.Module, inputs: Sequence[tuple[Any, ...]]) -> None:
    """Compiled whole, it gives what torch does on all inputs."""
    for args in inputs:
        assert_interchangeable(eager, compiled, args)
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and report.kernels


@pytest.mark.parametrize("name", LAYERS)
def test_equal_to_torch(name: str) -> None:
    eager: Any = made(name)
    compiled = gnnc.compile(copy.deepcopy(eager))
    assert_equal(eager, compiled, [(sequences(eager, rows),) for rows in (7, 9, 1)])


@pytest.mark.parametrize("name", ["gru", "lstm-projected"])
def test_states_that_are_given(name: str) -> None:
    eager: Any = made(name)
    compiled = gnnc.compile(copy.deepcopy(eager))

    def arguments(rows: int) -> tuple[Any, ...]:
        widths = [getattr(eager, "proj_size", 0) or HIDDEN, HIDDEN]
        h, cell = (drawn(eager.num_layers, rows, w, seed=w) for w in widths)
        return sequences(eager, rows), (h, cell) if isinstance(eager, nn.LSTM) else h

    assert_equal(eager, compiled, [arguments(5), arguments(8)])


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


def arguments(nodes: int, *shape: int) -> tuple[Tensor, Tensor]:
    g = random_edges(nodes, nodes, nodes, 3 * nodes, "uniform")
    return drawn(nodes, *shape), g.index


def test_cells_of_nodes() -> None:
    eager = perturbed(Cells).double()
    compiled = gnnc.compile(copy.deepcopy(eager))
    assert_equal(eager, compiled, [arguments(n, WIDTH) for n in (6, 11)])


class Snapshots(nn.Module):
    """A layer on each snapshot of the features, a recurrent layer over each node's, and a jump."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(WIDTH, WIDTH)
        self.gru = nn.GRU(WIDTH, HIDDEN, batch_first=True)
        self.jump = JumpingKnowledge("lstm", WIDTH, STEPS)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        each = [self.conv(x[:, t], edge_index).tanh() for t in range(STEPS)]
        return self.gru(torch.stack(each, dim=1))[0][:, -1], self.jump(each)


def test_snapshots_of_a_graph() -> None:
    eager = perturbed(Snapshots).double()
    compiled = gnnc.compile(copy.deepcopy(eager))
    assert_equal(eager, compiled, [arguments(n, STEPS, WIDTH) for n in (6, 11)])


def test_a_readout_that_reads_several_times() -> None:
    eager = perturbed(lambda: Set2Set(WIDTH, processing_steps=2)).double()
    compiled = gnnc.compile(copy.deepcopy(eager))
    batches = [torch.tensor([0, 0, 1, 1, 1, 2]), torch.tensor([0, 1, 1, 2, 3])]
    for batch in batches:
        size = int(batch[-1]) + 1
        assert_interchangeable(eager, compiled, (drawn(len(batch), WIDTH), batch, None, size))
    assert gnnc.explain(compiled).fallbacks == []


def test_many_steps_run_in_torch() -> None:
    eager = perturbed(lambda: nn.GRU(WIDTH, HIDDEN, batch_first=True)).double()
    compiled = gnnc.compile(copy.deepcopy(eager))
    x = drawn(3, 100, WIDTH)
    assert torch.allclose(compiled(x)[0], eager(x)[0])
    assert "100 steps of 1 cells, which are too many" in str(gnnc.explain(compiled))


def test_dropout_between_layers() -> None:
    """Of the first layer's results some are gone, and the others larger; not those of the last."""
    layer = perturbed(lambda: nn.GRU(WIDTH, HIDDEN, num_layers=2, dropout=0.5, batch_first=True))
    compiled = gnnc.compile(copy.deepcopy(layer))
    x = torch.randn(50, STEPS, WIDTH)
    assert not torch.equal(compiled(x)[0], compiled(x)[0])
    assert torch.allclose(compiled(x)[1][0], layer(x)[1][0], atol=1e-5)
    assert gnnc.explain(compiled).fallbacks == []
    assert torch.allclose(compiled.eval()(x)[0], layer.eval()(x)[0], atol=1e-5)


def test_packed_sequences_run_in_torch() -> None:
    eager = perturbed(lambda: nn.GRU(WIDTH, HIDDEN, batch_first=True)).double()

    def packed(x: Tensor, lengths: Tensor) -> Tensor:
        rows = nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        return eager(rows)[1][0]

    compiled = gnnc.compile(lambda x, lengths: packed(x * 2, lengths))
    x, lengths = drawn(4, STEPS, WIDTH), torch.tensor([1, 2, 2, 1])
    assert torch.allclose(compiled(x, lengths), packed(x * 2, lengths))
