"""`gnnc.PartitionFolder`: ranks that read their parts train as those that cut the whole."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import gnnc
from gnnc.frontend.cli import main
from gnnc.frontend.torch.ranks import cut_tensors
from gnnc.runtime import mapped
from gnnc.runtime.partition import edges, files
from gnnc.runtime.partition.files import BadPartition
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.errors import Disagreement

from .cut_models import graph, net, on_ranks, training

NODES, EDGES = 40, 150


@pytest.fixture
def data() -> Data:
    made = graph(NODES, EDGES)
    made.edge_weight = torch.rand(EDGES, dtype=torch.float64)
    return made


def owners(ranks: int) -> np.ndarray:
    return np.random.default_rng(ranks).integers(0, ranks, NODES).astype(np.int32)


def saved(folder: Path, data: Data, ranks: int) -> Callable[[], gnnc.PartitionFolder]:
    """The graph in files: what it makes has paths, arrays and tensors."""
    cut = edges.in_memory(*data.edge_index.numpy(), NODES)
    files.save(folder / "parts", ranks, owners(ranks), cut)
    np.save(folder / "x.npy", data.x.numpy())
    np.save(folder / "edge_weight.npy", data.edge_weight.numpy())

    return lambda: gnnc.PartitionFolder(
        folder / "parts",
        x=str(folder / "x.npy"),
        y=data.y,
        train_mask=data.train_mask.numpy(),
        edges={"edge_type": data.edge_type, "edge_weight": folder / "edge_weight.npy"},
    )


def everywhere(ranks: int, work: Callable[[Any], Any]) -> list[Any]:
    return virtual.run(ranks, work) if ranks > 1 else [work(None)]


@pytest.mark.parametrize(("ranks", "chunks"), [(1, 1), (2, 1), (3, 2)])
def test_parts_are_those_of_the_whole(data: Data, ranks: int, chunks: int, tmp_path: Path) -> None:
    folder = saved(tmp_path, data, ranks)

    def work(_: Any) -> None:
        _, found = gnnc.distribute(net("gcn"), folder(), chunks=chunks)
        _, wanted = gnnc.distribute(net("gcn"), data, owner=owners(ranks), chunks=chunks)
        assert set(found.keys()) == set(wanted.keys()) and found.num_nodes == wanted.num_nodes
        for name, x in wanted.items():
            if isinstance(x, Tensor):
                torch.testing.assert_close(found[name], x, rtol=0, atol=0, msg=name)
                mine, other = cut_tensors.of(found[name]), cut_tensors.of(x)
                assert (mine is None) == (other is None) == (ranks == 1), name
                if mine is not None and other is not None:
                    assert (mine.kind, mine.shape) == (other.kind, other.shape)

    everywhere(ranks, work)


@pytest.mark.parametrize("ranks", [2, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 3))])
@pytest.mark.parametrize("name", ["gcn", pytest.param("rgcn", marks=pytest.mark.long)])
def test_trains_as_the_whole_to_the_bit(
    monkeypatch: Any, data: Data, name: str, ranks: int, tmp_path: Path
) -> None:
    model, folder = net(name), saved(tmp_path, data, ranks)
    found = on_ranks(monkeypatch, ranks, lambda: training(model, folder())())
    wanted = on_ranks(monkeypatch, ranks, training(model, data, owner=owners(ranks)))
    for (losses, state), (other_losses, other) in zip(found, wanted, strict=True):
        assert losses == other_losses
        for key, x in other.items():
            assert torch.equal(state[key], x), key


def test_a_folder_of_the_command(data: Data, tmp_path: Path) -> None:
    np.save(tmp_path / "edges.npy", data.edge_index.numpy().astype(np.int32))
    out = str(tmp_path / "parts")
    assert main(["partition", str(tmp_path / "edges.npy"), "-n", "2", "--out", out]) == 0
    nodes = int(data.edge_index.max()) + 1

    def work(_: Any) -> Data:
        folder = gnnc.PartitionFolder(out, number=np.arange(nodes))
        return gnnc.distribute(net("gcn"), folder)[1]

    parts = virtual.run(2, work)
    for part in parts:
        assert torch.equal(part.number, part.n_id)
        _, dst = data.edge_index[:, part.e_id]
        assert torch.equal(part.n_id[part.edge_index[1]], dst)
    assert sum(p.num_edges for p in parts) == EDGES


def test_rows_of_files_are_read_in_blocks(
    data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "BLOCK", 200)
    given: list[int] = []
    give_back = mapped.give_back

    def noted(array: np.ndarray, *, written: bool = True) -> None:
        given.append(array.nbytes)
        give_back(array, written=written)

    monkeypatch.setattr(mapped, "give_back", noted)
    test_parts_are_those_of_the_whole(data, 3, 1, tmp_path)
    assert len(given) > 2 * 3 * NODES * data.x[0].nbytes // 200 and max(given) <= 200


def test_what_lies_in_files_is_not_copied(data: Data, tmp_path: Path) -> None:
    """One part has all rows as they lie; what is written to them stays out of the files."""
    folder = saved(tmp_path, data, 1)
    _, part = gnnc.distribute(net("gcn"), folder())
    for name in ("x", "edge_weight", "edge_index", "e_id"):
        assert mapped.holds(part[name].data_ptr()), name
    assert part.y.data_ptr() == data.y.data_ptr()
    part.x.zero_()
    part.edge_index.zero_()
    _, again = gnnc.distribute(net("gcn"), folder())
    assert torch.equal(again.x, data.x) and torch.equal(again.edge_index, data.edge_index)


def test_edits_of_rows_in_files_go_on_to_other_folders(data: Data, tmp_path: Path) -> None:
    """Where they are what another partition is given."""
    folder = saved(tmp_path, data, 1)
    _, whole = gnnc.distribute(net("gcn"), folder())
    whole.x.mul_(2)
    cut = edges.in_memory(*data.edge_index.numpy(), NODES)
    files.save(tmp_path / "two", 2, owners(2), cut)

    def work(_: Any) -> Data:
        return gnnc.distribute(net("gcn"), gnnc.PartitionFolder(tmp_path / "two", x=whole.x))[1]

    for part in virtual.run(2, work):
        assert torch.equal(part.x, 2 * data.x[part.n_id])
    assert torch.equal(whole.x, 2 * data.x)


def test_edits_are_seen(data: Data, tmp_path: Path) -> None:
    model, folder = net("gcn").eval(), saved(tmp_path, data, 1)
    compiled, part = gnnc.distribute(copy.deepcopy(model), folder())
    torch.testing.assert_close(compiled(part.x, part.edge_index), model(data.x, data.edge_index))
    part.edge_index[0, :9] = 3
    part.x[3] += 1
    torch.testing.assert_close(compiled(part.x, part.edge_index), model(part.x, part.edge_index))


def test_folders_that_are_not_for_these_ranks(data: Data, tmp_path: Path) -> None:
    folder, model = saved(tmp_path, data, 3), net("gcn")
    with pytest.raises(BadPartition, match=r"partition.json is for 3 ranks, and there are 1"):
        gnnc.distribute(model, folder())
    with pytest.raises(FileNotFoundError, match=r"partition.json"):
        gnnc.distribute(model, gnnc.PartitionFolder(tmp_path))
    part = next((tmp_path / "parts").glob("part-1-ends-*"))
    part.write_bytes(part.read_bytes()[:-8])

    def work(c: Any) -> None:
        before = [p.clone() for p in model.parameters()]
        try:
            gnnc.distribute(model, folder())
        finally:
            assert all(map(torch.equal, model.parameters(), before))

    with pytest.raises(BadPartition, match="part-1-ends.* it is cut or changed"):
        virtual.run(3, work)


def test_ranks_with_other_folders_or_rows(data: Data, tmp_path: Path) -> None:
    folder = saved(tmp_path, data, 2)
    cut = edges.in_memory(*data.edge_index.numpy(), NODES)
    files.save(tmp_path / "other", 2, 1 - owners(2), cut)

    def other_folder(c: Any) -> None:
        found = folder() if c.rank else gnnc.PartitionFolder(tmp_path / "other")
        gnnc.distribute(net("gcn"), found)

    def other_rows(c: Any) -> None:
        x = data.x if c.rank else data.x.float()
        gnnc.distribute(net("gcn"), gnnc.PartitionFolder(tmp_path / "parts", x=x))

    with pytest.raises(Disagreement, match="the partition"):
        virtual.run(2, other_folder)
    with pytest.raises(Disagreement, match="the rows of nodes and edges"):
        virtual.run(2, other_rows)


def test_bad_arguments(data: Data, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="x: a path, an array or a tensor, not list"):
        gnnc.PartitionFolder(tmp_path, x=[1.0])
    with pytest.raises(ValueError, match=r"edge_index: gnnc.distribute gives it"):
        gnnc.PartitionFolder(tmp_path, edges={"edge_index": data.edge_index})
    with pytest.raises(ValueError, match="x: rows of nodes and of edges under one name"):
        gnnc.PartitionFolder(tmp_path, x=data.x, edges={"x": data.edge_weight})
    saved(tmp_path, data, 1)
    (tmp_path / "text.npy").write_text("0 1")

    def refused(error: type[Exception], text: str, **given: Any) -> None:
        folder = gnnc.PartitionFolder(tmp_path / "parts", **given)
        with pytest.raises(error, match=text):
            gnnc.distribute(net("gcn"), folder)

    refused(ValueError, r"y: \[7\], and the partition is of a graph of 40 nodes", y=torch.ones(7))
    refused(ValueError, r"w: \[40\], .* of 150 edges", edges={"w": np.ones(NODES)})
    refused(ValueError, r"y: \[\], and", y=torch.tensor(1.0))
    refused(ValueError, "y: a dense tensor on the CPU", y=torch.ones(NODES, 2).to_sparse())
    refused(TypeError, "y: can't convert np.ndarray of type numpy.str_", y=np.full(NODES, "a"))
    refused(ValueError, r"y: .*text.npy is no .npy file", y=tmp_path / "text.npy")
    fixed = np.load(tmp_path / "x.npy", mmap_mode="r")
    refused(ValueError, "y: an array that can be written to, or the path", y=fixed)
    refused(FileNotFoundError, r"none.npy", y=tmp_path / "none.npy")
    folder = gnnc.PartitionFolder(tmp_path / "parts")
    with pytest.raises(ValueError, match="owner: the partition in the folder has one"):
        gnnc.distribute(net("gcn"), folder, owner=owners(1))
