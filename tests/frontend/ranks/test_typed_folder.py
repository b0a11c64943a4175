"""`gnnc.PartitionFolder` of graphs with types: ranks train as those that cut the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

import gnnc
from gnnc.frontend.cli import main
from gnnc.frontend.torch.ranks import cut_tensors
from gnnc.runtime import mapped
from gnnc.runtime.partition.files import MANIFEST, read_manifest
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.errors import Disagreement

from .cut_models import EDGE_TYPES, hetero_graph, hetero_net, on_ranks, training, training_alone

COUNTS = {"author": 9, "paper": 14, "venue": 3}
EDGES = 30


@pytest.fixture
def data() -> HeteroData:
    made = hetero_graph(tuple(COUNTS.values()), EDGES)
    for k, t in enumerate(EDGE_TYPES[:2]):
        made[t].edge_attr = torch.rand(EDGES, 2, dtype=torch.float64) + k
    return made


@pytest.fixture
def folder(data: HeteroData, tmp_path: Path) -> Callable[[], gnnc.PartitionFolder]:
    """What `gnnc partition` makes of files, for two ranks, with rows in files, arrays, tensors."""
    (tmp_path / "graph").mkdir()
    for t in EDGE_TYPES:
        index = data[t].edge_index.numpy()
        np.save(tmp_path / "graph" / f"{'__'.join(t)}.npy", index.astype(np.int32))
    command = ["partition", str(tmp_path / "graph"), "-n", "2", "--out", str(tmp_path / "parts")]
    assert main([*command, "--nodes", *(f"{t}={n}" for t, n in COUNTS.items())]) == 0
    np.save(tmp_path / "author.npy", data["author"].x.numpy())
    return lambda: gnnc.PartitionFolder(
        tmp_path / "parts",
        x={
            "author": tmp_path / "author.npy",
            "paper": data["paper"].x,
            "venue": data["venue"].x.numpy(),
        },
        y={"paper": data["paper"].y},
        train_mask={"paper": data["paper"].train_mask},
        edges={"edge_attr": {t: data[t].edge_attr for t in EDGE_TYPES[:2]}},
    )


def on_two(work: Callable[[Any], Any]) -> list[Any]:
    return virtual.run(2, work)


@pytest.mark.parametrize("chunks", [1, 2])
def test_parts_are_those_of_the_whole(data: HeteroData, folder: Any, chunks: int) -> None:
    """With the owners that the folder has."""
    model = hetero_net("sage")

    def work(_: Any) -> HeteroData:
        return gnnc.distribute(model, folder(), chunks=chunks)[1]

    owner = {t: torch.full((n,), -1) for t, n in COUNTS.items()}
    for rank, part in enumerate(on_two(work)):
        for t in COUNTS:
            owner[t][part[t].n_id] = rank

    def compare(_: Any) -> None:
        found = work(None)
        _, wanted = gnnc.distribute(model, data, owner=owner, chunks=chunks)
        assert set(found.node_types) == set(wanted.node_types)
        assert set(found.edge_types) == set(wanted.edge_types)
        for store in (*wanted.node_stores, *wanted.edge_stores):
            mine = found[store._key]
            assert set(mine.keys()) == set(store.keys()), store._key
            for name, x in store.items():
                if isinstance(x, Tensor):
                    assert torch.equal(mine[name], x), (store._key, name)
                    a, b = cut_tensors.of(mine[name]), cut_tensors.of(x)
                    assert a is not None and b is not None
                    assert (a.kind, a.shape) == (b.kind, b.shape)
        if chunks == 1:
            for t in EDGE_TYPES:
                for name in ("edge_index", "e_id"):
                    x = found[t][name]
                    assert not x.numel() or mapped.holds(x.data_ptr()), (t, name)

    on_two(compare)


@pytest.mark.long
@pytest.mark.parametrize("name", ["sage", "hgt"])
def test_trains_as_one_process(monkeypatch: Any, data: HeteroData, folder: Any, name: str) -> None:
    model = hetero_net(name)
    ((losses, state),) = on_ranks(monkeypatch, 0, training_alone(model, data, steps=2))
    for other_losses, other in on_ranks(monkeypatch, 2, training(model, folder(), steps=2)):
        torch.testing.assert_close(other_losses, losses, rtol=0, atol=1e-11)
        for key, x in state.items():
            torch.testing.assert_close(other[key], x, rtol=1e-9, atol=1e-9, msg=key)


def test_files_that_are_not_there(folder: Any, tmp_path: Path) -> None:
    parts, model = tmp_path / "parts", hetero_net("sage")
    name = "paper__cites__paper numbers"
    gone = parts / read_manifest(parts).files[1][name].name
    gone.unlink()

    def work(_: Any) -> None:
        gnnc.distribute(model, folder())

    with pytest.raises(FileNotFoundError, match=f"the file of {name} is not there: .*{gone.name}"):
        on_two(work)


def test_ranks_with_other_rows(data: HeteroData, folder: Any, tmp_path: Path) -> None:
    model = hetero_net("sage")

    def work(c: Any) -> None:
        x = {"author" if c.rank else "venue": data["author" if c.rank else "venue"].x}
        gnnc.distribute(model, gnnc.PartitionFolder(tmp_path / "parts", x=x))

    with pytest.raises(Disagreement, match="the rows of nodes and edges"):
        on_two(work)


def test_bad_rows(data: HeteroData, folder: Any, tmp_path: Path) -> None:
    model, x = hetero_net("sage"), data["author"].x

    def refused(text: str, **given: Any) -> None:
        def work(_: Any) -> None:
            with pytest.raises(ValueError, match=text):
                gnnc.distribute(model, gnnc.PartitionFolder(tmp_path / "parts", **given))

        on_two(work)

    known = "only 'author', 'paper', 'venue'"
    refused(f"x: the graph of .*{MANIFEST} has no nodes of type 'editor', {known}", x={"editor": x})
    refused("x: .* is of a graph with types: a dict with those of types of nodes is needed", x=x)
    refused(r"x of 'paper': \[9, 6\], and the partition is of .* 14 nodes", x={"paper": x})
    wrong = {("author", "reads", "paper"): x}
    refused(r"w: .* has no edges of type \('author', 'reads', 'paper'\)", edges={"w": wrong})
    with pytest.raises(TypeError, match="x of 'author': a path, an array or a tensor, not int"):
        gnnc.PartitionFolder(tmp_path, x={"author": 1})


def test_rows_by_type_of_a_graph_without(tmp_path: Path) -> None:
    np.save(tmp_path / "edges.npy", np.array([[0, 1], [1, 2]]))
    out = str(tmp_path / "parts")
    assert main(["partition", str(tmp_path / "edges.npy"), "-n", "1", "--out", out]) == 0
    found = gnnc.PartitionFolder(out, x={"paper": torch.ones(3)})
    with pytest.raises(ValueError, match="x: .* of a graph without types: no dict by type"):
        gnnc.distribute(hetero_net("sage"), found)


def test_commands_that_are_refused(
    data: HeteroData, folder: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "graph")
    assert main(["partition", place, "-n", "2", "--nodes", "editor=3"]) == 1
    assert "no edges have ends of type 'editor'" in capsys.readouterr().err
    np.save(tmp_path / "edges.npy", data[EDGE_TYPES[0]].edge_index.numpy())
    assert main(["partition", str(tmp_path / "edges.npy"), "-n", "2", "--nodes", "a=9"]) == 1
    assert "has no files SOURCE__NAME__TARGET.npy" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["partition", place, "-n", "2", "--nodes", "author"])
    assert "'author' is not TYPE=N" in capsys.readouterr().err
