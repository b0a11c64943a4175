"""Batches with PyG's names and meaning."""

import threading

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import SAGEConv, Sequential, to_hetero
from torch_geometric.sampler import NumNeighbors
from torch_geometric.utils import trim_to_layer

import gnnc
from gnnc.frontend.torch.loader import NeighborLoader

from .graphs import plain, typed


def same(a: Data, b: Data) -> bool:
    x, y = a.to_dict(), b.to_dict()
    return x.keys() == y.keys() and all(
        torch.equal(x[k], y[k]) if isinstance(x[k], torch.Tensor) else x[k] == y[k] for k in x
    )


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("replace", [False, True])
def test_what_a_batch_has(disjoint: bool, replace: bool):
    data = plain()
    loader = NeighborLoader(
        data, [4, 3], data.train_mask, batch_size=16, disjoint=disjoint, replace=replace, seed=0
    )
    seeds = data.train_mask.nonzero().view(-1)
    assert len(loader) == 3
    batches = list(loader)
    assert [b.batch_size for b in batches] == [16, 16, 8]
    assert torch.equal(torch.cat([b.input_id for b in batches]), seeds)
    for batch in batches:
        n, e = batch.n_id, batch.e_id
        assert torch.equal(n[: batch.batch_size], batch.input_id)
        assert torch.equal(n[batch.edge_index], data.edge_index[:, e])
        for name in ("x", "y", "train_mask", "time"):
            assert torch.equal(batch[name], data[name][n])
        for name in ("edge_attr", "weight", "edge_time"):
            assert torch.equal(batch[name], data[name][e])
        assert batch.name == "a graph" and batch.num_nodes == n.numel()
        assert sum(batch.num_sampled_nodes) == n.numel() and len(batch.num_sampled_nodes) == 3
        assert sum(batch.num_sampled_edges) == e.numel() and len(batch.num_sampled_edges) == 2
        assert ("batch" in batch) == disjoint and "seed_time" not in batch
        if disjoint:
            assert torch.equal(batch.batch[: batch.batch_size], torch.arange(batch.batch_size))
            assert torch.equal(*batch.batch[batch.edge_index])
    assert data.num_nodes == 120 and "n_id" not in data


@pytest.mark.parametrize("workers", [0, 2])
def test_all_neighbours_give_the_numbers_of_the_whole_graph(workers: int):
    data = plain()
    layers = torch.nn.ModuleList([SAGEConv(5, 8), SAGEConv(8, 3)])

    def run(x: torch.Tensor, edge_index: torch.Tensor, batch: Data | None) -> torch.Tensor:
        for i, layer in enumerate(layers):
            if batch is not None:
                x, edge_index, _ = trim_to_layer(
                    i, batch.num_sampled_nodes, batch.num_sampled_edges, x, edge_index
                )
            x = layer(x, edge_index).tanh()
        return x

    whole = run(data.x, data.edge_index, None)
    for batch in NeighborLoader(data, [-1, -1], batch_size=50, num_workers=workers):
        plainly = run(batch.x, batch.edge_index, None)[: batch.batch_size]
        trimmed = run(batch.x, batch.edge_index, batch)[: batch.batch_size]
        assert torch.allclose(plainly, whole[batch.input_id], atol=1e-6)
        assert torch.allclose(trimmed, whole[batch.input_id], atol=1e-6)


def test_batches_of_an_epoch_by_their_number():
    loader = NeighborLoader(plain(), [4, 3], batch_size=50, shuffle=True, seed=2, num_workers=0)
    epochs = [list(loader), list(loader)]
    for epoch in (1, 0):
        batches = loader.batches(epoch, threads=1)
        assert len(batches) == len(epochs[epoch]) == 3
        for step in (2, 0, 1, 0):
            assert same(batches(step), epochs[epoch][step])
    assert loader.epoch == 2


