"""What cannot be built for ranks, and what a build for them writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

import gnnc
from gnnc.codegen.openmp.standalone import OnHost
from gnnc.codegen.standalone.description import NoProgram
from gnnc.codegen.standalone.tables import TableCode
from gnnc.frontend.cli import main
from gnnc.frontend.torch.training.build import build
from gnnc.runtime.ranks import launch

from .on_ranks import arrays
from .programs import CLASSES, FEATURES, graph, indexed, masked

pytest.importorskip("mpi4py")

RANKS = 3


def test_parts_are_those_of_the_graph(tmp_path: Path) -> None:
    """Each node, edge and chosen row is in one part; rows and ends are those of the whole graph."""
    data = graph()
    build(indexed, (data,), {}, tmp_path, target="mpi", ranks=RANKS)
    parts = [arrays(tmp_path / "data" / f"part-{r}") for r in range(RANKS)]
    assert [p["part"][:2].tolist() for p in parts] == [[r, RANKS] for r in range(RANKS)]
    assert len({p["part"][2] for p in parts}) == 1
    owned = [p["N_own.number"] for p in parts]
    assert sorted(np.concatenate(owned)) == list(range(120))
    rows = np.concatenate([p["x"] for p in parts])
    np.testing.assert_array_equal(rows, data.x.numpy()[np.concatenate(owned)])
    chosen = [own[p["g.src"]] for own, p in zip(owned, parts, strict=True)]
    assert sorted(np.concatenate(chosen)) == sorted(data.chosen.tolist())
    edges: list[tuple[int, int]] = []
    for r, (own, p) in enumerate(zip(owned, parts, strict=True)):
        # what others send to this rank, one after the other, is what it reads of them
        ghosts = [
            owned[q][parts[q]["N_sent.owner"][parts[q]["N_sent.peer"] == r]] for q in range(RANKS)
        ]
        of_ghosts = np.concatenate(ghosts)
        assert (
            p["N_ghost.peer"].tolist() == np.repeat(range(RANKS), list(map(len, ghosts))).tolist()
        )
        edges += zip(own[p["g1_local.src"]], own[p["g1_local.dst"]], strict=True)
        edges += zip(of_ghosts[p["g1_remote.src"]], own[p["g1_remote.dst"]], strict=True)
    assert sorted(edges) == sorted(map(tuple, data.edge_index.T.tolist()))


@gnnc.training
def plain(data, epochs=2):
    model = nn.Linear(FEATURES, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x), data.y)
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


class Remembers(nn.Module):
    """Keeps of each node what it was in the step before."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.conv = SAGEConv(FEATURES, CLASSES)
        self.last: Tensor
        self.register_buffer("last", torch.zeros(nodes, CLASSES))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        out = self.conv(x, edges) + 0.5 * self.last
        self.last.copy_(out.detach())
        return out


@gnnc.training
def remembering(data, epochs=2):
    model = Remembers(data.num_nodes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index), data.y)
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


@gnnc.training
def reads_numbers(data, epochs=2):
    model = SAGEConv(FEATURES, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out, data.y) + data.edge_index.float().mean()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


REFUSED: dict[str, tuple[Any, str]] = {
    "no graph": (plain, "reads no edges .* that ranks could divide"),
    "state of nodes": (remembering, "last has rows that belong to ranks, and the step changes"),
    "numbers": (reads_numbers, "computes with the numbers in edge_index"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", list(REFUSED))
def test_what_ranks_cannot_divide(name: str, tmp_path: Path) -> None:
    training, message = REFUSED[name]
    with pytest.raises(NoProgram, match=message):
        build(training, (graph(),), {}, tmp_path / "out", target="mpi", ranks=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("target", "ranks", "message"),
    [
        ("mpi", None, "ranks: a program for mpi is made for 1 or more, not None"),
        ("mpi", 0, "ranks: a program for mpi is made for 1 or more, not 0"),
        ("openmp", 2, "ranks: a program for the target openmp has none"),
    ],
)
def test_wrong_numbers_of_ranks(
    target: str, ranks: int | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        build(masked, (graph(), "gcn"), {}, tmp_path, target=target, ranks=ranks)


def test_programs_for_one_process_send_nothing() -> None:
    with pytest.raises(NoProgram, match="for one process exchanges no rows"):
        OnHost().carried("b[0]", {"moves": [], "reductions": []}, TableCode({}, {}, []))
    with pytest.raises(NoProgram, match="for one process has no part"):
        OnHost().part("data")


COMMAND = ("build", "program.py", "--data", "arrays", "--target", "mpi", "-o", "out")


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "-n", "2"]) == 0
    assert "out: small in C with " in capsys.readouterr().out
    assert "-n 2 ./train" in (folder / "out" / "Makefile").read_text()
    assert sorted(f.name for f in (folder / "out" / "data").iterdir()) == ["part-0", "part-1"]


def test_the_command_without_mpi(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is told before anything is compiled."""
    monkeypatch.setattr(launch, "files", lambda name: None)
    monkeypatch.setattr(launch.sys, "executable", str(folder / "python"))
    monkeypatch.setattr(launch.shutil, "which", lambda name: None)
    assert main([*COMMAND, "-n", "2"]) == 1
    error = capsys.readouterr().err
    assert 'ranks need MPI, and there is no mpicc: pip install "gnnc[mpi]"' in error
    assert not (folder / "out").exists()


def test_the_command_without_a_number_of_ranks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMAND]) == 1
    assert "ranks: a program for mpi is made for 1 or more" in capsys.readouterr().err
