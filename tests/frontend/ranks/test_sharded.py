"""`gnnc.distribute(.., sharded=[..])`: each rank has the rows of its own nodes of a learned table,
and ranks train as one process does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch_geometric.data import HeteroData
from torch_geometric.nn import GCNConv, HeteroConv, SAGEConv
from torch_geometric.nn.models import LightGCN

import gnnc
from gnnc.frontend.torch.importer import Unsupported
from gnnc.frontend.torch.ranks import sharded
from gnnc.frontend.torch.ranks.drawn_rows import seed_of_all
from gnnc.runtime.partition import edges, files
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.alone import Alone
from gnnc.runtime.ranks.errors import Disagreement
from gnnc.runtime.ranks.virtual import Virtual

from .cut_models import CLASSES, WIDTH, graph

LONG = pytest.mark.long
NODES, EDGES, HIDDEN = 30, 110, 8
TABLE = "embedding.weight"

OPTIMIZERS: dict[str, Callable[[Any], Optimizer]] = {
    "sgd": partial(SGD, lr=0.1),
    "momentum": partial(SGD, lr=0.1, momentum=0.9),
    "adam": partial(Adam, lr=0.01),
    "amsgrad": partial(AdamW, lr=0.01, amsgrad=True),
}


class Learned(nn.Module):
    """Two layers on a learned table instead of features, and a bias a node."""

    def __init__(self, nodes: int = NODES) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding = nn.Embedding(nodes, WIDTH)
        self.bias = nn.Parameter(torch.randn(nodes))
        self.norm = nn.BatchNorm1d(HIDDEN)
        self.first, self.second = SAGEConv(WIDTH, HIDDEN), GCNConv(HIDDEN, CLASSES)
        self.double()

    def forward(self, edges: Tensor) -> Tensor:
        h = self.norm(self.first(self.embedding.weight, edges)).relu()
        return self.second(h, edges) + self.bias.unsqueeze(1)


BOTH = [TABLE, "bias"]
Trained = tuple[list[float], dict[str, Tensor], Tensor, Optimizer]


def trained(
    model: nn.Module, data: Any, make: Callable[[Any], Optimizer], steps: int, **options: Any
) -> Trained:
    """Losses, parameters, the numbers of nodes and the optimizer after some steps."""
    mine, part = gnnc.distribute(copy.deepcopy(model), data, **options)
    optimizer = make(mine.parameters())
    step = gnnc.train_step(
        lambda: F.cross_entropy(mine(part.edge_index)[part.train_mask], part.y[part.train_mask]),
        optimizer,
    )
    losses = [step().item() for _ in range(steps)]
    assert gnnc.explain(step).fallbacks == []
    return losses, {k: v.clone() for k, v in mine.state_dict().items()}, part.n_id, optimizer


def assert_trains_alike(found: Trained, wanted: Trained, tolerance: float, cut: Any = BOTH) -> None:
    losses, state, nodes, optimizer = found
    torch.testing.assert_close(losses, wanted[0], rtol=0, atol=tolerance)
    for key, x in wanted[1].items():
        x = x[nodes] if key in cut else x
        torch.testing.assert_close(state[key], x, rtol=tolerance, atol=tolerance, msg=key)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for p in parameters:
        for x in optimizer.state[p].values():
            assert not isinstance(x, Tensor) or not x.dim() or x.shape == p.shape
    assert len(parameters[0]) == len(nodes)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("sgd", 3),
        pytest.param("adam", 2, marks=LONG),
        *(pytest.param(n, k, marks=LONG) for n in OPTIMIZERS for k in (1, 4)),
    ],
)
def test_trains_as_one_process(name: str, ranks: int) -> None:
    """What an optimizer keeps is kept for own rows alone."""
    model, data, make = Learned(), graph(NODES, EDGES), OPTIMIZERS[name]
    tolerance = 1e-9 if "a" in name else 1e-11
    wanted = trained(model, data, make, 20, sharded=BOTH)

    def work(_: Any) -> Trained:
        return trained(model, data, make, 20, sharded=BOTH)

    every = virtual.run(ranks, work)
    for found in every:
        assert_trains_alike(found, wanted, tolerance)
        for key in wanted[1].keys() - {*BOTH}:
            assert torch.equal(found[1][key], every[0][1][key]), f"ranks have another {key}"
    assert torch.equal(torch.cat([f[2] for f in every]).sort().values, torch.arange(NODES))


def test_one_process_trains_as_torch_does() -> None:
    model, data = Learned(), graph(NODES, EDGES)
    losses, state, *_ = trained(model, data, OPTIMIZERS["momentum"], 5, sharded=BOTH)
    optimizer = OPTIMIZERS["momentum"](model.parameters())
    for loss in losses:
        optimizer.zero_grad()
        found = F.cross_entropy(model(data.edge_index)[data.train_mask], data.y[data.train_mask])
        found.backward()
        optimizer.step()
        assert loss == pytest.approx(found.item(), abs=1e-11)
    torch.testing.assert_close(state[TABLE], model.embedding.weight, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["momentum", pytest.param("adam", marks=LONG)])
def test_backward_and_the_optimizers_own_step(name: str) -> None:
    model, data, make = Learned(), graph(NODES, EDGES), OPTIMIZERS[name]
    wanted = trained(model, data, make, 4, sharded=BOTH)
    total = int(data.train_mask.sum())

    def work(_: Any) -> None:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=BOTH)
        optimizer = make(mine.parameters())
        for _ in range(4):
            optimizer.zero_grad()
            out, y = mine(part.edge_index)[part.train_mask], part.y[part.train_mask]
            (F.cross_entropy(out, y, reduction="sum") / total).backward()
            optimizer.step()
        for key, x in mine.named_parameters():
            y = wanted[1][key]
            y = y[part.n_id] if key in BOTH else y
            torch.testing.assert_close(x.detach(), y, rtol=1e-9, atol=1e-9, msg=key)

    virtual.run(3, work)


def test_ranks_with_one_node_or_none() -> None:
    """Programs are the same whatever the number of rows."""
    model, data = Learned(6), graph(6, 20)
    wanted = trained(model, data, OPTIMIZERS["sgd"], 3, sharded=BOTH)
    owner = torch.tensor([0, 0, 0, 0, 0, 2])

    def work(_: Any) -> Trained:
        return trained(model, data, OPTIMIZERS["sgd"], 3, sharded=BOTH, owner=owner, chunks=2)

    every = virtual.run(4, work)
    assert [len(f[2]) for f in every] == [5, 0, 1, 0]
    for found in every:
        assert_trains_alike(found, wanted, 1e-11)


def test_gradients_of_rows_are_not_reduced_over_ranks() -> None:
    """What all ranks add up is smaller than any rank's rows, and clipping takes the norm of all."""
    model, data = Learned(60), graph(60, 110)
    largest = [0]

    def noting(inner: Virtual) -> Virtual:
        plain = inner.start_all_reduce

        def start(array: Any, kind: Any) -> Any:
            largest[0] = max(largest[0], array.size)
            return plain(array, kind)

        inner.start_all_reduce = start  # type: ignore[method-assign]
        return inner

    def work(_: Any) -> tuple[Tensor, Tensor]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=BOTH)
        for x in mine.parameters():
            x.requires_grad_(x is mine.embedding.weight)
        step = gnnc.train_step(
            lambda: F.cross_entropy(mine(part.edge_index), part.y),
            SGD([mine.embedding.weight], lr=0.1),
            clip_grad_norm=0.01,
        )
        for _ in range(3):
            step()
        return part.n_id, mine.embedding.weight.detach().clone()

    every = virtual.run(2, work, wrap=noting)
    assert 0 < largest[0] < 20 * WIDTH < min(x.numel() for _, x in every)
    ((_, wanted),) = virtual.run(1, work)
    for nodes, x in every:
        torch.testing.assert_close(x, wanted[nodes], rtol=1e-11, atol=1e-11)
        assert not torch.equal(x, model.embedding.weight[nodes])