def test_batches_do_not_depend_on_threads():
    data = plain()
    runs = [
        [
            list(loader)
            for loader in [NeighborLoader(data, [3, 2], batch_size=30, shuffle=True, seed=5, **k)]
            for _ in range(2)
        ]
        for k in (dict(num_workers=0), dict(num_workers=1), dict(num_workers=2, prefetch_factor=1))
    ]
    for epochs in runs[1:]:
        for mine, first in zip(epochs, runs[0], strict=True):
            assert all(same(a, b) for a, b in zip(mine, first, strict=True))
    first, second = ([b.input_id for b in epoch] for epoch in runs[0])
    assert not torch.equal(torch.cat(first), torch.cat(second))
    assert torch.equal(torch.cat(first).sort().values, torch.arange(120))


def test_epochs_go_on_where_they_are_told():
    loader = NeighborLoader(plain(), [3], batch_size=40, shuffle=True, seed=1)
    epochs = [list(loader) for _ in range(3)]
    assert loader.epoch == 3
    loader.set_epoch(1)
    assert all(same(a, b) for a, b in zip(list(loader), epochs[1], strict=True))
    assert not same(epochs[0][0], epochs[1][0])


def test_seeds_come_from_torch():
    def seed(manual: int, **arguments: object) -> int:
        torch.manual_seed(manual)
        return NeighborLoader(plain(), [3], **arguments).seed

    assert seed(3) == seed(3) != seed(4)
    own = [seed(i, generator=torch.Generator().manual_seed(9)) for i in (1, 2)]
    assert own[0] == own[1]


def test_input_nodes():
    data = plain()
    numbers = torch.tensor([9, 4, 4, 100])
    (batch,) = NeighborLoader(data, [2], numbers, batch_size=9)
    assert torch.equal(batch.n_id[:4], numbers) and torch.equal(batch.input_id, torch.arange(4))
    rows = [batch.e_id[batch.edge_index[1] == i].tolist() for i in (1, 2)]
    assert rows[0] == rows[1] != []
    assert len(NeighborLoader(data, [2], numbers, batch_size=3, drop_last=True)) == 1
    (batch,) = NeighborLoader(data, [2], [3, 5], batch_size=9)
    assert batch.n_id[:2].tolist() == [3, 5]
    (batch,) = NeighborLoader(data, [2], numbers, batch_size=9, sampler=[3, 0])
    assert batch.n_id[:2].tolist() == [100, 9]
    one = NeighborLoader(data, [2], numbers, batch_size=9)
    assert one([3, 1]).n_id[:2].tolist() == [100, 4] and one.epoch == 0
    assert list(NeighborLoader(data, [2], torch.zeros(0, dtype=torch.long))) == []


def test_induced_subgraphs():
    data = plain()
    (batch,) = NeighborLoader(
        data, [3, 3], torch.arange(5), batch_size=5, subgraph_type="induced", seed=2
    )
    inside = torch.isin(data.edge_index, batch.n_id).all(0)
    assert torch.equal(batch.e_id.sort().values, inside.nonzero().view(-1))
    assert "num_sampled_nodes" not in batch


@pytest.mark.parametrize("attribute", ["time", "edge_time"])
@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_times(attribute: str, strategy: str):
    data, seeds = plain(), torch.arange(40)
    given = torch.full((40,), 30) if attribute == "edge_time" else None
    for batch in NeighborLoader(
        data, [4, 4], seeds, given, time_attr=attribute, temporal_strategy=strategy, batch_size=8
    ):
        limits = batch.seed_time[batch.batch]
        wanted = data.time[batch.n_id[:8]] if given is None else given[:8]
        assert torch.equal(batch.seed_time, wanted)
        if attribute == "time":
            assert (batch.time <= limits).all()
        else:
            assert (batch.edge_time <= limits[batch.edge_index[1]]).all()
            assert batch.e_id.numel()


def test_weights():
    data = plain()
    data.weight[data.edge_index[0] % 2 == 0] = 0
    for batch in NeighborLoader(data, [5, 5], weight_attr="weight", batch_size=40):
        assert (data.edge_index[0, batch.e_id] % 2 == 1).all()


