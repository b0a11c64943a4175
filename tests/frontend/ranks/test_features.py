"""Dense features that are mostly zeros, on ranks: taken as sparse on all or on none, with the
numbers of one process."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import gnnc
from gnnc.frontend.torch import constant_inputs
from gnnc.frontend.torch.sparse import features
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.exchanges import Exchanges

from . import cut_models
from .cut_models import CLASSES, LAYERS, check, graph, net

LONG = pytest.mark.long
NODES, EDGES, COLUMNS = 60, 150, 40


def sgd(parameters: Any) -> SGD:
    return SGD(parameters, lr=0.1)


def with_words(columns: int = COLUMNS) -> Data:
    """A graph with features of which a twentieth is not 0; of the last ten nodes all are."""
    data = graph(NODES, EDGES, 1)
    torch.manual_seed(5)
    shape = NODES, columns
    data.x = torch.rand(shape, dtype=torch.float64) * (torch.rand(shape) < 0.05)
    data.x[-10:] = 0.0
    return data


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The entries and numbers of features that a program was chosen by: those of all ranks. Small
    ones are enough, and sparse ones cost less."""
    out: list[tuple[int, int]] = []

    def pays(products: Any) -> bool:
        out.extend((p.entries, p.numbers) for p in products)
        return True

    monkeypatch.setattr(constant_inputs, "LEAST", NODES * COLUMNS)
    monkeypatch.setattr(features, "pays", pays)
    return out


def of_width(name: str, monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """A model of layers by name for such features."""
    monkeypatch.setattr(cut_models, "WIDTH", COLUMNS)
    return net(name)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        pytest.param(name, ranks, marks=[] if quick else LONG)
        for name in LAYERS
        # weights of relations and maxima of neighbours are no products of the features with one
        # matrix: they stay dense
        if not name.startswith("r") and name != "sage-max"
        for ranks in (2, 3)
        for quick in [(name, ranks) in (("gcn", 3), ("sage", 2), ("gat", 2))]
    ],
)
def test_models_train_as_on_one_rank(
    monkeypatch: Any, taken: list[tuple[int, int]], name: str, ranks: int
) -> None:
    data = with_words()
    check(monkeypatch, of_width(name, monkeypatch), data, ranks, sgd, 1e-11)
    assert set(taken) == {(int(data.x.count_nonzero()), data.x.numel())}


@pytest.mark.parametrize("name", ["sage-plain", pytest.param("gcn-plain", marks=LONG)])
def test_with_few_rows_in_the_loss_and_a_rank_without_entries(
    monkeypatch: Any, taken: list[tuple[int, int]], name: str
) -> None:
    """And one without nodes, and one with a single one."""
    data = with_words()
    data.train_mask = torch.arange(NODES) % 20 == 19
    owner = (torch.arange(NODES) >= 50).long() * 2
    owner[7] = 3
    check(monkeypatch, of_width(name, monkeypatch), data, 4, sgd, 1e-11, owner=owner)
    assert taken


class Dropped(cut_models.Net):
    """With dropout of the features too."""

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        return super().forward(F.dropout(x, 0.5, self.training), *edges)


def test_features_are_dropped_as_on_one_rank(
    monkeypatch: Any, taken: list[tuple[int, int]]
) -> None:
    """Each number draws what it draws in the whole graph."""
    monkeypatch.setattr(cut_models, "WIDTH", COLUMNS)
    torch.manual_seed(1)
    model = Dropped("sage", False).double()
    check(monkeypatch, model, with_words(), 2, sgd, 1e-11, steps=2)
    assert taken


def test_what_crosses_are_products(monkeypatch: Any, taken: list[tuple[int, int]]) -> None:
    widths, plain = set[int](), Exchanges.start

    def start(self: Exchanges, plan: str, sent: Any, received: Any) -> None:
        if received.dtype == np.float64:
            widths.add(int(np.prod(received.shape[1:])))
        plain(self, plan, sent, received)

    monkeypatch.setattr(Exchanges, "start", start)
    check(monkeypatch, of_width("sage-plain", monkeypatch), with_words(), 2, sgd, 1e-11, steps=2)
    assert taken and COLUMNS not in widths