class ByType(nn.Module):
    """A layer on learned tables of two types of nodes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.user, self.item = nn.Embedding(12, WIDTH), nn.Parameter(torch.randn(17, WIDTH))
        sides = {t: SAGEConv((WIDTH, WIDTH), CLASSES) for t in (BUYS, SOLD)}
        self.layer = HeteroConv(sides)
        self.double()

    def forward(self, edges: dict[Any, Tensor]) -> Tensor:
        return self.layer({"user": self.user.weight, "item": self.item}, edges)["item"]


BUYS, SOLD = ("user", "buys", "item"), ("item", "sold_to", "user")


def shop(users: int = 12, items: int = 17) -> HeteroData:
    torch.manual_seed(2)
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = users, items
    data["item"].y = torch.randint(0, CLASSES, (items,))
    ends = torch.stack([torch.randint(0, users, (50,)), torch.randint(0, items, (50,))])
    data[BUYS].edge_index, data[SOLD].edge_index = ends, ends.flip(0)
    return data


@pytest.mark.parametrize(
    "names", [["user.weight", "item"], {"user.weight": "user", "item": "item"}]
)
def test_tables_of_types_of_nodes(names: Any) -> None:
    model, data = ByType(), shop()

    def work(_: Any) -> tuple[Any, dict[str, Tensor]]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=names)
        step = gnnc.train_step(
            lambda: F.cross_entropy(mine(part.edge_index_dict), part["item"].y),
            Adam(mine.parameters(), lr=0.01),
        )
        for _ in range(3):
            step()
        return part, dict(mine.state_dict())

    ((_, wanted),) = virtual.run(1, work)
    for part, found in virtual.run(3, work):
        for key, x in wanted.items():
            of = {"user.weight": "user", "item": "item"}.get(key)
            x = x if of is None else x[part[of].n_id]
            torch.testing.assert_close(found[key], x, rtol=1e-9, atol=1e-9, msg=key)


def test_a_part_from_files(tmp_path: Path) -> None:
    model, data = Learned(), graph(NODES, EDGES)
    owner = np.random.default_rng(1).integers(0, 2, NODES).astype(np.int32)
    files.save(tmp_path, 2, owner, edges.in_memory(*data.edge_index.numpy(), NODES))
    wanted = trained(model, data, OPTIMIZERS["sgd"], 3, sharded=BOTH)

    def work(_: Any) -> Trained:
        folder = gnnc.PartitionFolder(tmp_path, y=data.y, train_mask=data.train_mask)
        return trained(model, folder, OPTIMIZERS["sgd"], 3, sharded=BOTH)

    for found in virtual.run(2, work):
        assert_trains_alike(found, wanted, 1e-11)


class Tied(Learned):
    """One table under two names, which wants no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.table = self.embedding.weight
        self.table.requires_grad_(False)