@pytest.mark.parametrize("seeds", ["paper", "author", ("paper", torch.arange(10))])
def test_types(seeds: object):
    data = typed()
    fans = {t: [3, 2] for t in data.edge_types}
    fans["venue", "prints", "paper"] = [0, 1]
    name = seeds if isinstance(seeds, str) else seeds[0]
    for batch in NeighborLoader(data, fans, seeds, batch_size=10, num_workers=2):
        assert isinstance(batch, HeteroData)
        size = batch[name].batch_size
        assert torch.equal(batch[name].n_id[:size], batch[name].input_id)
        for kind in data.edge_types:
            edges, (a, _, b) = batch[kind], kind
            ends = torch.stack(
                [batch[a].n_id[edges.edge_index[0]], batch[b].n_id[edges.edge_index[1]]]
            )
            assert torch.equal(ends, data[kind].edge_index[:, edges.e_id])
            assert torch.equal(edges.edge_attr, edges.e_id)
            assert sum(edges.num_sampled_edges) == edges.e_id.numel()
        for kind in data.node_types:
            assert sum(batch[kind].num_sampled_nodes) == batch[kind].num_nodes
        assert batch["venue", "prints", "paper"].num_sampled_edges[0] == 0
        assert torch.equal(batch["paper"].x, data["paper"].x[batch["paper"].n_id])


def test_fan_outs_of_pyg():
    data = typed()
    kind = ("paper", "by", "author")
    fans = NumNeighbors({kind: [0, 1]}, default=[2, 2])
    (batch,) = NeighborLoader(data, fans, ("paper", torch.arange(20)), batch_size=20)
    assert batch[kind].num_sampled_edges[0] == 0 < batch[kind].num_sampled_edges[1]
    assert sum(batch["paper", "cites", "paper"].num_sampled_edges) > 0
    (batch,) = NeighborLoader(plain(), NumNeighbors([2]), [1], batch_size=1)
    assert batch.e_id.numel() == 2


def test_a_compiled_model_has_the_same_numbers_on_all_batches():
    data = plain()
    first, second = ((SAGEConv(a, b), "x, edge_index -> x") for a, b in ((5, 8), (8, 3)))
    layers = Sequential("x, edge_index", [first, torch.nn.ReLU(), second])
    compiled = gnnc.compile(layers)
    for batch in NeighborLoader(data, [3, 2], batch_size=50, seed=0):
        wanted = layers(batch.x, batch.edge_index)[: batch.batch_size]
        got = compiled(batch.x, batch.edge_index)[: batch.batch_size]
        assert torch.allclose(got, wanted, atol=1e-5)


def test_all_neighbours_of_all_types_give_the_numbers_of_the_whole_graph():
    data = typed()
    data["venue"].x = torch.rand(6, 4)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x, edge_index).tanh(), edge_index)

    data["paper", "in", "venue"].edge_index = data["venue", "prints", "paper"].edge_index.flip(0)
    del data["paper", "cites", "paper"].weight
    net = to_hetero(Net(), data.metadata())
    with torch.no_grad():
        whole = net(data.x_dict, data.edge_index_dict)["paper"]
        for batch in NeighborLoader(data, [-1, -1], "paper", batch_size=30):
            mine = net(batch.x_dict, batch.edge_index_dict)["paper"][: batch["paper"].batch_size]
            assert torch.allclose(mine, whole[batch["paper"].input_id], atol=1e-5)


def test_times_of_one_type():
    data = typed()
    for batch in NeighborLoader(data, [3, 3], "paper", time_attr="time", batch_size=20):
        papers = batch["paper"]
        assert (papers.time <= papers.seed_time[papers.batch]).all()
        assert batch["author"].batch.max() < 20


class Wide(Data):
    """The second dimension of `wide` is that of nodes."""

    def __cat_dim__(self, key: str, value: object, *rest: object) -> object:
        return 1 if key == "wide" else super().__cat_dim__(key, value, *rest)


