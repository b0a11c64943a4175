"""Loaders that several processes share: each has its part of every batch."""

import pickle
from typing import Any

import pytest
import torch

import gnnc.dgl as dgl
from gnnc.frontend.torch.loader import (
    ClusterLoader,
    LinkNeighborLoader,
    NeighborLoader,
    RandomWalkLoader,
    ShaDowKHopSampler,
)

from .graphs import plain, typed


def neighbours(**more: Any) -> NeighborLoader:
    return NeighborLoader(plain(), [3, 2], batch_size=16, shuffle=True, seed=4, **more)


def shadow() -> ShaDowKHopSampler:
    return ShaDowKHopSampler(plain(), 2, 3, batch_size=16, shuffle=True, seed=4)


def graphs(loader: Any) -> list[dict[int, list[int]]]:
    """Of each batch the edges of each seed's graph."""
    found: list[dict[int, list[int]]] = []
    for batch in loader:
        roots = batch.root_n_id if "root_n_id" in batch else torch.arange(batch.batch_size)
        edges = batch.batch[batch.edge_index[0]]
        found.append(
            {
                int(batch.n_id[root]): batch.e_id[edges == g].sort().values.tolist()
                for g, root in enumerate(roots)
            }
        )
    return found


@pytest.mark.parametrize("make", [shadow, lambda: neighbours(disjoint=True)])
@pytest.mark.parametrize("size", [2, 3])
def test_graphs_of_seeds_do_not_depend_on_the_split(make: Any, size: int):
    whole = make()
    assert whole.splits
    parts = [whole.shared(rank, size) for rank in range(size)]
    for _ in range(2):  # epochs
        for batch, *split in zip(graphs(whole), *map(graphs, parts), strict=True):
            assert sum(map(len, split)) == len(batch)
            assert {seed: e for part in split for seed, e in part.items()} == batch
            assert max(map(len, split)) - min(map(len, split)) <= 1


def test_other_batches_have_the_same_seeds():
    whole = neighbours()
    assert not whole.splits
    parts = [whole.shared(rank, 2) for rank in range(2)]
    for batch, *split in zip(whole, *parts, strict=True):
        seeds = torch.cat([b.n_id[: b.batch_size] for b in split])
        assert torch.equal(seeds.sort().values, batch.n_id[: batch.batch_size].sort().values)
    assert len(whole) == len(parts[0]) == 8


def test_a_part_of_one_is_all():
    whole = neighbours()
    for batch, same in zip(whole, whole.shared(0, 1), strict=True):
        assert torch.equal(batch.n_id, same.n_id) and torch.equal(batch.e_id, same.e_id)


@pytest.mark.parametrize(
    "loader",
    [
        neighbours(),
        shadow(),
        NeighborLoader(typed(), [2], input_nodes="paper", batch_size=30, seed=1),
        LinkNeighborLoader(plain(), [2], batch_size=300, neg_sampling="binary", seed=1),
        ClusterLoader(plain(), torch.arange(120) % 4, batch_size=2),
        RandomWalkLoader(plain(), 10, 3, seed=1),
    ],
)
def test_loaders_are_sent_to_processes(loader: Any):
    loader.set_epoch(3)
    sent = pickle.loads(pickle.dumps(loader))
    assert sent.epoch == 3
    batches = list(zip(loader, sent, strict=True))
    assert batches
    for one, other in batches:
        for a, b in zip(one.stores, other.stores, strict=True):
            assert list(a.keys()) == list(b.keys())
            assert all(torch.equal(a[k], b[k]) for k in a.keys() if torch.is_tensor(a[k]))


@pytest.mark.parametrize(
    ("more", "size"), [({}, 9), ({"drop_last": True}, 17), ({"sampler": range(17)}, 2)]
)
def test_batches_without_seeds_are_refused(more: dict[str, Any], size: int):
    """120 seeds in batches of 16: the last has 8."""
    loader = NeighborLoader(plain(), [2], batch_size=16, **more)
    with pytest.raises(ValueError, match="batch_size, drop_last"):
        loader.shared(0, size)
    assert len(NeighborLoader(plain(), [2], batch_size=16, drop_last=True).shared(0, 16)) == 7


def message_flow(sampler: str) -> Any:
    data = plain()
    g = dgl.graph((data.edge_index[0], data.edge_index[1]), num_nodes=120)
    g.ndata["x"] = data.x
    made = getattr(dgl.dataloading, sampler)([2, 3])
    return dgl.dataloading.DataLoader(
        g, torch.arange(120), made, batch_size=16, shuffle=True, seed=4
    )


def edges_by_layer(batch: Any) -> list[set[int]]:
    return [set(block.edata[dgl.EID].tolist()) for block in batch[2]]


@pytest.mark.parametrize("sampler", ["NeighborSampler", "LaborSampler"])
def test_message_flow_of_parts_is_that_of_the_whole(sampler: str):
    whole = message_flow(sampler)
    assert whole.splits
    parts = [whole.shared(rank, 2) for rank in range(2)]
    for batch, *split in zip(whole, *parts, strict=True):
        seeds = torch.cat([b[1] for b in split])
        assert torch.equal(seeds.sort().values, batch[1].sort().values)
        for layer, *those in zip(*map(edges_by_layer, [batch, *split]), strict=True):
            assert set.union(*those) == layer


def test_message_flow_is_sent_to_processes_with_its_structure():
    loader = message_flow("NeighborSampler")
    sent = pickle.loads(pickle.dumps(loader))
    (known,) = sent.graph_sampler._hops._samplers._known
    assert known is sent.graph._topology
    for one, other in zip(loader, sent, strict=True):
        assert torch.equal(one[0], other[0])
        assert edges_by_layer(one) == edges_by_layer(other)
    assert len(sent.graph_sampler._hops._samplers._known) == 1