def test_rows_are_those_of_rank_0() -> None:
    first, data = Tied(), graph(NODES, EDGES)

    def work(c: Any) -> tuple[Tensor, Any]:
        model = copy.deepcopy(first)
        with torch.no_grad():
            model.table.add_(c.rank)
        mine, part = gnnc.distribute(model, data, sharded=["table"])
        return part.n_id, mine

    for nodes, model in virtual.run(3, work):
        assert model.table is model.embedding.weight and not model.table.requires_grad
        assert torch.equal(model.table, first.table[nodes])


def test_tables_that_no_rank_has_as_a_whole(monkeypatch: Any) -> None:
    """Rows are drawn where they lie, the same on any number of ranks, and of torch's distribution:
    normal ones, and zeros in the row of padding."""
    data, first = graph(3000, 200), nn.ModuleDict({"x": Layer(3000), "y": nn.Embedding(9, 2, 4)})
    first["x"].embedding = nn.Embedding(3000, WIDTH, device="meta")
    first["y"].to("meta")
    names = ["x.embedding.weight", "y.weight"]
    monkeypatch.setattr(sharded, "seed_of_all", lambda _: 7)  # threads have one generator

    def work(_: Any) -> tuple[Tensor, list[Tensor]]:
        mine, part = gnnc.distribute(copy.deepcopy(first), data, sharded=names)
        return part.n_id, [mine.get_parameter(k).detach() for k in names]

    ((_, (x, y)),) = virtual.run(1, work)
    assert x.shape == (3000, WIDTH) and abs(x.mean()) < 0.05 and abs(x.std() - 1) < 0.05
    assert len(x.unique()) > 0.99 * x.numel()
    assert (y[4] == 0).all() and (y[[0, 1, 2, 3, 5, 6, 7, 8]] != 0).all()
    every = virtual.run(3, work)
    for nodes, (mine, _) in every:
        assert torch.equal(mine, x[nodes])
    assert torch.equal(torch.cat([other for _, (_, other) in every]), y)


def test_numbers_that_rows_are_drawn_by() -> None:
    """Are those of rank 0's generator."""
    torch.manual_seed(3)
    wanted = torch.randint(2**62, ()).item()
    torch.manual_seed(3)
    assert seed_of_all(Alone()) == wanted
    assert len(set(virtual.run(3, seed_of_all))) == 1


