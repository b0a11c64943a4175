"""A training that was killed, at any moment, goes on as if it had not been."""

import errno
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gnnc.frontend.cli import main
from gnnc.frontend.tools import checkpoint
from gnnc.frontend.tools.checkpoint_folder import opened
from gnnc.frontend.tools.children import Refused
from gnnc.frontend.tools.datasets import citation
from gnnc.frontend.tools.training import Settings
from gnnc.tests.frontend.killed_training import SETTINGS

MODES = ["eager", "drop-in", "step"]
MOMENTS = ["half written", "written", "synchronised", "renamed"]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch):
    """Graphs of 60 nodes have no work for two, and waiting threads disturb other processes."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def killed(mode: str, folder: Path, *kills: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answers of a training without a break, and of one with; both left equal checkpoints."""
    command = [sys.executable, "-m", "gnnc.tests.frontend.killed_training", mode, str(folder)]
    subprocess.run([*command, *kills], check=True, timeout=600)
    states = [torch.load(folder / f"{n}.pt", weights_only=True) for n in ("whole", "broken")]
    assert_same(*(s["state"] for s in states))
    whole, broken = (json.loads((folder / f"{n}.json").read_text()) for n in ("whole", "broken"))
    for name in ("losses", "evaluations", "accuracy", "graph"):
        assert whole[name] == broken[name]
    assert len(broken["epoch_seconds"]) == SETTINGS["epochs"]
    assert [p.name for p in folder.glob("*.new")] == []
    return whole, broken


def assert_same(a: Any, b: Any) -> None:
    """Equal in every bit."""
    assert type(a) is type(b)
    if isinstance(a, Tensor):
        assert a.dtype == b.dtype
        assert torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "mode", ["step", *(pytest.param(m, marks=LONG) for m in ("eager", "drop-in"))]
)
def test_killed_while_a_checkpoint_is_written(mode: str, tmp_path: Path):
    whole, broken = killed(mode, tmp_path, *MOMENTS)
    assert whole["starts"] == [0]
    # each attempt writes one checkpoint, two epochs on, and dies in its second
    assert broken["starts"] == [0, 2, 4, 6, 10]
    assert ("kernels" in broken) == (mode != "eager")


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_killed_at_random(mode: str, tmp_path: Path):
    draw = random.Random(mode)
    kills = [f"after:{draw.uniform(0, 0.1):.4f}" for _ in range(12)]
    _, broken = killed(mode, tmp_path, *kills)
    assert all(start % 2 == 0 for start in broken["starts"])


DATA = citation(60, 116)


def small(**changed: Any) -> Settings:
    return Settings(**{**SETTINGS, "mode": "eager", "nodes": 60, **changed})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint of `small`, with 3 as its state."""
    path = tmp_path / "eager-seed1.pt"
    checkpoint.write(path, small(), DATA.checksum, {"weight": torch.ones(9)}, {"epochs": 3})
    return path


def test_reads_what_was_written(saved: Path):
    state, told = checkpoint.read(saved, small(root="elsewhere"), DATA.checksum)
    assert state["weight"].tolist() == [1] * 9
    assert told == {"epochs": 3}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("hidden", 8, "with hidden 4, not 8"),
        ("weight_decay", 0.1, "with weight-decay 0.0005, not 0.1"),
        ("mode", "step", "with mode eager, not step"),
        ("eval_every", 1, "with eval-every 3, not 1"),
    ],
)
def test_other_settings_are_named(saved: Path, name: str, value: object, text: str):
    with pytest.raises(Refused, match=text):
        checkpoint.read(saved, small(**{name: value}), DATA.checksum)


def test_other_data(saved: Path):
    other = replace(DATA, y=DATA.y[::-1].copy())
    with pytest.raises(Refused, match="on other data than --dataset"):
        checkpoint.read(saved, small(), other.checksum)


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def altered(path: Path) -> None:
    data = bytearray(path.read_bytes())
    place = data.index(torch.ones(9).numpy().tobytes())
    data[place] ^= 1
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("accuracy,loss")


def other_model(path: Path) -> None:
    torch.save({"weight": torch.ones(3)}, path)


def code(path: Path) -> None:
    """A pickle that would run a program."""
    torch.save({"weight": os.system}, path)


@pytest.mark.parametrize("change", [shortened, altered, emptied, text, other_model, code])
def test_damaged_and_foreign_files(saved: Path, change: Callable[[Path], None]):
    change(saved)
    before = saved.read_bytes()
    with pytest.raises(Refused, match=f"--resume: {saved} is (damaged|no checkpoint)"):
        checkpoint.read(saved, small(), DATA.checksum)
    assert saved.read_bytes() == before


def test_full_disk(saved: Path, monkeypatch: pytest.MonkeyPatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refused, match="cannot be written: .* No space left"):
        checkpoint.write(saved, small(), DATA.checksum, {}, {})
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_folder(saved: Path):
    """Nothing of an earlier run is overwritten, and what is resumed has to be there."""
    for folder, resume, text in (
        (saved.parent, False, r"has checkpoints of an earlier run \(eager-seed1.pt, ..\): go on"),
        (saved.parent / "typo", True, "--checkpoint: No such file or directory"),
        (saved, False, "--checkpoint: File exists"),
    ):
        with pytest.raises(Refused, match=text), opened(folder, resume):
            pass
    with opened(saved.parent, resume=True) as found:
        assert found.file("eager", 1) == saved
    with opened(saved.parent / "new" / "folder", resume=False) as found:
        assert found.path.is_dir()


def test_folder_of_a_run_that_goes_on(tmp_path: Path):
    with opened(tmp_path, resume=False):
        with pytest.raises(Refused, match="--checkpoint: another run is writing to"):
            with opened(tmp_path, resume=True):
                pass
    with opened(tmp_path, resume=True):
        pass


TRAIN = [
    *("train", "--only", "compiled", "--mode", "step", "--nodes", "60", "--hidden", "4"),
    *("--epochs", "90", "--seeds", "2", "--eval-every", "30"),
]


@pytest.mark.long
def test_command_is_killed_and_resumed(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """With its child, which ends where its parent is gone."""
    kept = ["--checkpoint", str(tmp_path), "--checkpoint-every", "1"]
    program = [sys.executable, "-m", "gnnc.frontend.cli", *TRAIN, *kept]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        file = tmp_path / "compiled-seed0.pt"
        while not file.exists():
            assert parent.poll() is None
            time.sleep(0.002)
        (child,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        parent.kill()
    while Path(f"/proc/{child}").exists():
        time.sleep(0.01)
    assert not (tmp_path / "compiled-seed1.pt").exists()

    assert main([*TRAIN, *kept, "--json"]) == 1
    assert "has checkpoints of an earlier run" in capfd.readouterr().err
    assert main([*TRAIN, *kept, "--resume", "--hidden", "8", "--json"]) == 1
    assert "is of a training with hidden 4, not 8" in capfd.readouterr().err
    found: list[Any] = []
    for arguments in ([*kept, "--resume"], [*kept, "--resume"], []):
        assert main([*TRAIN, *arguments, "--json"]) == 0
        found.append(json.loads(capfd.readouterr().out)["compiled"])
    resumed, finished, whole = found
    assert resumed == finished  # there was nothing left to train
    assert resumed["histories"][0]["starts"][1] > 0
    for name in ("accuracies", "losses"):
        assert resumed[name] == whole[name]
    for one, other in zip(resumed["histories"], whole["histories"], strict=True):
        assert one["losses"] == other["losses"]
        assert one["evaluations"] == other["evaluations"]
        assert [e["epoch"] for e in one["evaluations"]] == [30, 60, 90]
