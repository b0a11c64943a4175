"""Programs for ranks train as one process does, in C and in Python, and say what is wrong with the
parts of a graph."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import HeteroData
from torch_geometric.nn import GCNConv, SAGEConv

import gnnc
from gnnc.frontend.torch.training.build import build
from gnnc.frontend.torch.training.data import GraphArrays
from gnnc.frontend.torch.training.program import TrainingProgram
from gnnc.tests.frontend.ranks.cut_models import hetero_graph, hetero_net
from gnnc.tests.runtime.ranks.launching import one_at_a_time  # noqa: F401

from . import building
from .building import assert_equal, numbers, printed
from .emulated import quickly
from .on_ranks import arrays, made, started, trained
from .programs import CLASSES, FEATURES, graph, indexed, loops, masked, relational

pytest.importorskip("mpi4py")

LONG = pytest.mark.long
DOUBLE = 1e-11
"""How far numbers in double precision may be apart: ranks sum in another order."""
SINGLE = 1e-5
EPOCHS = 6


def doubled(nodes: int = 120, edges: int = 600) -> GraphArrays:
    return graph(nodes=nodes, edges=edges, dtype=torch.float64)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For two ranks, with dropout and Adam."""
    folder = tmp_path_factory.mktemp("program")
    options = {"epochs": EPOCHS}
    build(masked, (doubled(), "gcn"), options, folder, target="mpi", ranks=2)
    return building.compiled(folder)


# ---------------------------------------------------------------- what is learnt


def test_losses_and_parameters(program: Path, tmp_path: Path) -> None:
    """Those of Python, and of the program for one process, from the same start."""
    theirs = printed(masked, doubled(), "gcn", epochs=EPOCHS)
    ours = trained(program, 2, "--out", str(tmp_path / "ours"))
    assert_equal(ours, theirs, EPOCHS, DOUBLE)
    build(masked, (doubled(), "gcn"), {"epochs": EPOCHS}, tmp_path / "alone")
    assert_equal(ours, building.trained(quickly(tmp_path / "alone")), EPOCHS, DOUBLE)
    found, expected = arrays(tmp_path / "ours"), arrays(tmp_path / "alone" / "trained")
    begun = arrays(program.parent / "parameters")
    assert len(found) == 17
    assert found.keys() == expected.keys() == begun.keys()
    for name, x in expected.items():
        np.testing.assert_allclose(found[name], x, rtol=DOUBLE, atol=DOUBLE)
        assert not np.array_equal(found[name], begun[name])


@pytest.mark.parametrize(
    ("kind", "ranks"),
    [
        ("sage", 3),
        *(pytest.param(k, n, marks=LONG) for k, n in (("gat", 3), ("gin", 2), ("gcn", 1))),
    ],
)
def test_layers(kind: str, ranks: int, tmp_path: Path) -> None:
    theirs = printed(masked, doubled(), kind, epochs=EPOCHS)
    program = made(masked, tmp_path, ranks, doubled(), kind, epochs=EPOCHS)
    assert_equal(trained(program, ranks), theirs, EPOCHS, DOUBLE)


@LONG
@pytest.mark.parametrize("training", [loops, relational])
def test_relations(training: TrainingProgram, tmp_path: Path) -> None:
    theirs = printed(training, graph(), epochs=EPOCHS)
    program = made(training, tmp_path, 2, graph(), epochs=EPOCHS)
    assert_equal(trained(program, 2), theirs, EPOCHS, SINGLE)


@LONG
def test_rows_that_the_loss_chooses(tmp_path: Path) -> None:
    """They lie with their nodes; the greatest of the gradients' norms is that of all ranks."""
    theirs = printed(indexed, graph(), epochs=10)
    ours = trained(made(indexed, tmp_path, 3, graph(), epochs=10), 3)
    assert len(ours.splitlines()) == 3  # of rank 0 alone
    assert numbers(ours) == pytest.approx(numbers(theirs), abs=2 * SINGLE)


