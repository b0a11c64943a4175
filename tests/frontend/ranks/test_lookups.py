"""Sharded tables whose rows nodes read by an index: several nodes may read one row, of this rank or
of another one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, HeteroConv, SAGEConv

import gnnc
from gnnc.frontend.torch.importer import Unsupported
from gnnc.frontend.torch.ranks import lookups, sharded
from gnnc.frontend.torch.ranks.cut_tensors import NodePart
from gnnc.runtime.partition import edges, files
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.alone import Alone
from gnnc.runtime.ranks.virtual import Virtual

from .cut_models import CLASSES, WIDTH, graph
from .test_sharded import BUYS, SOLD, shop
from .traffic import counting

LONG = pytest.mark.long
NODES, EDGES, WORDS, HIDDEN = 30, 110, 13, 8
TABLES = ["embedding.weight", "words.weight"]
COUNTS = {"user": 12, "item": 17}


class Worded(nn.Module):
    """Two layers on what nodes have learned, by their numbers, and on their two words; rows of the
    words are kept small."""

    def __init__(self, words: int = WORDS) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding = nn.Embedding(NODES, WIDTH)
        self.words = nn.Embedding(words, WIDTH, padding_idx=2)
        nn.init.ones_(self.words.weight[2])
        self.first, self.second = SAGEConv(WIDTH, HIDDEN), GCNConv(HIDDEN, CLASSES)
        self.double()

    def forward(self, n_id: Tensor, word: Tensor, next: Tensor, edges: Tensor) -> Any:
        x = self.embedding(n_id) + self.words(word) * self.words(next).tanh()
        size = self.words.weight.square().sum()
        return self.second(self.first(x, edges).relu(), edges), size


def worded(words: int = WORDS) -> Data:
    data = graph(NODES, EDGES)
    data.n_id = torch.arange(NODES)
    data.word, data.next = torch.randint(0, words - 1, (2, NODES))  # nobody reads the last one
    return data


def given(part: Data) -> tuple[Tensor, ...]:
    """What the model takes of a graph."""
    return part.n_id, part.word, part.next, part.edge_index


def sgd(parameters: Any) -> Optimizer:
    return SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters: Any) -> Optimizer:
    return Adam(parameters, lr=0.01)


Trained = tuple[list[float], dict[str, Tensor], Tensor]


def trained(
    model: nn.Module, data: Any, make: Callable[[Any], Optimizer], steps: int, **options: Any
) -> Trained:
    mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=TABLES, **options)

    def loss() -> Tensor:
        out, size = mine(*given(part))
        return F.cross_entropy(out[part.train_mask], part.y[part.train_mask]) + 0.01 * size

    step = gnnc.train_step(loss, make(mine.parameters()))
    losses = [step().item() for _ in range(steps)]
    assert gnnc.explain(step).fallbacks == []
    return losses, {k: v.clone() for k, v in mine.state_dict().items()}, part.n_id


def assert_alike(every: list[Trained], wanted: Trained, tolerance: float) -> None:
    """Rows of words are of ranks in blocks."""
    words = torch.cat([state["words.weight"] for _, state, _ in every])
    for losses, state, nodes in every:
        torch.testing.assert_close(losses, wanted[0], rtol=0, atol=tolerance)
        for key, x in wanted[1].items():
            x = x[nodes] if key == "embedding.weight" else x
            y = words if key == "words.weight" else state[key]
            torch.testing.assert_close(y, x, rtol=tolerance, atol=tolerance, msg=key)


@pytest.mark.parametrize(
    ("make", "ranks", "chunks", "words"),
    [
        (sgd, 3, 1, WORDS),
        pytest.param(adam, 2, 2, WORDS, marks=LONG),
        pytest.param(adam, 4, 1, 90, marks=LONG),
        pytest.param(sgd, 4, 3, 3, marks=LONG),  # a rank has no row
        pytest.param(sgd, 2, 1, NODES, marks=LONG),  # rows of nodes by chance
    ],
)
def test_trains_as_one_process(make: Any, ranks: int, chunks: int, words: int) -> None:
    model, data = Worded(words), worded(words)
    wanted = trained(model, data, make, 20)

    def work(_: Any) -> Trained:
        return trained(model, data, make, 20, chunks=chunks)

    every = virtual.run(ranks, work)
    if words == NODES:
        order = torch.cat([nodes for _, _, nodes in every]).argsort()
        joined = torch.cat([state["words.weight"] for _, state, _ in every])[order]
        for k, (_, state, _) in enumerate(every):
            state["words.weight"] = joined if k == 0 else joined[:0]
    assert_alike(every, wanted, 1e-9 if make is adam else 1e-11)


def test_one_process_trains_as_torch_does() -> None:
    model, data = Worded(), worded()
    losses, state, _ = trained(model, data, sgd, 4)
    optimizer, first = sgd(model.parameters()), model.words.weight[2].clone()
    for loss in losses:
        optimizer.zero_grad()
        out, size = model(*given(data))
        found = F.cross_entropy(out[data.train_mask], data.y[data.train_mask]) + 0.01 * size
        found.backward()
        optimizer.step()
        assert loss == pytest.approx(found.item(), abs=1e-11)
    for key, x in model.state_dict().items():
        torch.testing.assert_close(state[key], x, rtol=1e-11, atol=1e-11)
    assert not torch.equal(first, model.words.weight[2])  # of its size alone


def test_backward_and_the_optimizers_own_step() -> None:
    model, data = Worded(), worded()
    wanted, total = trained(model, data, sgd, 3), int(data.train_mask.sum())

    def work(c: Any) -> Trained:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=TABLES)
        optimizer = sgd(mine.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            out, size = mine(*given(part))
            y = part.y[part.train_mask]
            loss = F.cross_entropy(out[part.train_mask], y, reduction="sum") / total
            (loss + 0.01 * size).backward()  # a share of the first, the second all ranks have
            optimizer.step()
        state = {k: v.clone() for k, v in mine.state_dict().items()}
        return wanted[0], state, part.n_id

    assert_alike(virtual.run(3, work), wanted, 1e-9)


def test_a_row_crosses_once_to_each_rank_that_reads_it() -> None:
    """There, and its gradient back, however many nodes read it; rows of the own nodes never do."""
    data, owner = worded(), torch.arange(NODES) * 7 % 3
    data.edge_index = torch.arange(NODES).expand(2, -1).clone()  # so nodes have no ghosts
    sent = [0] * 3

    def work(c: Virtual) -> None:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=TABLES, owner=owner)
        step = gnnc.train_step(
            lambda: F.cross_entropy(mine(*given(part))[0], part.y),
            sgd(mine.parameters()),
        )
        step(), step()
        c.barrier()
        sent[c.rank] = 0
        step()

    model = Worded()
    virtual.run(3, work, wrap=counting(sent))
    block = -(-torch.arange(4) * WORDS // 3)
    table = torch.bucketize(torch.arange(WORDS), block[1:], right=True)
    read = torch.unique(torch.cat([owner * WORDS + x for x in (data.word, data.next)]))
    far = int((table[read % WORDS] != read // WORDS).sum())
    assert far > 0 and sum(sent) == 2 * far * WIDTH * 8


def test_an_index_may_change_between_calls() -> None:
    """On one rank: all prepare again."""
    model, data = Worded(), worded()

    def work(c: Any) -> tuple[Tensor, Tensor, Tensor]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=TABLES)
        first = mine(*given(part))[0].detach()
        if c.rank == 1:
            part.word[:] = WORDS - 1
        return part.n_id, first, mine(*given(part))[0].detach()

    every = virtual.run(3, work)
    before = model(*given(data))[0]
    data.word[every[1][0]] = WORDS - 1
    after = model(*given(data))[0]
    for nodes, first, second in every:
        torch.testing.assert_close(first, before[nodes], rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(second, after[nodes], rtol=1e-11, atol=1e-11)


def test_a_part_from_files(tmp_path: Path) -> None:
    """No rank knows the owners of all nodes there."""
    model, data = Worded(NODES), worded(NODES)
    owner = np.random.default_rng(1).integers(0, 3, NODES).astype(np.int32)
    files.save(tmp_path, 3, owner, edges.in_memory(*data.edge_index.numpy(), NODES))

    def work(_: Any) -> tuple[Tensor, Tensor]:
        folder = gnnc.PartitionFolder(tmp_path, word=data.word, next=data.next)
        mine, part = gnnc.distribute(copy.deepcopy(model), folder, sharded=TABLES)
        return part.n_id, mine(*given(part))[0].detach()

    wanted = model(*given(data))[0]
    for nodes, found in virtual.run(3, work):
        torch.testing.assert_close(found, wanted[nodes], rtol=1e-11, atol=1e-11)


class Shop(nn.Module):
    """Nodes of two types that read tables of their own, and one of words together."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.tables = nn.ModuleDict({t: nn.Embedding(n, WIDTH) for t, n in COUNTS.items()})
        self.words = nn.Embedding(40, WIDTH)
        self.layer = HeteroConv({t: SAGEConv((WIDTH, WIDTH), CLASSES) for t in (BUYS, SOLD)})
        self.double()

    def forward(self, n_id: dict[str, Tensor], word: dict[str, Tensor], edges: Any) -> Tensor:
        x = {t: self.tables[t](n_id[t]) * self.words(word[t]) for t in COUNTS}
        return self.layer(x, edges)["item"]


