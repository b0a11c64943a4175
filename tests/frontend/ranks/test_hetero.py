"""`gnnc.distribute` of graphs with types of nodes and edges."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import HeteroData

import gnnc
from gnnc.runtime.ranks import virtual

from .cut_models import (
    EDGE_TYPES,
    HETERO,
    NODE_TYPES,
    MakeOptimizer,
    adam,
    check,
    hetero_graph,
    hetero_net,
    sgd,
)

LONG = pytest.mark.long


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "sage" else LONG) for n in HETERO]
)
def test_models_train_as_on_one_rank(monkeypatch: Any, name: str) -> None:
    """Some ranks have one node of a type, or none."""
    check(monkeypatch, hetero_net(name), hetero_graph((9, 14, 3), 30), 3, steps=2)


@LONG
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize(("make", "tolerance"), [(sgd, 1e-11), (adam, 1e-9)])
def test_twenty_steps_on_more_ranks(
    monkeypatch: Any, ranks: int, make: MakeOptimizer, tolerance: float
) -> None:
    data = hetero_graph((20, 30, 4), 80, 1)
    check(monkeypatch, hetero_net("hgt"), data, ranks, make, tolerance, steps=20)


def owners(data: HeteroData, ranks: int) -> dict[str, torch.Tensor]:
    return {t: torch.arange(data[t].num_nodes) * 7 % ranks for t in NODE_TYPES}


def test_parts_have_the_rows_of_the_whole() -> None:
    data = hetero_graph((9, 14, 3), 30)
    for t in EDGE_TYPES:
        data[t].edge_attr = torch.randn(30, 2)
    owner = owners(data, 3)

    def work(_: Any) -> HeteroData:
        return gnnc.distribute(hetero_net("sage"), data, owner=owner)[1]

    parts = virtual.run(3, work)
    for t in NODE_TYPES:
        for rank, p in enumerate(parts):
            assert torch.equal(p[t].n_id, (owner[t] == rank).nonzero()[:, 0])
            assert torch.equal(p[t].x, data[t].x[p[t].n_id])
            assert p[t].num_nodes == len(p[t].n_id)
    for t in EDGE_TYPES:
        numbers = torch.cat([p[t].e_id for p in parts])
        assert torch.equal(numbers.sort().values, torch.arange(30))
        for p in parts:
            src, dst = data[t].edge_index[:, p[t].e_id]
            mine, of = p[t].edge_index, p[t[0]]
            assert torch.equal(p[t].edge_attr, data[t].edge_attr[p[t].e_id])
            assert torch.equal(p[t[2]].n_id[mine[1]], dst)
            own = mine[0] < of.num_nodes
            assert torch.equal(of.n_id[mine[0][own]], src[own])
            assert not torch.isin(src[~own], of.n_id).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: o.pop("venue"), "there are none of the nodes of type 'venue'"),
        (lambda o: o.update(venue=[0]), "'venue' has 3 nodes, and owners of shape"),
        (lambda o: o.update(venue=[0, 1, 9]), "ranks are 0 to 1, not 0 to 9"),
    ],
    ids=["none", "shape", "rank"],
)
def test_owners_that_are_refused(change: Any, message: str) -> None:
    data = hetero_graph((9, 14, 3), 30)
    owner: dict[str, Any] = dict(owners(data, 2))
    change(owner)

    def work(_: Any) -> None:
        with pytest.raises(ValueError, match=message):
            gnnc.distribute(hetero_net("sage"), data, owner=owner)

    virtual.run(2, work)


def test_edges_of_nodes_that_there_are_not() -> None:
    data = hetero_graph((9, 14, 3), 30)
    data[EDGE_TYPES[0]].edge_index[1, 4] = 14
    with pytest.raises(ValueError, match="edge_index: nodes are numbered 0 to 13, and it has"):
        gnnc.distribute(hetero_net("sage"), data)
