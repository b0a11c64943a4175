"""Edges that a model drops while it trains: ranks keep those that one process keeps."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric import nn as G
from torch_geometric.utils import dropout_edge, negative_sampling

import gnnc
from gnnc.frontend.torch.importer import Unsupported
from gnnc.frontend.torch.ranks import cut_tensors, drawn_edges
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.errors import Disagreement

from .cut_models import CLASSES, WIDTH, graph

P = 0.4


class Dropped(nn.Module):
    """Two layers, each on edges that are dropped anew."""

    def __init__(self, make: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = make(WIDTH, 8), make(8, CLASSES)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        for layer in (self.first, self.second):
            kept, _ = dropout_edge(edges, p=P, training=self.training)
            x = layer(x, kept).tanh()
        return x


class Numbers(threading.local):
    """The same random numbers on each rank that is a thread, and where there are none."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(5)

    def __call__(self, count: int) -> Tensor:
        return torch.rand(count, generator=self.generator)


LAYERS: dict[str, Callable[[int, int], nn.Module]] = {
    "gcn": G.GCNConv,
    "gat": lambda a, b: G.GATConv(a, b, heads=2, concat=False),
    "sage": G.SAGEConv,
}


def trained(called: nn.Module, data: Any, total: int) -> tuple[list[float], list[Tensor]]:
    """What each of three steps adds to the loss, and the parameters after these."""
    optimizer, losses = torch.optim.SGD(called.parameters(), lr=0.5), list[float]()
    for _ in range(3):
        optimizer.zero_grad()
        out = called(data.x, data.edge_index)
        loss = F.cross_entropy(out, data.y, reduction="sum") / total
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().clone() for p in called.parameters()]


def one_step(called: nn.Module, data: Any) -> float:
    step = gnnc.train_step(
        lambda: F.cross_entropy(called(data.x, data.edge_index), data.y),
        torch.optim.SGD(called.parameters(), lr=0.5),
    )
    return step().item()


@pytest.mark.long
def test_a_step_of_training_is_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    data = graph(30, 110)
    torch.manual_seed(2)
    model = Dropped(G.SAGEConv).double()
    models = [copy.deepcopy(model) for _ in range(2)]
    monkeypatch.setattr(drawn_edges, "uniform", numbers := Numbers())
    kept = [data.edge_index[:, numbers(110) >= P] for _ in range(2)]
    out = model.second(model.first(data.x, kept[0]).tanh(), kept[1]).tanh()
    wanted = F.cross_entropy(out, data.y).item()

    def work(c: Any) -> float:
        mine, part = gnnc.distribute(models[c.rank], data)
        return one_step(mine, part)

    for found in virtual.run(2, work):
        assert abs(found - wanted) < 1e-11


@pytest.mark.long
def test_one_process_keeps_the_edges_that_torch_keeps() -> None:
    data, model = graph(30, 110), Dropped(G.GCNConv).double()
    compiled = gnnc.compile(copy.deepcopy(model))
    for training in (True, False, True):
        each: list[Tensor] = []
        for m in (model, compiled):
            torch.manual_seed(7)
            each.append(m.train(training)(data.x, data.edge_index))
        torch.testing.assert_close(*each, rtol=1e-11, atol=1e-11)


@pytest.mark.long
@pytest.mark.parametrize(("name", "chunks"), [("gcn", 1), ("gat", 2), ("sage", 1)])
def test_ranks_keep_the_edges_of_one_process(
    monkeypatch: pytest.MonkeyPatch, name: str, chunks: int
) -> None:
    data = graph(30, 110)
    torch.manual_seed(2)
    model = Dropped(LAYERS[name]).double()
    models = [copy.deepcopy(model) for _ in range(2)]
    numbers = Numbers()
    monkeypatch.setattr(drawn_edges, "uniform", numbers)

    def of_one(edges: Tensor, p: float, training: bool = True) -> tuple[Tensor, Tensor]:
        mask = numbers(edges.size(1)) >= p
        return edges[:, mask], mask

    with monkeypatch.context() as patch:
        patch.setitem(Dropped.forward.__globals__, "dropout_edge", of_one)
        losses, wanted = trained(copy.deepcopy(model), data, data.num_nodes)

    def work(c: Any) -> Any:
        mine, part = gnnc.distribute(models[c.rank], data, chunks=chunks)
        return trained(mine, part, data.num_nodes)

    every = virtual.run(2, work)
    shares = [sum(each) for each in zip(*(found for found, _ in every), strict=True)]
    torch.testing.assert_close(shares, losses, rtol=0, atol=1e-11)
    for _, parameters in every:
        for a, b in zip(parameters, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


def test_what_is_kept_is_known_as_edges_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_edges, "uniform", numbers := Numbers())
    monkeypatch.setattr(drawn_edges, "BLOCK", 16)
    data, mask = graph(30, 110), numbers(110) >= P
    wanted, model = data.edge_index[:, mask], nn.Linear(1, 1)

    def work(_: Any) -> Tensor:
        _, part = gnnc.distribute(model, data, chunks=2)
        made, mine = drawn_edges.dropout_edge(part.edge_index, P)
        assert torch.equal(mine, mask[part.e_id]) and torch.equal(made, part.edge_index[:, mine])
        known = cut_tensors.edges_of(made, "made")
        assert known.total == wanted.size(1) and known.stops[-1] == made.size(1)
        assert (made[0, : known.stops[0]] < part.num_nodes).all()
        assert (made[0, known.stops[0] :] >= part.num_nodes).all()
        numbers = torch.from_numpy(known.numbers)
        assert torch.equal(part.n_id[made[1]], wanted[1, numbers])
        return numbers

    every = torch.cat(virtual.run(2, work))
    assert torch.equal(every.sort().values, torch.arange(wanted.size(1)))