def test_types_of_nodes() -> None:
    """Two calls make a step."""
    model, data = Shop(), shop()
    for t, n in COUNTS.items():
        data[t].n_id, data[t].word = torch.arange(n), torch.randint(0, 40, (n,))
    names = ["tables.user.weight", "tables.item.weight", "words.weight"]

    def work(_: Any) -> tuple[list[float], Any, dict[str, Tensor]]:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=names)
        step = gnnc.train_step(
            lambda: F.cross_entropy(
                mine(part.n_id_dict, part.word_dict, part.edge_index_dict), part["item"].y
            ),
            adam(mine.parameters()),
            accumulate=2,
        )
        return [step().item() for _ in range(6)], part, dict(mine.state_dict())

    ((losses, _, wanted),) = virtual.run(1, work)
    every = virtual.run(3, work)
    words = torch.cat([state["words.weight"] for _, _, state in every])
    torch.testing.assert_close(words, wanted["words.weight"], rtol=1e-9, atol=1e-9)
    for found, part, state in every:
        torch.testing.assert_close(found, losses, rtol=0, atol=1e-9)
        for t in COUNTS:
            x, y = (s[f"tables.{t}.weight"] for s in (state, wanted))
            torch.testing.assert_close(x, y[part[t].n_id], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_who_has_which_rows(seed: int) -> None:
    """Rows of a rank's list are those of the owner, in the order of the ghosts that they become."""
    rng = np.random.default_rng(seed)
    ranks, total = int(rng.integers(1, 6)), int(rng.integers(0, 40))
    owner = rng.integers(0, ranks, total)
    read = [rng.integers(0, max(1, total), 25 if total else 0) for _ in range(ranks)]
    none = np.zeros(0, np.int64)

    def work(c: Any) -> tuple[NodePart, list[Any]]:
        own = np.flatnonzero(owner == c.rank)
        table = NodePart(own, none, none, none.astype(np.int32), none, total, 2)
        found = lookups.part_read(table, [read[c.rank][:9], read[c.rank][9:]], c)
        return found, lookups.edges_read(found, read[c.rank])

    every = virtual.run(ranks, work)
    for rank, (part, pairs) in enumerate(every):
        far = read[rank][owner[read[rank]] != rank]
        assert sorted(part.ghosts) == sorted(set(far))
        assert (owner[part.ghosts] == part.ghost_owner).all() and part.total == total
        for other, (there, _) in enumerate(every):
            asked = there.owned[there.sent[there.reader == rank]]
            assert asked.tolist() == part.ghosts[part.ghost_owner == other].tolist()
        seen = np.full(len(read[rank]), -1)
        rows = [part.owned, *(part.ghosts[part.ghost_chunk == k] for k in (0, 1))]
        for of, (src, dst) in zip(rows, pairs, strict=True):
            assert (seen[dst] == -1).all()
            seen[dst] = of[src]
        assert seen.tolist() == read[rank].tolist()


def test_a_number_that_is_no_row() -> None:
    model, data = Worded(), worded()
    data.next[4] = WORDS

    def work(c: Any) -> None:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=TABLES)
        mine(*given(part))

    with pytest.raises(IndexError, match=rf"next.* {WORDS}.*{WORDS - 1}"):
        virtual.run(2, work)