@gnnc.training
def heterogeneous(data, kind, epochs=EPOCHS):
    model = hetero_net(kind)
    papers = data["paper"]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        optimizer.zero_grad()
        out = model(data.x_dict, data.edge_index_dict)
        loss = F.cross_entropy(out[papers.train_mask], papers.y[papers.train_mask])
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


def papers_and_authors() -> HeteroData:
    return hetero_graph((30, 40, 7), 120)


@LONG
@pytest.mark.parametrize("kind", ["hgt", "sage"])
def test_types_of_nodes(kind: str, tmp_path: Path) -> None:
    theirs = printed(heterogeneous, papers_and_authors(), kind)
    program = made(heterogeneous, tmp_path, 2, papers_and_authors(), kind)
    assert_equal(trained(program, 2), theirs, EPOCHS, DOUBLE)


@gnnc.training
def weighted(data, epochs=EPOCHS):
    """Rows of edges, an array that is no part of the graph, and a maximum."""
    weights = torch.linspace(0.1, 1, data.num_edges, dtype=torch.float64)
    of_classes = torch.linspace(1, 2, CLASSES, dtype=torch.float64)
    model = GCNConv(FEATURES, CLASSES).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index, weights)
        loss = F.cross_entropy(out, data.y, weight=of_classes)
        greatest = out.max()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
        print(epoch, loss.item(), greatest.item())


@LONG
@pytest.mark.parametrize("nodes", [120, 4])
def test_rows_of_edges(nodes: int, tmp_path: Path) -> None:
    """With four nodes some rank has few, or none that others read."""
    data = doubled(nodes, 5 * nodes)
    theirs = printed(weighted, data)
    program = made(weighted, tmp_path, 3, data)
    assert {"weights.npy", "weights_2.npy"} <= {
        f.name for f in (tmp_path / "data/part-2").iterdir()
    }
    assert [f.name for f in (tmp_path / "data").glob("*.npy")] == ["of_classes.npy"]
    assert_equal(trained(program, 3), theirs, EPOCHS, DOUBLE)


@gnnc.training
def pairs(data, epochs=EPOCHS):
    """Whether there is an edge between two nodes."""
    model = SAGEConv(FEATURES, CLASSES).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        optimizer.zero_grad()
        z = model(data.x, data.edge_index)
        out = (z[data.pairs[0]] * z[data.pairs[1]]).sum(-1)
        loss = F.binary_cross_entropy_with_logits(out, data.labels)
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


@LONG
def test_pairs_of_nodes(tmp_path: Path) -> None:
    data = doubled()
    g = torch.Generator().manual_seed(1)
    data._arrays["pairs"] = torch.randint(120, (2, 50), generator=g)
    data._arrays["labels"] = (torch.rand(50, generator=g) < 0.5).double()
    theirs = printed(pairs, data)
    assert_equal(trained(made(pairs, tmp_path, 3, data), 3), theirs, EPOCHS, DOUBLE)


@LONG
def test_what_is_prepared_and_messages_in_pieces(tmp_path: Path) -> None:
    """Features cross once, in front of the steps."""
    data = doubled(nodes=22000, edges=30000)
    theirs = printed(masked, data, "gcn", dropout=0.0, epochs=3)
    build(masked, (data, "gcn"), {"dropout": 0.0, "epochs": 3}, tmp_path, target="mpi", ranks=2)
    assert "add_move(c_b_prepare" in (tmp_path / "main.c").read_text()
    assert_equal(trained(quickly(tmp_path, "-DPIECE=1000"), 2), theirs, 3, DOUBLE)


@LONG
def test_sanitized(tmp_path: Path) -> None:
    """Without a word of the address and undefined-behaviour sanitizers."""
    program = made(loops, tmp_path, 2, graph(), epochs=3, goal="sanitize")
    assert_equal(trained(program, 2), printed(loops, graph(), epochs=3), 3, SINGLE)


