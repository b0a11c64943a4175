"""A training that goes on from a checkpoint goes on as if it had not been stopped, on as many ranks
or on others."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adagrad, Adam, AdamW, RMSprop

import gnnc
from gnnc.runtime.ranks import virtual

from .checkpointed import AT, STEPS, Training, assert_close, on, own_generators, resumed, stopped
from .cut_models import adam, graph, net

LONG = pytest.mark.long
CHANGES = [(1, 1), (2, 2), (2, 1), (1, 3), (2, 4)]


def check(
    monkeypatch: Any, path: Path, name: str, before: int, after: int, mode: str, **options: Any
) -> None:
    """As many ranks end with the same bits, other numbers of ranks with almost the same numbers."""
    own_generators(monkeypatch)
    data = graph(24, 90)
    whole = on(before, stopped(name, data, path, mode, **options))
    for found in on(after, resumed(name, data, path, mode, **options)):
        assert len(found["losses"]) == STEPS
        assert_close(found, whole[0], 0 if before == after else 1e-9)


@pytest.mark.parametrize(
    ("before", "after", "mode"),
    [
        (1, 1, "step"),
        (2, 2, "step"),
        (1, 3, "loop"),
        *(pytest.param(*c, m, marks=LONG) for c in CHANGES for m in ("step", "loop")),
    ],
)
def test_goes_on(monkeypatch: Any, tmp_path: Path, before: int, after: int, mode: str) -> None:
    check(monkeypatch, tmp_path / "run.pt", "gcn", before, after, mode)


@LONG
@pytest.mark.parametrize("mode", ["step", "loop"])
@pytest.mark.parametrize("name", ["sage", "gin", "gat", "rgcn"])
@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_other_models(
    monkeypatch: Any, tmp_path: Path, before: int, after: int, name: str, mode: str
) -> None:
    check(monkeypatch, tmp_path / "run.pt", name, before, after, mode)


OPTIMIZERS: dict[str, Any] = {
    "adam": adam,
    "amsgrad": partial(Adam, lr=0.01, amsgrad=True),
    "adamw": partial(AdamW, lr=0.01),
    "momentum": partial(SGD, lr=0.01, momentum=0.9, dampening=0.1),
    "adagrad": partial(Adagrad, lr=0.01),
    "rmsprop": partial(RMSprop, lr=0.01, centered=True, momentum=0.9),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_compiled_steps_take_what_is_restored(tmp_path: Path, name: str) -> None:
    """Those that have gone on, and new ones; by torch's own generator."""
    data, path = graph(24, 90), tmp_path / "run.pt"
    training = Training(net("gcn"), data, make=OPTIMIZERS[name])
    training.run(AT)
    training.save(path)
    training.run(STEPS - AT)
    whole = training.state()
    training.load(path)
    training.run(STEPS - AT)
    assert_close(training.state(), whole, 0)
    torch.manual_seed(99)
    assert_close(resumed("gcn", data, path, "step", make=OPTIMIZERS[name])(), whole, 0)


def test_a_step_before_the_first_update(tmp_path: Path) -> None:
    """Where optimizers have no state yet."""
    data, path = graph(24, 90), tmp_path / "run.pt"
    training = Training(net("gcn"), data, make=OPTIMIZERS["momentum"])
    training.save(path)
    training.run(STEPS)
    whole = training.state()
    training.load(path)
    training.run(STEPS)
    assert_close(training.state(), whole, 0)


@LONG
def test_a_step_on_ranks_is_taken_back(monkeypatch: Any, tmp_path: Path) -> None:
    own_generators(monkeypatch)
    model, data, path = net("gcn"), graph(24, 90), tmp_path / "run.pt"

    def work() -> tuple[Any, Any]:
        training = Training(model, data)
        training.run(AT)
        training.save(path)
        training.run(STEPS - AT)
        whole = training.state()
        training.load(path)
        training.run(STEPS - AT)
        return whole, training.state()

    for whole, again in on(2, work):
        assert_close(again, whole, 0)


def test_random_numbers_are_a_part_of_it(tmp_path: Path) -> None:
    """The checks above can fail."""
    data, path = graph(24, 90), tmp_path / "run.pt"
    training = Training(net("gcn"), data)
    training.run(AT)
    training.save(path)
    training.run(1)
    wanted = training.losses
    training.load(path)
    torch.manual_seed(99)
    training.run(1)
    assert training.losses[:AT] == wanted[:AT] and training.losses[AT] != wanted[AT]


def test_ranks_have_random_numbers_of_their_own(monkeypatch: Any, tmp_path: Path) -> None:
    """Which as many ranks get back; others have those of rank 0."""
    own_generators(monkeypatch)
    path = tmp_path / "run.pt"

    def save(c: Any) -> torch.Tensor:
        torch.set_rng_state(torch.Generator().manual_seed(c.rank).get_state())
        gnnc.save_checkpoint(path)
        return torch.get_rng_state()

    def load(_: Any) -> torch.Tensor:
        assert gnnc.load_checkpoint(path) == {}
        return torch.get_rng_state()

    saved = virtual.run(3, save)
    assert not torch.equal(saved[0], saved[1])
    assert_close(virtual.run(3, load), saved, 0)
    assert_close(virtual.run(2, load), [saved[0]] * 2, 0)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state:UserWarning")
def test_values_and_parts_of_a_checkpoint(tmp_path: Path) -> None:
    path = str(tmp_path / "run.pt")
    model = net("gcn")
    optimizer = adam(model.parameters())
    sparse = torch.eye(3).to_sparse_csr()
    values: dict[str, Any] = {
        "epoch": 3,
        "best": {"accuracy": 0.5, 2: [None, "a", (1j, b"x")]},
        "seen": {4, 5},
        "weights": torch.arange(4, dtype=torch.bfloat16),
        "kind": torch.float32,
    }
    gnnc.save_checkpoint(path, model=model, optimizer=optimizer, graph=sparse, **values)
    other = copy.deepcopy(model)
    nn.init.zeros_(other.first.lin.weight)
    rest = gnnc.load_checkpoint(path, model=other)  # as for inference
    assert torch.equal(other.first.lin.weight, model.first.lin.weight)
    assert torch.equal(rest.pop("graph").to_dense(), torch.eye(3))
    state = rest.pop("optimizer")
    assert_close(state, optimizer.state_dict(), 0)
    assert_close(rest, values, 0)
    assert_close(gnnc.load_checkpoint(path)["model"], model.state_dict(), 0)