class Named(nn.Embedding):
    """Somebody's own."""

    def name(self) -> str:
        return "words"


@pytest.mark.parametrize("how", [{"max_norm": 1.0}, {"scale_grad_by_freq": True}])
@pytest.mark.parametrize("kind", [nn.Embedding, Named])
def test_a_padded_table_does_what_torch_does(kind: type[nn.Embedding], how: Any) -> None:
    """Whose rows may not be those that torch counts the padding row among."""
    model = nn.ModuleDict({"words": kind(WORDS, WIDTH, padding_idx=2, device="meta", **how)})
    none = np.zeros(0, np.int64)
    nodes = NodePart(none, none, none, none.astype(np.int32), none, 0, 1)
    sharded.shard(model, sharded.tables_of(model, ["words.weight"]), {None: nodes}, 1, Alone())
    ours: Any = model["words"]
    theirs = kind(WORDS, WIDTH, padding_idx=2, **how)
    theirs.load_state_dict(ours.state_dict())
    assert isinstance(ours, kind) and (kind is nn.Embedding or ours.name() == "words")
    index = torch.tensor([2, 5, 5, 1])
    for words in (ours, theirs):
        words(index).square().sum().backward()
    assert torch.equal(ours.weight, theirs.weight)
    assert torch.equal(ours.weight.grad, theirs.weight.grad)


class Both(nn.Module):
    """Reads a table in two ways."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.embedding = nn.Embedding(WORDS, WIDTH), nn.Embedding(NODES, WIDTH)
        self.layer = SAGEConv(WIDTH, WIDTH)

    def forward(self, index: Tensor, edges: Tensor) -> Tensor:
        x = self.layer(self.embedding.weight, edges)
        return x + self.embedding(index) if len(index) == len(x) else self.words(index).sum(0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("n_id", "by the index index, and its rows are read as those of nodes as well"),
        ("some", "by the index index, which has not a number for each node"),
        ("edge_type", "by the index index, which has not a number for each node"),
    ],
)
def test_other_reads_of_a_table(name: str, message: str) -> None:
    model, data = Both(), worded()
    data.some = torch.tensor([1, 2, 3])

    def work(_: Any) -> None:
        mine, part = gnnc.distribute(copy.deepcopy(model), data, sharded=TABLES)
        with pytest.raises(Unsupported, match=rf"{message}\. .*\.weight .* sharded"):
            mine(part[name], part.edge_index)

    virtual.run(2, work)
