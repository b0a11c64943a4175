"""What goes wrong with a checkpoint is an error on all ranks, and changes nothing."""

from __future__ import annotations

import copy
import errno
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import StepLR

import gnnc
from gnnc.frontend.torch.checkpoints import file
from gnnc.frontend.torch.checkpoints.checkpoints import FORMAT
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.errors import Disagreement

from .checkpointed import assert_close, own_generators

RANKS = 3


class Small:
    """A model with all that belongs to it, after a step."""

    def __init__(self, fill: float = 1.0) -> None:
        self.model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        self.optimizer = Adam(self.model.parameters())
        self.schedule = StepLR(self.optimizer, 1)
        for x in self.model.parameters():
            nn.init.constant_(x, fill)
            x.grad = torch.full_like(x, fill)
        self.optimizer.step()
        self.schedule.step()

    @property
    def objects(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def state(self) -> dict[str, Any]:
        """All that may change, as copies."""
        states = {name: x.state_dict() for name, x in self.objects.items()}
        return copy.deepcopy({**states, "random": torch.get_rng_state()})


@pytest.fixture(autouse=True)
def generators(monkeypatch: pytest.MonkeyPatch) -> None:
    own_generators(monkeypatch)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.pt"
    gnnc.save_checkpoint(path, **Small(2.0).objects, epoch=3)
    return path


def refused(error: type[Exception], match: str, act: Callable[[Small, int], Any]) -> None:
    """All ranks get the error, and what they have stays as it is."""

    def work(c: Any) -> None:
        small = Small()
        before = small.state()
        with pytest.raises(error, match=match):
            act(small, c.rank)
        assert_close(small.state(), before, 0)

    virtual.run(RANKS, work)
    if error is not Disagreement:
        with pytest.raises(error, match=match):
            act(Small(), 0)


# ---------------------------------------------------------------- writing


def test_full_disk(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    text = r"\[Errno 28\] checkpoint .*run.pt cannot be written: No space left on device"
    refused(OSError, text, lambda small, _: gnnc.save_checkpoint(saved, **small.objects))
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    for path, error in ((tmp_path / "no" / "a", FileNotFoundError), (tmp_path, IsADirectoryError)):
        text = f"checkpoint {path} cannot be written"
        refused(error, text, lambda small, _, p=path: gnnc.save_checkpoint(p, **small.objects))
        text = f"checkpoint {path} cannot be read"
        refused(error, text, lambda small, _, p=path: gnnc.load_checkpoint(p, **small.objects))


def differ_in_a_parameter(small: Small, rank: int) -> dict[str, Any]:
    if rank == 1:
        with torch.no_grad():
            small.model[0].weight[1, 2].mul_(1 + 1e-7)
    return small.objects


def differ_in_a_buffer(small: Small, rank: int) -> dict[str, Any]:
    small.model[1].running_mean[0] = float(rank == 1)
    return small.objects


def differ_in_the_optimizer(small: Small, rank: int) -> dict[str, Any]:
    small.optimizer.state[small.model[0].bias]["step"] += rank == 1
    return small.objects


def differ_in_the_rate(small: Small, rank: int) -> dict[str, Any]:
    small.optimizer.param_groups[0]["lr"] = 0.1 * (1 + (rank == 1))
    return small.objects


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (differ_in_a_parameter, "model"),
        (differ_in_a_buffer, "model"),
        (differ_in_the_optimizer, "optimizer"),
        (differ_in_the_rate, "optimizer"),
        (lambda small, rank: {"loss": float(rank == 1)}, "loss"),
        (lambda small, rank: {"kind": [1, 1.0][rank == 1]}, "kind"),
    ],
)
def test_ranks_that_differ(saved: Path, change: Any, what: str) -> None:
    before = saved.read_bytes()

    def work(c: Any) -> None:
        arguments = change(Small(), c.rank)
        text = f"ranks differ in {what}, an argument of save_checkpoint: rank 1 from ranks 0 and 2"
        with pytest.raises(Disagreement, match=text):
            gnnc.save_checkpoint(saved, **arguments)

    virtual.run(RANKS, work)
    assert saved.read_bytes() == before