def test_bad_names() -> None:
    data = graph(NODES, EDGES)

    def refused(kind: Any, message: str, names: Any, given: Any = data, model: Any = None) -> None:
        with pytest.raises(kind, match=message):
            gnnc.distribute(model or Learned(), given, sharded=names)

    refused(TypeError, "sharded: a list of names of parameters", TABLE)
    refused(TypeError, "sharded: a list of names of parameters", 3)
    refused(TypeError, "sharded: names are texts, not Parameter", [Learned().bias])
    refused(
        ValueError, "'embedding' is no parameter of the model, which has bias, emb", ["embedding"]
    )
    refused(
        ValueError,
        "'first.lin_l.weight' has 8 rows, and the graph 30 nodes",
        ["first.lin_l.weight"],
    )
    refused(ValueError, "of nodes of type 'paper', of types there are none", {TABLE: "paper"})
    refused(ValueError, "'bias' has 31 rows, and the graph 30 nodes", BOTH, model=Learned(31))
    by_type = ByType()
    refused(ValueError, "as many .* of several types .* dict", ["item"], shop(17), by_type)
    types = "'item' is to have .* of types there are 'user', 'item'"
    refused(ValueError, types, {"item": "shop"}, shop(), by_type)
    refused(ValueError, "and the graph 12 'user', 18 'item' nodes", ["item"], shop(12, 18), by_type)
    refused(ValueError, "has 17 rows, and there are 12", {"item": "user"}, shop(), by_type)
    model = Learned()
    model.bias = nn.Parameter(torch.empty(NODES, device="meta"))
    refused(ValueError, "'bias' is on the device meta and has no numbers", ["bias"], model=model)
    model = Learned()

    def others(c: Any) -> None:
        with pytest.raises(Disagreement, match="sharded"):
            gnnc.distribute(copy.deepcopy(model), data, sharded=[TABLE, "bias"][c.rank :])

    virtual.run(2, others)

    def with_numbers_of_one(c: Any) -> None:
        words = nn.Embedding(9, 2, device="meta" if c.rank else None)
        with pytest.raises(Disagreement, match="sharded, or .* on the device meta"):
            gnnc.distribute(nn.ModuleDict({"words": words}), data, sharded=["words.weight"])

    virtual.run(2, with_numbers_of_one)


class Ranked(nn.Module):
    """PyG's LightGCN, whose layers have no weights but the table."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.model = LightGCN(NODES, WIDTH, 2).double()

    def forward(self, edges: Tensor, pairs: Tensor) -> Tensor:
        return self.model(edges, pairs)


def test_a_model_of_pyg() -> None:
    """Scores of pairs of nodes; two runs give the same bits."""
    model, data = Ranked(), graph(NODES, EDGES)
    data.edge_label_index = torch.randint(0, NODES, (2, 50))
    data.edge_label = (torch.rand(50) < 0.5).double()

    def work(_: Any) -> tuple[list[float], Tensor, Tensor]:
        names = ["model.embedding.weight"]
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=names)
        step = gnnc.train_step(
            lambda: F.binary_cross_entropy_with_logits(
                mine(part.edge_index, part.edge_label_index), part.edge_label
            ),
            Adam(mine.parameters(), lr=0.01),
        )
        losses = [step().item() for _ in range(4)]
        assert gnnc.explain(step).fallbacks == []
        return losses, part.n_id, mine.get_parameter(names[0]).detach().clone()

    ((losses, _, table),) = virtual.run(1, work)
    every, again = virtual.run(3, work), virtual.run(3, work)
    for (found, nodes, rows), (_, _, same) in zip(every, again, strict=True):
        torch.testing.assert_close(found, losses, rtol=0, atol=1e-9)
        torch.testing.assert_close(rows, table[nodes], rtol=1e-9, atol=1e-9)
        assert torch.equal(rows, same)


class Layer(nn.Module):
    """A layer on a table."""

    def __init__(self, rows: int = NODES) -> None:
        super().__init__()
        self.embedding = nn.Embedding(rows, WIDTH)
        self.layer = SAGEConv(WIDTH, WIDTH)

    def forward(self, edges: Tensor) -> Tensor:
        return self.layer(self.embedding.weight, edges)


class AllPairs(Layer):
    """A score of each node with each one."""

    def forward(self, edges: Tensor) -> Tensor:
        return super().forward(edges) @ self.embedding.weight.T


def test_a_table_that_is_used_otherwise_than_by_rows() -> None:
    model, data = AllPairs(), graph(NODES, EDGES)

    def work(_: Any) -> None:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=[TABLE])
        with pytest.raises(Unsupported, match=r"two sets.*embedding\.weight is sharded: a rank"):
            mine(part.edge_index)

    virtual.run(2, work)


def test_a_table_that_is_used_as_if_it_had_a_row_a_node() -> None:
    model, data = Layer(31), graph(NODES, EDGES)
    said = r"embedding\.weight is sharded and has 31 rows, .* it is used as rows of 30 nodes"

    def work(_: Any) -> None:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=[TABLE])
        with pytest.raises(ValueError, match=said):
            mine(part.edge_index)

    virtual.run(2, work)
