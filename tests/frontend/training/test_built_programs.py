"""Built programs train without Python: the losses of Python's, on the same data and on other."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import gnnc
from gnnc.frontend.torch.training.build import build
from gnnc.frontend.torch.training.data import GraphArrays, load
from gnnc.frontend.torch.training.program import TrainingProgram

from .building import assert_equal, compiled, made, numbers, printed, trained
from .programs import CLASSES, FEATURES, graph, indexed, loops, masked, relational, sparse_graph

WITHIN = 1e-6
"""How far the losses may be apart, which are printed with all digits: kernels are the same."""

LONG = pytest.mark.long

OPTIMIZERS = {
    "momentum": {"optimizer": "SGD", "lr": 0.1, "momentum": 0.9, "dampening": 0.3},
    "adamw": {"optimizer": "AdamW", "weight_decay": 0.1, "amsgrad": True, "maximize": False},
    "adagrad": {"optimizer": "Adagrad", "lr": 0.1, "lr_decay": 0.1},
    "rmsprop": {"optimizer": "RMSprop", "momentum": 0.5, "centered": True, "alpha": 0.9},
}


@pytest.mark.parametrize(
    "kind", ["gcn", *(pytest.param(n, marks=LONG) for n in ("sage", "gin", "gat"))]
)
def test_losses(kind: str, tmp_path: Path):
    """With dropout, so the masks are Python's too; gin has running statistics."""
    theirs = printed(masked, graph(), kind)
    assert_equal(trained(made(masked, tmp_path, graph(), kind)), theirs, 20, WITHIN)


@pytest.mark.parametrize("training", [relational, loops])
def test_losses_with_relations(training: TrainingProgram, tmp_path: Path):
    theirs = printed(training, graph())
    assert_equal(trained(made(training, tmp_path, graph())), theirs, 20, WITHIN)


def test_losses_in_double(tmp_path: Path):
    data = graph(dtype=torch.float64)
    theirs = printed(masked, data, "gcn")
    assert_equal(trained(made(masked, tmp_path, data, "gcn")), theirs, 20, 1e-12)


@pytest.mark.parametrize(
    "name", ["momentum", *(pytest.param(n, marks=LONG) for n in ("adamw", "adagrad", "rmsprop"))]
)
def test_optimizers(name: str, tmp_path: Path):
    options = OPTIMIZERS[name]
    theirs = printed(masked, graph(), "gcn", **options)
    ours = trained(made(masked, tmp_path, graph(), "gcn", **options))
    assert_equal(ours, theirs, 20, WITHIN)


def test_reports_clips_and_chosen_rows(tmp_path: Path):
    theirs = printed(indexed, graph())
    assert trained(made(indexed, tmp_path, graph())) == theirs


def test_another_graph_in_the_folder(tmp_path: Path):
    """Larger, and with other features; the executable stays."""
    program = made(masked, tmp_path, graph(), "sage", epochs=5)
    other = graph(seed=1, nodes=200, edges=900)
    for name in other:
        np.save(tmp_path / "data" / f"{name}.npy", other[name].numpy())
    theirs = printed(masked, other, "sage", epochs=5)
    assert_equal(trained(program), theirs, 5, WITHIN)


def test_features_that_are_mostly_zeros(tmp_path: Path):
    """They are taken as sparse in both, and read dense from the file, another one too."""
    theirs = printed(masked, sparse_graph(), "gcn", epochs=5)
    program = made(masked, tmp_path, sparse_graph(), "gcn", epochs=5)
    assert "nonzeros(" in (tmp_path / "main.c").read_text()
    assert_equal(trained(program), theirs, 5, WITHIN)
    other = sparse_graph(seed=1)
    for name in other:
        np.save(tmp_path / "data" / f"{name}.npy", other[name].numpy())
    assert_equal(trained(program), printed(masked, other, "gcn", epochs=5), 5, WITHIN)