def test_ranks_that_call_otherwise(saved: Path) -> None:
    def other_path(small: Small, rank: int) -> None:
        gnnc.save_checkpoint(saved.with_name(f"{rank // 2}.pt"))

    def other_names(small: Small, rank: int) -> None:
        gnnc.save_checkpoint(saved, **{f"epoch{rank // 2}": 3})

    def other_objects(small: Small, rank: int) -> None:
        names = ["model", "optimizer"][: 1 + (rank == 2)]
        gnnc.load_checkpoint(saved, **{name: small.objects[name] for name in names})

    refused(Disagreement, "path, an argument of save_checkpoint: rank 2", other_path)
    refused(Disagreement, "the names for save_checkpoint: rank 2 from ranks 0 and 1", other_names)
    refused(Disagreement, "the objects for load_checkpoint: rank 2", other_objects)


class Number(int):
    """Code that a file would have to name."""


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"accuracy": np.float64(0.5)}, "accuracy is of type float64: a checkpoint has tensors"),
        ({"a": {"b": [1, np.ones(3)]}}, r"a\['b'\]\[1\] is of type ndarray"),
        ({"a": {Number(1): 2}}, "a key of a is of type Number"),
        ({"loss": print}, "loss is of type builtin_function_or_method"),
        ({"a": {(1, Number(2))}}, r"an element of a\[1\] is of type Number"),
    ],
)
def test_values_that_are_not_plain(tmp_path: Path, values: dict[str, Any], text: str) -> None:
    refused(TypeError, text, lambda _, rank: gnnc.save_checkpoint(tmp_path / "a", **values))
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments(saved: Path) -> None:
    for act in (gnnc.save_checkpoint, gnnc.load_checkpoint):
        with pytest.raises(TypeError, match="path must be the path of a file, not int"):
            act(3)
    with pytest.raises(TypeError, match="epoch must have state_dict and load_state_dict, which in"):
        gnnc.load_checkpoint(saved, epoch=0)


# ---------------------------------------------------------------- files


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def altered(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(torch.full((3,), 2.0 - 1e-3).numpy().tobytes())] ^= 1
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("accuracy,loss")


def other_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("part.npy", b"1")


def state_of_torch(path: Path) -> None:
    torch.save(Small().model.state_dict(), path)


def tensor(path: Path) -> None:
    torch.save(torch.ones(3), path)


def code(path: Path) -> None:
    """A pickle that would run a program."""
    torch.save({"format": FORMAT, "states": os.system}, path)


def next_version(path: Path) -> None:
    file.write(path, "checkpoint of gnnc, 2", {"states": {}})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (shortened, "is damaged or no checkpoint: "),
        (altered, "is damaged: the checksum of .* is another"),
        (emptied, "is damaged or no checkpoint: "),
        (text, "is damaged or no checkpoint: "),
        (other_zip, "is damaged or no checkpoint: "),
        (state_of_torch, "is no checkpoint of gnnc"),
        (tensor, "is no checkpoint of gnnc"),
        (code, "is damaged or no checkpoint: "),
        (
            next_version,
            'is no "checkpoint of gnnc, 1", which is read here, but a "ch.* 2"',
        ),
    ],
)
def test_damaged_and_foreign_files(saved: Path, change: Any, match: str) -> None:
    change(saved)
    before = saved.read_bytes()
    refused(
        gnnc.BadCheckpoint,
        f"{saved} {match}",
        lambda small, _: gnnc.load_checkpoint(saved, **small.objects),
    )
    assert saved.read_bytes() == before


def test_any_bit(saved: Path) -> None:
    """A bit that is another is found, or means nothing."""
    whole, draw = saved.read_bytes(), random.Random(1)
    wanted, found = file.unpacked(whole, saved, FORMAT), 0
    for _ in range(1000):
        data = bytearray(whole)
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        try:
            read = file.unpacked(bytes(data), saved, FORMAT)
        except gnnc.BadCheckpoint:
            found += 1
        else:
            assert_close(read, wanted, 0)
    assert found > 300


# ---------------------------------------------------------------- what does not fit


