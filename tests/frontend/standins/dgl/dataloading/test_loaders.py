"""Loaders: which indices are in a batch, what random numbers go by, what is gathered when."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ..both import ours, theirs
from .graphs import EDGES, NODES, edges, graph, typed


def loader(g: Any, indices: Any, sampler: Any = None, **arguments: Any) -> Any:
    made = ours.dataloading.NeighborSampler([3, 2]) if sampler is None else sampler
    return ours.dataloading.DataLoader(g, indices, made, **{"batch_size": 16, **arguments})


class Given(ours.dataloading.Sampler):
    """A user's sampler: the indices, and the thread's own random numbers."""

    def sample(self, g: Any, indices: Any) -> Any:
        return indices


@pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")
def test_batches_of_indices():
    g, ids = graph(ours), torch.arange(NODES).flip(0)
    for arguments in ({}, {"drop_last": True}, {"batch_size": 7}):
        size = {"batch_size": 16, **arguments}
        wanted = list(theirs.dataloading.DataLoader(graph(theirs), ids, _Theirs(), **size))
        made = loader(g, ids, Given(), **arguments)
        assert len(made) == len(wanted)
        for mine, real in zip(made, wanted, strict=True):
            assert torch.equal(mine, real)
    first, second = (torch.cat(list(made)) for made in [loader(g, ids, Given(), shuffle=True)] * 2)
    assert not torch.equal(first, second)
    assert torch.equal(first.sort().values, second.sort().values)


class _Theirs(theirs.dataloading.Sampler):
    def sample(self, g: Any, indices: Any) -> Any:
        return indices


def test_indices_by_type():
    g = typed(ours)
    ids = {"user": torch.arange(20, 30), "item": [4, 2, 3]}
    made = list(loader(g, ids, Given(), batch_size=8))
    assert [set(batch) for batch in made] == [{"user"}, {"user", "item"}]
    assert made[1]["user"].tolist() == [28, 29] and made[1]["item"].tolist() == [4, 2, 3]
    inputs, outputs, blocks = next(iter(loader(g, ids, batch_size=12, shuffle=True, seed=2)))
    assert set(inputs) == {"user", "item", "shop"} and set(outputs) == {"user", "item"}
    assert blocks[-1].num_dst_nodes("item") == outputs["item"].shape[0]


def key(batch: Any) -> list[Any]:
    inputs, outputs, blocks = batch
    return [inputs.tolist(), outputs.tolist(), [edges(block) for block in blocks]]


def test_random_numbers_go_by_seed_epoch_and_step():
    g, ids = graph(ours), torch.arange(NODES)

    def run(**arguments: Any) -> list[Any]:
        return [key(b) for b in loader(g, ids, shuffle=True, **arguments)]

    first = run(seed=5)
    assert run(seed=5, num_workers=2) == first
    assert run(seed=6) != first
    later = loader(g, ids, shuffle=True, seed=5)
    epochs = [[key(b) for b in later] for _ in range(2)]
    assert epochs[0] == first and epochs[1] != first
    later.set_epoch(1)
    assert [key(b) for b in later] == epochs[1]


def test_negatives_go_by_the_key_too():
    loading, g = ours.dataloading, graph(ours)
    sampler = loading.as_edge_prediction_sampler(
        loading.NeighborSampler([2]), negative_sampler=loading.negative_sampler.GlobalUniform(2)
    )

    def run() -> list[Any]:
        made = loader(g, torch.arange(40), sampler, seed=1, num_workers=2)
        return [(n.tolist(), negative.edges()[0].tolist()) for n, _, negative, _ in made]

    assert run() == run()


def test_a_seed_fixes_what_is_drawn_without_a_loader():
    g, sampler = graph(ours), ours.dataloading.NeighborSampler([2])
    made: list[Any] = []
    for _ in range(2):
        ours.seed(8)
        made.append([key(sampler.sample(g, torch.arange(30))) for _ in range(2)])
    assert made[0] == made[1] and made[0][0] != made[0][1]


def test_what_is_prefetched():
    g = graph(ours)
    sampler = ours.dataloading.NeighborSampler(
        [3, 2], prefetch_node_feats=["x"], prefetch_labels=["y"], prefetch_edge_feats=["w"]
    )
    _, _, blocks = next(iter(loader(g, torch.arange(NODES), sampler)))
    gathered = [set(dict.keys(f)) for f in (blocks[0]._source_frames["_N"],)]
    assert gathered == [{"x", "_ID"}]
    assert set(dict.keys(blocks[-1]._target_frames["_N"])) == {"y", "_ID"}
    assert {*dict.keys(blocks[0]._edge_frames["_N", "_E", "_N"])} == {"w", "_ID"}
    assert torch.equal(blocks[0].srcdata["x"], g.ndata["x"][blocks[0].srcdata["_ID"]])


def test_another_device():
    g = graph(ours)
    inputs, _, blocks = next(iter(loader(g, torch.arange(NODES), device="meta")))
    assert {inputs.device.type, blocks[0].device.type} == {"meta"}
    assert set(dict.keys(blocks[0]._source_frames["_N"])) == {"_ID"}  # gathered when it is read
    for data in (blocks[0].srcdata, blocks[0].edata):
        assert {data[name].device.type for name in data} == {"meta"}
    assert blocks[0].srcdata["x"].shape == (blocks[0].num_src_nodes(), 3)


def test_graphs_of_a_data_set():
    data = [(graph(ours), torch.tensor(i), {"name": i}) for i in range(5)]
    made = list(ours.dataloading.GraphDataLoader(data, batch_size=2))
    assert [b[0].batch_size for b in made] == [2, 2, 1]
    assert made[0][0].num_edges() == 2 * EDGES
    assert made[1][1].tolist() == [2, 3] and made[1][2]["name"].tolist() == [2, 3]


def test_errors():
    g, ids = graph(ours), torch.arange(NODES)
    for arguments, kind, words in (
        ({"use_ddp": True}, NotImplementedError, "DistributedSampler"),
        ({"use_uva": True}, NotImplementedError, "use_uva"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"indices": ids.float()}, TypeError, "indices"),
        ({"indices": {"_N": ids > 3}}, TypeError, "'_N'"),
    ):
        with pytest.raises(kind, match=words):
            loader(g, **{"indices": ids, **arguments})
    made = iter(loader(g, torch.tensor([NODES]), num_workers=1))
    with pytest.raises(ours.DGLError, match=str(NODES)):
        next(made)
    with pytest.raises(NotImplementedError, match="use_ddp"):
        ours.dataloading.GraphDataLoader([g], use_ddp=True)
