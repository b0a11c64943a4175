"""`gnnc.distribute`: ranks that are threads train as one process does, in double precision."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv

import gnnc
from gnnc.frontend.torch import constant_inputs
from gnnc.frontend.torch.calls import graphs_seen
from gnnc.frontend.torch.importer import Unsupported
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.exchanges import Exchanges

from .cut_models import (
    CLASSES,
    LAYERS,
    WIDTH,
    MakeOptimizer,
    adam,
    check,
    graph,
    hetero_graph,
    hetero_net,
    net,
    on_ranks,
    sgd,
    training,
)

LONG = pytest.mark.long
QUICK = ("gcn", "gat")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else LONG) for n in LAYERS]
)
def test_models_train_as_on_one_rank(monkeypatch: Any, name: str) -> None:
    check(monkeypatch, net(name), graph(24, 90), 3)


@LONG
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("make", "tolerance"), [(sgd, 1e-11), (adam, 1e-9)])
def test_twenty_steps_on_more_ranks(
    monkeypatch: Any, name: str, ranks: int, make: MakeOptimizer, tolerance: float
) -> None:
    check(monkeypatch, net(name), graph(40, 150, 1, hub=True), ranks, make, tolerance, steps=20)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "gat" else LONG) for n in (*LAYERS, "hgt")]
)
def test_two_runs_have_the_same_bits(monkeypatch: Any, name: str) -> None:
    """Of losses, parameters and statistics, in single precision, however ranks meet."""
    typed = name == "hgt"
    data = hetero_graph((20, 30, 4), 80, 1) if typed else graph(40, 150, 1, hub=True)
    data = data.apply(lambda x: x.float() if x.dtype == torch.float64 else x)
    work = training((hetero_net(name) if typed else net(name)).float(), data)
    (losses, state), *_ = first = on_ranks(monkeypatch, 3, work)
    for other_losses, other in (*first, *on_ranks(monkeypatch, 3, work)):
        assert other_losses == losses
        assert all(torch.equal(other[key], x) for key, x in state.items())


@pytest.mark.parametrize(
    "name", ["sage-plain", *(pytest.param(f"{n}-plain", marks=LONG) for n in LAYERS if n != "sage")]
)
def test_more_ranks_than_nodes(monkeypatch: Any, name: str) -> None:
    check(monkeypatch, net(name), graph(3, 5), 4)


@pytest.mark.parametrize("stay", [True, False])
def test_inputs_that_stay_are_received_once(monkeypatch: Any, stay: bool) -> None:
    """And again, by all ranks, where one rank changes its own; where they change at each call, all
    ranks find out at the same one."""
    monkeypatch.setattr(constant_inputs, "LEAST", 24 * WIDTH)  # numbers of all ranks together
    monkeypatch.setattr(graphs_seen, "STATES", 1000 if stay else 2)
    data, layer = graph(24, 90), SAGEConv(WIDTH, CLASSES).double()
    start, started = Exchanges.start, Counter[int]()

    def noted(self: Exchanges, plan: str, sent: Any, received: Any) -> None:
        started[self.communicator.rank] += 1
        start(self, plan, sent, received)

    monkeypatch.setattr(Exchanges, "start", noted)

    def work(c: Any) -> list[tuple[Tensor, Tensor, Tensor]]:
        model, part = gnnc.distribute(copy.deepcopy(layer), data)
        out: list[tuple[Tensor, Tensor, Tensor]] = []

        def messages() -> int:
            before = started[c.rank]
            y = model(part.x, part.edge_index).detach()
            out.append((part.n_id, part.x.clone(), y))
            return started[c.rank] - before

        assert messages() == 1
        # Dynamo traces anew what threads have traced at once, so it may take some calls
        assert not stay or any(messages() == 0 for _ in range(50))
        if c.rank == 1:
            part.x.mul_(2.0)
        assert messages() == 1
        for _ in range(0 if stay else 6):
            part.x.add_(1.0)
            assert messages() == 1
        return out

    for parts in zip(*virtual.run(3, work), strict=True):
        nodes, x, y = (torch.cat(each) for each in zip(*parts, strict=True))
        torch.testing.assert_close(y, layer(x[nodes.argsort()], data.edge_index)[nodes])


def test_batch_normalisation_on_ranks_with_one_node(monkeypatch: Any) -> None:
    """The statistics are those of all: torch itself asks for two rows where it is called."""
    data = graph(5, 12)
    check(monkeypatch, net("sage"), data, 3, owner=torch.tensor([0, 0, 0, 1, 2]))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.BatchNorm1d(WIDTH)(torch.ones(1, WIDTH))


def test_statistics_that_are_means_of_all_batches(monkeypatch: Any) -> None:
    model = net("sage")
    model.norm.momentum = None
    check(monkeypatch, model, graph(24, 90), 3, sgd, 1e-11, steps=20)


def test_owners_of_the_user_and_ranks_without_nodes(monkeypatch: Any) -> None:
    data = graph(20, 60)
    owner = torch.arange(20) % 2 * 2
    check(monkeypatch, net("gcn"), data, 3, owner=owner)


def test_parts_have_the_rows_of_the_whole() -> None:
    data = graph(30, 100)
    data.edge_weight = torch.randn(100)

    def work(_: Any) -> Data:
        return gnnc.distribute(net("gcn"), data)[1]

    parts = virtual.run(3, work)
    nodes = torch.cat([p.n_id for p in parts])
    edges = torch.cat([p.e_id for p in parts])
    assert torch.equal(nodes.sort().values, torch.arange(30))
    assert torch.equal(edges.sort().values, torch.arange(100))
    for p in parts:
        assert torch.equal(p.x, data.x[p.n_id]) and p.num_nodes == len(p.n_id)
        assert torch.equal(p.edge_weight, data.edge_weight[p.e_id])
        src, dst = data.edge_index[:, p.e_id]
        assert torch.equal(p.n_id[p.edge_index[1]], dst)
        own = p.edge_index[0] < p.num_nodes
        assert torch.equal(p.n_id[p.edge_index[0][own]], src[own])
        assert not torch.isin(src[~own], p.n_id).any()


class Weighted(nn.Module):
    """A layer that takes a weight an edge."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = GCNConv(WIDTH, CLASSES).double()

    def forward(self, x: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        return self.layer(x, edges, weight)


def test_gradients_of_losses_in_torch_add_up() -> None:
    data = graph(30, 100)
    data.edge_weight = torch.rand(100, dtype=torch.float64)
    torch.manual_seed(2)
    model = Weighted()

    def gradients(compiled: nn.Module, part: Data) -> list[Tensor]:
        out = compiled(part.x, part.edge_index, part.edge_weight)
        F.cross_entropy(out, part.y, reduction="sum").div(30).backward()
        return [p.grad for p in compiled.parameters()]

    def work(_: Any) -> list[Tensor]:
        return gradients(*gnnc.distribute(copy.deepcopy(model), data))

    wanted = gradients(copy.deepcopy(model), data)
    for found in virtual.run(3, work):
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


class Scores(nn.Module):
    """A score for each edge, as in link prediction, of what a layer gives for its ends; and how
    much of it each number has."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = SAGEConv(WIDTH, 6).double()

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        z = self.layer(x, edges).relu()
        products = z[edges[0]] * z[edges[1]]
        return products.sum(-1), products.softmax(-1)


def test_results_with_a_row_for_each_edge() -> None:
    """In the order of the edges of a part, with gradients."""
    data, weight = graph(30, 110), torch.randn(110, 6, dtype=torch.float64)
    torch.manual_seed(2)
    model = Scores()

    def results(called: nn.Module, part: Data, edges: Tensor) -> list[Tensor]:
        score, share = called(part.x, part.edge_index)
        (F.softplus(score).sum() + (share * weight[edges]).sum()).backward()
        return [score.detach(), share.detach(), *(p.grad for p in called.parameters())]

    def work(_: Any) -> tuple[Tensor, list[Tensor]]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data)
        return part.e_id, results(mine, part, part.e_id)

    score, share, *wanted = results(copy.deepcopy(model), data, torch.arange(110))
    for edges, found in virtual.run(3, work):
        for a, b in zip(found, (score[edges], share[edges], *wanted), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_edges_that_are_not_known_are_refused() -> None:
    data = graph(20, 60)

    def work(_: Any) -> None:
        model, part = gnnc.distribute(net("gcn"), data)
        with pytest.raises(Unsupported, match="lead to nodes of several ranks: which are whose"):
            model(part.x, part.edge_index.clone())

    virtual.run(2, work)


def test_bad_arguments() -> None:
    data = graph(5, 9)
    with pytest.raises(TypeError, match="model must be a torch.nn.Module, not int"):
        gnnc.distribute(1, data)
    with pytest.raises(TypeError, match=r"Data or HeteroData, or a gnnc.PartitionFolder, not dict"):
        gnnc.distribute(net("gcn"), {})
    with pytest.raises(ValueError, match="data has no edge_index"):
        gnnc.distribute(net("gcn"), Data(x=data.x))
    with pytest.raises(ValueError, match="owner: ranks are 0 to 0, not 0 to 4"):
        gnnc.distribute(net("gcn"), data, owner=range(5))
    with pytest.raises(ValueError, match="owner: an integer for each of the 5 nodes"):
        gnnc.distribute(net("gcn"), data, owner=[0.0, 1.0])