def swapped(small: Small, **others: Any) -> dict[str, Any]:
    """In an order in which what fits comes first."""
    return {"schedule": small.schedule, **small.objects, **others}


CASES: dict[str, tuple[Callable[[Small], dict[str, Any]], str]] = {
    "layers": (
        lambda s: swapped(s, model=nn.Sequential(*s.model, nn.Linear(2, 2))),
        "model does not fit checkpoint .*run.pt: the checkpoint has no 2.weight and 1 more",
    ),
    "fewer layers": (
        lambda s: swapped(s, model=nn.Sequential(s.model[0])),
        "model does not fit .*: the checkpoint has 1.weight and 4 more, and it has not",
    ),
    "shape": (
        lambda s: swapped(s, model=nn.Sequential(nn.Linear(4, 2), s.model[1])),
        r"0.weight is float32 \[2, 3\] in the checkpoint, and float32 \[2, 4\] in it",
    ),
    "type": (
        lambda s: swapped(s, model=nn.Sequential(nn.Linear(3, 2).double(), s.model[1])),
        r"0.weight is float32 \[2, 3\] in the checkpoint, and float64 \[2, 3\] in it",
    ),
    "optimizer": (
        lambda s: swapped(s, optimizer=AdamW(s.model.parameters())),
        "optimizer does not fit .*: the checkpoint has the state of Adam, and it is AdamW",
    ),
    "groups": (
        lambda s: swapped(s, optimizer=Adam([{"params": x} for x in s.model.parameters()])),
        r"has groups of \[4\] parameters, and it has \[1, 1, 1, 1\]",
    ),
    "parameters": (
        lambda s: swapped(s, optimizer=Adam([*s.model.parameters()][::-1])),
        r"parameter 0 is float32 \[2, 3\] in the checkpoint, and float32 \[2\] in it",
    ),
    "value": (
        lambda s: swapped(s, epoch=s.model),
        "epoch does not fit .*: the checkpoint has a value of type int there, and no state",
    ),
    "model for optimizer": (
        lambda s: swapped(s, model=s.optimizer),
        "model does not fit .*: the checkpoint has no state of an optimizer there",
    ),
    "name": (
        lambda s: swapped(s, scheduler=s.schedule),
        "run.pt has no scheduler: it has model, optimizer, schedule, epoch",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_fit(saved: Path, case: str) -> None:
    make, match = CASES[case]

    def act(small: Small, _: int) -> None:
        gnnc.load_checkpoint(saved, **make(small))

    refused(gnnc.BadCheckpoint, match, act)


def test_what_does_not_fit_on_one_rank(saved: Path) -> None:
    def act(small: Small, rank: int) -> None:
        others = {"optimizer": SGD(small.model.parameters())} if rank == 1 else {}
        gnnc.load_checkpoint(saved, **swapped(small, **others))

    def work(c: Any) -> None:
        small = Small()
        before = small.state()
        with pytest.raises(gnnc.BadCheckpoint, match="rank 1: optimizer does not fit .* SGD"):
            act(small, c.rank)
        assert_close(small.state(), before, 0)

    virtual.run(RANKS, work)


class Picky:
    """An object that takes no state but its own, on one rank."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def state_dict(self) -> dict[str, int]:
        return {"rank": self.rank}

    def load_state_dict(self, state: dict[str, int]) -> None:
        if self.rank == 1 and state["rank"] != 1:
            raise KeyError("mine")
        self.rank = state["rank"]


def test_what_was_loaded_before_another_fails_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    gnnc.save_checkpoint(path, **Small(2.0).objects, picky=Picky(0))

    def work(c: Any) -> None:
        small, picky = Small(), Picky(c.rank)
        before = small.state()
        match = r"rank 1: picky does not take its state from checkpoint .*: KeyError\('mine'\)"
        with pytest.raises(gnnc.BadCheckpoint, match=match):
            gnnc.load_checkpoint(path, **small.objects, picky=picky)
        assert_close(small.state(), before, 0)
        assert picky.rank == c.rank
        gnnc.load_checkpoint(path, **small.objects)  # without it all goes well
        assert_close(small.state()["model"], Small(2.0).state()["model"], 0)

    virtual.run(RANKS, work)