def test_ranks_that_draw_other_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    data, model, numbers = graph(30, 110), nn.Linear(1, 1), Numbers()
    monkeypatch.setattr(drawn_edges, "uniform", numbers)

    def work(c: Any) -> None:
        _, part = gnnc.distribute(model, data)
        numbers(c.rank)
        drawn_edges.dropout_edge(part.edge_index, P)

    with pytest.raises(Disagreement, match="the edges that are drawn"):
        virtual.run(2, work)


class Weighted(nn.Module):
    """A layer on the edges that are kept, with their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = G.GraphConv(WIDTH, CLASSES)

    def forward(self, x: Tensor, edges: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        kept, mask = dropout_edge(edges, p=P)
        return self.layer(x, kept, weight[mask]), mask


def test_rows_of_the_edges_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    data = graph(30, 190)
    data.edge_weight = torch.rand(190, dtype=torch.float64)
    torch.manual_seed(2)
    model = Weighted().double()
    models = [copy.deepcopy(model) for _ in range(2)]
    monkeypatch.setattr(drawn_edges, "uniform", numbers := Numbers())
    mask = numbers(190) >= P
    given = data.edge_weight.clone().requires_grad_()
    wanted = model.layer(data.x, data.edge_index[:, mask], given[mask])
    wanted.square().sum().backward()

    def work(c: Any) -> Any:
        mine, part = gnnc.distribute(models[c.rank], data)
        part.edge_weight.requires_grad_()
        out, kept = mine(part.x, part.edge_index, part.edge_weight)
        out.square().sum().backward()
        with pytest.raises(ValueError, match="rows of a tensor that are not those that gnnc.dist"):
            mine(part.x, part.edge_index, part.edge_weight.detach().clone().requires_grad_())
        return part, out, kept, part.edge_weight.grad

    for part, out, kept, grad in virtual.run(2, work):
        assert torch.equal(kept, mask[part.e_id])
        torch.testing.assert_close(out, wanted[part.n_id], rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(grad, given.grad[part.e_id], rtol=1e-11, atol=1e-11)


class Made(nn.Module):
    """Drops edges of those that it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = G.SAGEConv(WIDTH, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.layer(x, dropout_edge(edges.flip(0), p=P)[0])


@pytest.mark.long
def test_edges_that_a_model_makes_are_not_dropped() -> None:
    refused(Made, "edges are dropped of those that gnnc.distribute")


class Negative(nn.Module):
    """Draws pairs that are no edges of as many nodes as edges tell, which no rank knows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = G.SAGEConv(WIDTH, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        z, pairs = self.layer(x, edges), negative_sampling(edges, num_neg_samples=9)
        return (z[pairs[0]] * z[pairs[1]]).sum(-1)


@pytest.mark.long
def test_pairs_that_no_rank_knows_are_not_drawn() -> None:
    refused(Negative, "a call is one program.*: draw others before gnnc.distribute")


class Both(nn.Module):
    """Drops edges together with their reverse, which may lie with another rank."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = G.SAGEConv(WIDTH, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.layer(x, dropout_edge(edges, p=P, force_undirected=True)[0])


def test_both_directions_of_edges_are_not_dropped() -> None:
    refused(Both, "rand: .*Over several ranks .* edges by dropout_edge without force")


class Asks(nn.Module):
    """Asks for a number before it goes on, and draws none but those of dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = G.SAGEConv(WIDTH, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = F.dropout(x, 0.5, self.training)
        return self.layer(x, edges) if float(x.sum()) > 0 else x


class AsksAndDraws(Asks):
    """Asks for one that it has drawn."""

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.layer(x, edges) if one_of_three() else x


def one_of_three() -> bool:
    return int(some_of_three(1)[0]) == 0


def some_of_three(count: int) -> Tensor:
    return torch.randint(3, (count,))


def test_what_may_be_drawn_is_said_where_something_is_drawn() -> None:
    place = r"\(.*test_drawn_edges.py:\d+\)$"
    refused(Asks, rf"cannot trace this call: [^\n]*data-dependent((?!drawn)[^\n])*{place}")
    refused(AsksAndDraws, f"cannot trace this call: .*draw others before gnnc.distribute {place}")


def refused(make: Callable[[], nn.Module], message: str) -> None:
    data = graph(20, 60)
    models = [make().double() for _ in range(2)]

    def work(c: Any) -> None:
        mine, part = gnnc.distribute(models[c.rank], data)
        with pytest.raises(Unsupported, match=message):
            mine(part.x, part.edge_index)
        step = gnnc.train_step(
            lambda: mine(part.x, part.edge_index).sum(), torch.optim.SGD(mine.parameters(), lr=0.1)
        )
        with pytest.raises(Unsupported, match=message):
            step()

    virtual.run(2, work)