def test_what_is_prepared(tmp_path: Path):
    """The first aggregation of large features is made once, from those in the folder."""
    data = graph(nodes=22000, edges=30000)
    program = made(masked, tmp_path, data, "gcn", dropout=0.0, epochs=3)
    text = (tmp_path / "main.c").read_text()
    prepared = text.split("static void make_graph")[1].split("ws_prepare =")[0]
    assert "b_prepare" in prepared
    assert "x_x.data" in prepared
    theirs = printed(masked, data, "gcn", dropout=0.0, epochs=3)
    assert_equal(trained(program), theirs, 3, WITHIN)
    other = graph(seed=2, nodes=23000, edges=20000)
    for name in other:
        np.save(tmp_path / "data" / f"{name}.npy", other[name].numpy())
    theirs = printed(masked, other, "gcn", dropout=0.0, epochs=3)
    assert_equal(trained(program), theirs, 3, WITHIN)


SHARED = graph(nodes=50, edges=200)


class Scaled(nn.Module):
    """A module with a buffer that its forward changes, and one that the step reads from outside."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, CLASSES)
        self.calls: torch.Tensor
        self.scale: torch.Tensor
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("scale", torch.full((CLASSES,), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.linear(x) / self.calls.sqrt()


@gnnc.training
def buffers(epochs=5):
    model = Scaled()
    weights = torch.linspace(1, 2, CLASSES)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        optimizer.zero_grad()
        out = model(SHARED.x) * model.scale
        loss = F.cross_entropy(out, SHARED.y, weight=weights)
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())


def test_buffers_and_names_of_the_module(tmp_path: Path):
    theirs = printed(buffers)
    assert_equal(trained(made(buffers, tmp_path)), theirs, 5, WITHIN)
    found = sorted(f.stem for f in (tmp_path / "data").iterdir())
    assert found == ["weights", "x", "y"]
    kept = load(tmp_path / "parameters")
    assert (float(kept["calls"]), float(kept["scale"][0])) == (0.0, 0.5)
    assert float(load(tmp_path / "trained")["calls"]) == 5.0


def test_what_was_learnt_is_written(tmp_path: Path):
    """The parameters at the end are Python's, and training goes on from them as without a break."""
    program = made(masked, tmp_path, graph(), "gcn", epochs=6)
    text = trained(program)
    first = trained(program, "--epochs", "2", "--out", "two")
    rest = trained(program, "--epochs", "4", "--parameters", "two")
    assert numbers(first)[1::2] + numbers(rest)[1::2] == numbers(text)[1::2]
    found = load(tmp_path / "trained")
    begun = masked.begin(masked.given, (graph(), "gcn"), {"epochs": 6})
    torch.manual_seed(0)
    begun = masked.begin(masked.given, (graph(), "gcn"), {"epochs": 6})
    for _ in range(6):
        begun.step(*begun.functions.inputs.values())
    model = begun.names["model"]
    assert isinstance(model, nn.Module)
    assert len(list(model.named_parameters())) == 4
    for name, x in model.named_parameters():
        torch.testing.assert_close(found[name], x.detach(), rtol=1e-6, atol=1e-7)


def test_options(tmp_path: Path):
    program = made(masked, tmp_path, graph(), "gcn", epochs=3)
    moved = tmp_path / "elsewhere"
    (tmp_path / "data").rename(moved)
    assert len(trained(program, "--data", "elsewhere").splitlines()) == 3


@LONG
def test_sanitized(tmp_path: Path):
    """Without a word of the address and undefined-behaviour sanitizers, on an empty graph too."""
    program = made(relational, tmp_path, graph(), epochs=3, goal="sanitize")
    assert_equal(trained(program), printed(relational, graph(), epochs=3), 3, WITHIN)
    empty = {"edge_index": np.zeros((2, 0), np.int64), "edge_type": np.zeros(0, np.int64)}
    for name, x in empty.items():
        np.save(tmp_path / "data" / f"{name}.npy", x)
    arrays = {n: torch.from_numpy(x) for n, x in empty.items()}
    without_edges = GraphArrays({n: graph()[n] for n in graph()} | arrays)
    assert_equal(trained(program), printed(relational, without_edges, epochs=3), 3, WITHIN)


@LONG
def test_the_reference_target(tmp_path: Path):
    build(masked, (graph(), "gcn"), {"epochs": 3}, tmp_path, target="reference")
    theirs = printed(masked, graph(), "gcn", epochs=3)
    assert_equal(trained(compiled(tmp_path)), theirs, 3, 2e-5)