def test_training_goes_on(program: Path, tmp_path: Path) -> None:
    """From what ranks have learnt; make starts them as well."""
    whole = numbers(trained(program, 2, "--out", str(tmp_path / "whole")))[1::2]
    first = trained(program, 2, "--epochs", "2", "--out", str(tmp_path / "two"))
    rest = trained(
        program, 2, *("--epochs", "4"), *("--parameters", str(tmp_path / "two")), "--times"
    )
    assert numbers(first)[1::2] + numbers(rest)[1::2] == whole
    command = ["make", "-C", str(program.parent), "run"]
    done = subprocess.run(command, env=building.EMPTY, capture_output=True, text=True)
    by_make = numbers(done.stdout.split("./train\n")[1])[1 : 2 * EPOCHS : 2]
    assert by_make == pytest.approx(whole, rel=DOUBLE)  # with an equal share of the cores


# ---------------------------------------------------------------- what is wrong

Spoil = Callable[[Path], None]


def without(name: str) -> Spoil:
    return lambda folder: (folder / name).unlink()


def cut(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:-4])

    return spoil


def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Spoil:
    def spoil(folder: Path) -> None:
        np.save(folder / name, change(np.load(folder / name)))

    return spoil


WRONG: dict[str, tuple[Spoil, str]] = {
    "no part": (lambda f: shutil.rmtree(f / "part-1"), "part-1/part.npy cannot be read"),
    "no array": (without("part-1/x.npy"), "rank 1: error: "),
    "short": (cut("part-1/g_local.src.npy"), "g_local.src.npy ends before its"),
    "another rank": (
        lambda f: shutil.copy(f / "part-0" / "part.npy", f / "part-1"),
        "part-1 has the part of rank 0 of 2, and the program runs on 2 ranks",
    ),
    "another number of ranks": (
        changed("part-1/part.npy", lambda x: x + np.array([0, 1, 0])),
        "part-1 has the part of rank 1 of 3, and the program runs on 2 ranks",
    ),
    "another graph": (
        changed("part-1/part.npy", lambda x: x + np.array([0, 0, 1])),
        "error: data: the parts of ranks 0 and 1 are not of one graph, cut in one way",
    ),
    "index": (
        changed("part-0/g_remote.src.npy", lambda x: x + 1000),
        "rank 0: error: g_remote.src[0] is 10",
    ),
    "other messages": (
        changed("part-1/N_ghost.peer.npy", lambda x: x + 1),
        "rank 1: error: rank 0 sends ",
    ),
    "rows": (
        changed("part-0/y.npy", lambda x: x[1:].copy()),
        "they have to be as many",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_parts(name: str, program: Path, tmp_path: Path) -> None:
    """All ranks end, with a status that is none of success."""
    spoil, message = WRONG[name]
    shutil.copytree(program.parent / "data", tmp_path / "data")
    shutil.copytree(program.parent / "parameters", tmp_path / "parameters")
    moved = Path(shutil.copy(program, tmp_path))
    spoil(tmp_path / "data")
    done = started(moved, 2)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "trained").exists()


@pytest.mark.parametrize("ranks", [1, 3])
def test_another_number_of_ranks(ranks: int, program: Path) -> None:
    done = started(program, ranks)
    assert done.returncode == 1
    expected = f"error: the program is made for 2 ranks, and MPI has started {ranks}: mpiexec -n 2 "
    assert done.stderr.count(expected) == 1


def test_what_is_wrong_on_all_is_told_once(program: Path) -> None:
    done = started(program, 2, "--what")
    assert done.returncode == 2
    assert done.stderr.count("usage: ") == 1
    done = started(program, 2, "--epochs", "many")
    assert done.returncode == 1
    assert done.stderr.count("--epochs takes a number") == 1


def test_what_cannot_be_written(program: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = started(program, 2, "--out", str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr.startswith("rank 0: error: ")
    assert "cannot be written" in done.stderr
