"""Batches that are induced subgraphs."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from gnnc.frontend.torch.loader import ClusterLoader, RandomWalkLoader, ShaDowKHopSampler

from .graphs import plain, typed


def edges_between(data: Data, nodes: torch.Tensor) -> torch.Tensor:
    return torch.isin(data.edge_index, nodes).all(0).nonzero().view(-1)


def check(data: Data, batch: Data) -> None:
    assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
    assert torch.equal(batch.x, data.x[batch.n_id])
    assert torch.equal(batch.edge_attr, data.edge_attr[batch.e_id])


@pytest.mark.parametrize("depth, fan", [(0, 3), (2, 3), (1, -1)])
def test_shadow(depth: int, fan: int):
    data = plain()
    loader = ShaDowKHopSampler(data, depth, fan, data.train_mask, batch_size=12, seed=3)
    seeds = []
    for batch in loader:
        assert isinstance(batch, Batch) and batch.name == "a graph"
        check(data, batch)
        seeds.append(batch.n_id[batch.root_n_id])
        assert torch.equal(batch.y, data.y[seeds[-1]])
        assert torch.equal(batch.batch[batch.root_n_id], torch.arange(batch.num_graphs))
        assert torch.equal(batch.ptr.diff(), batch.batch.bincount())
        for g in range(batch.num_graphs):
            mine = batch.n_id[batch.ptr[g] : batch.ptr[g + 1]]
            got = batch.e_id[batch.batch[batch.edge_index[0]] == g].sort().values
            assert torch.equal(got, edges_between(data, mine))
    assert torch.equal(torch.cat(seeds), data.train_mask.nonzero().view(-1))


def test_shadow_with_all_neighbours_reaches_them():
    data = plain()
    for batch in ShaDowKHopSampler(data, 1, -1, batch_size=40):
        for root in batch.root_n_id[:5].tolist():
            seed, g = batch.n_id[root], batch.batch[root]
            around = data.edge_index[0, data.edge_index[1] == seed]
            wanted = torch.cat([around, seed.view(1)]).unique()
            assert torch.equal(batch.n_id[batch.batch == g].sort().values, wanted)


def test_clusters():
    data = plain()
    parts = torch.arange(120) * 7 % 5
    batches = list(ClusterLoader(data, parts, batch_size=2, shuffle=True, seed=1))
    assert len(batches) == 3
    assert torch.equal(torch.cat([b.n_id for b in batches]).sort().values, torch.arange(120))
    for batch in batches:
        check(data, batch)
        assert torch.isin(torch.arange(120)[torch.isin(parts, parts[batch.n_id])], batch.n_id).all()
        assert torch.equal(batch.e_id.sort().values, edges_between(data, batch.n_id))


def test_clusters_may_be_empty():
    batches = list(ClusterLoader(plain(), torch.arange(120) % 2 * 3))
    assert [b.num_nodes for b in batches] == [60, 0, 0, 60]


def test_random_walks():
    data = plain()
    loader = RandomWalkLoader(data, 10, 3, num_steps=4, seed=2)
    epochs = [list(loader) for _ in range(2)]
    assert len(loader) == 4 == len(epochs[0])
    for batch in epochs[0]:
        check(data, batch)
        assert torch.equal(batch.n_id, batch.n_id.unique()) and batch.num_nodes <= 40
        assert torch.equal(batch.e_id.sort().values, edges_between(data, batch.n_id))
    kinds = {tuple(b.n_id.tolist()) for epoch in epochs for b in epoch}
    assert len(kinds) == 8
    loader.set_epoch(1)
    assert torch.equal(next(iter(loader)).n_id, epochs[1][0].n_id)


def test_walks_go_along_edges():
    ring = torch.stack([torch.arange(50), (torch.arange(50) + 1) % 50])
    data = Data(x=torch.rand(50, 2), edge_index=ring)
    for batch in RandomWalkLoader(data, 1, 4, num_steps=20, seed=0):
        nodes = set(batch.n_id.tolist())
        assert any(nodes == {(v + i) % 50 for i in range(5)} for v in nodes)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: ShaDowKHopSampler(typed(), 1, 2), TypeError, "reads a Data, not a HeteroData"),
        (lambda: ShaDowKHopSampler(plain(), -1, 2), ValueError, "depth must not be negative"),
        (lambda: ClusterLoader(plain(), torch.zeros(3).long()), ValueError, r"of shape \[120\]"),
        (lambda: ClusterLoader(plain(), -torch.ones(120).long()), ValueError, "from 0 on"),
        (lambda: ClusterLoader(typed(), torch.zeros(3)), TypeError, "reads a Data"),
        (lambda: RandomWalkLoader(plain(), 0, 2), ValueError, "batch_size=0"),
        (
            lambda: RandomWalkLoader(
                Data(x=torch.zeros(0, 1), edge_index=torch.zeros(2, 0).long()), 1, 2
            ),
            ValueError,
            "without nodes",
        ),
    ],
)
def test_bad_arguments(make, error: type, message: str):
    with pytest.raises(error, match=message):
        make()
