"""Rows that cross in chunks give what they give at once."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import gnnc
from gnnc.frontend.torch.ranks.chunks import chunk_of, sort_edges
from gnnc.runtime.ranks import virtual

from .cut_models import LAYERS, check, graph, hetero_graph, hetero_net, net
from .test_distribute import Scores


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "rgcn" else pytest.mark.long) for n in LAYERS]
)
def test_models_train_as_on_one_rank(monkeypatch: Any, name: str) -> None:
    check(monkeypatch, net(name), graph(40, 160, hub=True), 3, steps=2, chunks=2)


@pytest.mark.long
@pytest.mark.parametrize("name", ["hgt", "gat"])
def test_types_of_nodes(monkeypatch: Any, name: str) -> None:
    check(monkeypatch, hetero_net(name), hetero_graph((12, 20, 3), 50), 3, chunks=3)


def test_results_are_in_the_order_of_the_edges_of_the_part() -> None:
    data = graph(30, 110)
    torch.manual_seed(2)
    model = Scores()
    score, share = copy.deepcopy(model)(data.x, data.edge_index)

    def work(_: Any) -> None:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, chunks=3)
        assert torch.equal(part.edge_type, data.edge_type[part.e_id])
        own = data.edge_index[:, part.e_id]
        here = part.edge_index[0] < part.num_nodes
        assert torch.equal(part.n_id[part.edge_index[1]], own[1])
        assert torch.equal(part.n_id[part.edge_index[0][here]], own[0][here])
        for a, b in zip(mine(part.x, part.edge_index), (score, share), strict=True):
            torch.testing.assert_close(a, b[part.e_id], rtol=1e-10, atol=1e-10)

    virtual.run(3, work)


def test_chunks_of_what_goes_to_a_rank_are_runs_of_it() -> None:
    peer = np.repeat([0, 2, 5], [5, 1, 4])
    assert chunk_of(peer, 2).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 1, 1]
    assert chunk_of(peer[:0], 3).tolist() == []
    ends = np.array([[0, 1, 4, 2, 3, 2], [0, 0, 1, 1, 0, 0]])
    numbers = np.array([3, 9, 1, 4, 6, 8])
    ends, numbers, stops = sort_edges(ends, numbers, 2, 2, np.array([0, 1, 0]), 2)
    assert stops == (2, 5, 6) and numbers.tolist() == [3, 9, 1, 4, 8, 6]
    assert ends.tolist() == [[0, 1, 4, 2, 2, 3], [0, 0, 1, 1, 0, 0]]


def test_bad_arguments() -> None:
    data: Any = Data(edge_index=torch.zeros(2, 0).long())
    for chunks in (0, 1.5):
        with pytest.raises(ValueError, match=f"chunks: {chunks}, and rows cross in one chunk"):
            gnnc.distribute(net("gcn"), data, chunks=chunks)