def test_attributes_of_every_kind():
    data = Wide(**plain(30, 80).to_dict())
    data.wide = torch.rand(2, 30)
    data.columns = torch.rand(30, 6)[:, ::2]
    data.half = torch.rand(30, 3).to(torch.bfloat16)
    data.learnt = torch.rand(30, 2, requires_grad=True)
    data.array = np.arange(60).reshape(30, 2)
    data.words = [str(i) for i in range(30)]
    data.sparse_rows = torch.rand(30, 4).round().to_sparse()
    for batch in NeighborLoader(data, [2], batch_size=7):
        n = batch.n_id
        assert torch.equal(batch.wide, data.wide[:, n])
        for name in ("columns", "half", "learnt"):
            assert torch.equal(batch[name], data[name][n])
        assert batch.learnt.requires_grad
        assert np.array_equal(batch.array, data.array[n])
        assert batch.words == [str(i) for i in n.tolist()]
        assert torch.equal(batch.sparse_rows.to_dense(), data.sparse_rows.to_dense()[n])


def test_transforms_run_in_the_threads_and_raise_there():
    seen: list[str] = []

    def mark(batch: Data) -> Data:
        seen.append(threading.current_thread().name)
        if batch.input_id[0] == 40:
            raise ArithmeticError("not this one")
        batch.mark = 1
        return batch

    batches = iter(NeighborLoader(plain(), [2], batch_size=20, transform=mark))
    assert next(batches).mark == 1 and next(batches).mark == 1
    with pytest.raises(ArithmeticError, match="not this one"):
        next(batches)
    assert all(name.startswith("gnnc-loader") for name in seen)


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(data=3), TypeError, "Data and HeteroData, not of int"),
        (dict(data=Data(x=torch.zeros(3, 1))), TypeError, "has no edge_index"),
        (dict(input_nodes=torch.tensor([120])), IndexError, r"input_nodes\[0\] is 120"),
        (dict(input_nodes=torch.zeros(3, dtype=torch.bool)), ValueError, "has 3 entries, not 120"),
        (dict(input_nodes=torch.zeros(2)), TypeError, "node numbers or a mask"),
        (dict(num_neighbors=[-2]), ValueError, r"fanouts\[0\] is -2"),
        (dict(batch_size=0), ValueError, "batch_size must be at least 1"),
        (dict(num_workers=-1), ValueError, "num_workers must be at least 0"),
        (dict(prefetch_factor=0), ValueError, "prefetch_factor at least 1"),
        (dict(seed=-1), ValueError, "seed is -1"),
        (dict(shuffle=True, sampler=[1]), ValueError, "leave out shuffle"),
        (dict(subgraph_type="bidirectional"), ValueError, "'bidirectional' is not supported"),
        (dict(subgraph_type="induced", disjoint=True), ValueError, "not supported with disjoint"),
        (dict(weight_attr="w"), AttributeError, "has no 'w'"),
        (dict(time_attr="w"), AttributeError, "neither nodes nor edges"),
        (dict(time_attr="x"), TypeError, "'x' must be a tensor of integers"),
        (dict(time_attr="edge_time"), ValueError, "say in input_time"),
        (dict(input_time=torch.zeros(120)), ValueError, "input_time needs time_attr"),
        (
            dict(time_attr="time", input_time=torch.zeros(2)),
            ValueError,
            "input_time must have shape",
        ),
        (dict(temporal_strategy="first"), ValueError, "'uniform' or 'last'"),
        (dict(pin_memory=True), TypeError, "pin_memory"),
    ],
)
def test_bad_arguments(change: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        NeighborLoader(**(dict(data=plain(), num_neighbors=[2]) | change))


@pytest.mark.parametrize(
    "nodes, error, message",
    [
        (None, TypeError, "a type of nodes, or a pair"),
        (torch.arange(3), TypeError, "a type of nodes, or a pair"),
        ("journal", ValueError, "names 'journal'"),
    ],
)
def test_bad_types(nodes: object, error: type, message: str):
    with pytest.raises(error, match=message):
        NeighborLoader(typed(), [2], nodes)


def test_fan_outs_for_some_relations():
    with pytest.raises(ValueError, match="no numbers for"):
        NeighborLoader(typed(), {("paper", "cites", "paper"): [2]}, "paper")
    fans = {t: [2] * (1 + i % 2) for i, t in enumerate(typed().edge_types)}
    with pytest.raises(ValueError, match="different numbers of hops"):
        NeighborLoader(typed(), fans, "paper")