class Layer(nn.Module):
    """A layer, with something else that is done with its features."""

    def __init__(self, more: bool = False) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.more = SAGEConv(COLUMNS, CLASSES).double(), more

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        out = self.layer(x, edges)
        return out + x[:, :CLASSES].exp() if self.more else out


class Calls:
    """Calls of a rank, whose features change between them, compared with torch's on all."""

    def __init__(self, c: Communicator, layer: nn.Module, data: Data) -> None:
        self.c, self.layer, self.x = c, copy.deepcopy(layer), data.x.clone()
        self.model, self.part = gnnc.distribute(copy.deepcopy(layer), data)
        self.edges = data.edge_index

    def same(self) -> None:
        found = self.model(self.part.x, self.part.edge_index).detach()
        wanted = self.layer(self.x, self.edges).detach()[self.part.n_id]
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11, equal_nan=True)

    def change(self, node: int, values: Any) -> None:
        """The features of one node, on the rank that has it."""
        self.x[node] = values
        mine = self.part.n_id == node
        if bool(mine.any()):
            self.part.x[mine] = values

    @property
    def choices(self) -> str:
        return " ".join(gnnc.explain(self.model).choices)


def test_features_that_change_on_one_rank(taken: list[tuple[int, int]]) -> None:
    """All ranks take them dense where one has what is not finite, and sparse again."""
    layer, data = Layer(), with_words()

    def work(c: Communicator) -> None:
        calls = Calls(c, layer, data)
        calls.same()
        calls.same()
        calls.change(3, torch.arange(COLUMNS, dtype=torch.float64))
        calls.same()
        calls.change(7, float("inf"))
        calls.same()
        calls.change(7, 0.0)
        calls.same()
        assert "taken as sparse" in calls.choices

    virtual.run(3, work)
    assert taken


def test_features_that_change_in_each_call(taken: list[tuple[int, int]]) -> None:
    layer, data = Layer(), with_words()

    def work(c: Communicator) -> None:
        calls = Calls(c, layer, data)
        for node in range(12):
            calls.change(node, float(node))
            calls.same()
        assert "stay dense: they are others at each call" in calls.choices

    virtual.run(2, work)


def test_graphs_that_do_more_than_products(taken: list[tuple[int, int]]) -> None:
    layer, data = Layer(more=True), with_words()

    def work(c: Communicator) -> None:
        calls = Calls(c, layer, data)
        calls.same()
        calls.change(1, 1.0)
        calls.same()
        assert "features stay dense" in calls.choices

    virtual.run(2, work)
    assert not taken


@pytest.mark.parametrize(("dense", "sparse"), [(15, True), (45, False)])
def test_what_one_rank_has_is_not_what_all_have(
    taken: list[tuple[int, int]], dense: int, sparse: bool
) -> None:
    """The features of the first nodes, which are one rank's, are no zeros."""
    data, layer = with_words(), Layer()
    data.x[:dense] = torch.rand(dense, COLUMNS, dtype=torch.float64) + 1

    owner = (torch.arange(NODES) >= dense).long()

    def work(_: Communicator) -> None:
        model, part = gnnc.distribute(copy.deepcopy(layer), data, owner=owner)
        found = model(part.x, part.edge_index)
        wanted = layer(data.x, data.edge_index)[part.n_id]
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)
        assert ("taken as sparse" in str(gnnc.explain(model))) is sparse

    virtual.run(2, work)
    assert bool(taken) is sparse


def test_sparse_features_are_an_option(taken: list[tuple[int, int]]) -> None:
    layer, data = Layer(), with_words()

    def work(_: Communicator) -> None:
        model, part = gnnc.distribute(copy.deepcopy(layer), data, sparse_features=False)
        model(part.x, part.edge_index)

    virtual.run(2, work)
    assert not taken
