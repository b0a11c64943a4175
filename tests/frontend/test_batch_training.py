"""`gnnc train --batch-size`: epochs of batches, which go on from a checkpoint, and their report."""

import copy
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from gnnc.frontend.argo.configurations import Configuration
from gnnc.frontend.argo.worker import Worker
from gnnc.frontend.cli import main
from gnnc.frontend.tools import train_command, tuned_training, tuning_report
from gnnc.frontend.tools.batch_training import BatchTraining, loader
from gnnc.frontend.tools.children import Message, Tell
from gnnc.frontend.tools.datasets import citation
from gnnc.frontend.tools.training import Settings
from gnnc.frontend.tools.training_run import Kept
from gnnc.frontend.tools.tuned_training import Tuning
from gnnc.tests.frontend.argo.left import shared_memory

TASK = citation(60, 116)
SETTINGS: dict[str, Any] = {
    **{"model": "sage", "dataset": "default", "root": "", "nodes": 60, "epochs": 4, "hidden": 4},
    **{"layers": 2, "dropout": 0.5, "lr": 0.01, "weight_decay": 5e-4, "eval_every": 1, "seed": 1},
    **{"mode": "eager", "batch_size": 12, "fanouts": [3, 2]},
}


def training(**changed: Any) -> BatchTraining:
    settings = Settings(**(SETTINGS | changed))
    return BatchTraining(settings, TASK, loader(settings, TASK), Worker.alone())


def test_epochs_go_on_from_a_checkpoint():
    one = training()
    losses = [one.epoch()[0] for _ in range(2)]
    other = training()
    other.restore(copy.deepcopy(one.state()))
    torch.rand(9)  # what was drawn before does not matter
    assert [one.epoch()[0] for _ in range(2)] == [other.epoch()[0] for _ in range(2)]
    again = training()
    assert [again.epoch()[0] for _ in range(2)] == losses


def test_batches_copy_no_features():
    batch = next(iter(loader(Settings(**SETTINGS), TASK)))
    assert "x" not in batch and batch.num_nodes == len(batch.n_id)


def test_one_batch_with_all_neighbours_is_a_step_on_the_whole_graph():
    whole = training(batch_size=1000, fanouts=[-1, -1], dropout=0.0)
    loss, _ = whole.epoch()
    fresh = training(dropout=0.0)
    with torch.no_grad():
        wanted = fresh._loss(fresh.x, fresh.edge_index, fresh.y, fresh.train_mask)
    assert loss == pytest.approx(float(wanted), rel=1e-5)
    assert whole.evaluate(1).epoch == 1


def test_a_whole_step_is_that_of_torch():
    one, other = (training(mode=mode, dropout=0.0) for mode in ("eager", "step"))
    for _ in range(2):
        assert one.epoch()[0] == pytest.approx(other.epoch()[0], rel=1e-4)
    assert other.explanation()["fallbacks"] == []


@pytest.mark.parametrize(
    ("value", "text"), [("x", "invalid list of numbers value: 'x'"), ("3,-2", "from -1 (all) on")]
)
def test_bad_fanouts(value: str, text: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["train", "--batch-size", "9", "--fanouts", value])
    assert text in capsys.readouterr().err


def asked(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Any, ...]:
    """What `compare` is called with."""
    found: list[tuple[Any, ...]] = []

    def compare(*args: Any) -> None:
        found.append(args)
        raise KeyboardInterrupt

    monkeypatch.setattr(train_command, "compare", compare)
    assert main(["train", "--batch-size", "9", *arguments]) == train_command.STOPPED
    return found[0]


def test_auto_trains_the_compiled_way(monkeypatch: pytest.MonkeyPatch):
    settings, _, ways, _, _, trials, _ = asked(monkeypatch, "--auto", "--layers", "3")
    assert (settings["batch_size"], settings["fanouts"]) == (9, [10, 10, 10])
    assert (ways, trials) == (("compiled",), train_command.TRIALS)
    settings, _, ways, _, _, trials, _ = asked(monkeypatch, "--fanouts", "5,-1")
    assert (settings["fanouts"], ways, trials) == ([5, -1], train_command.WAYS, None)


TUNING: dict[str, Any] = {
    "configuration": [2, 0, 1],
    "share": 0.031,
    "trials": [
        {"processes": 1, "samplers": 0, "trainers": 2, "step": 0.2, "error": 0.0, "cost": 3.0},
        {"processes": 2, "samplers": 0, "trainers": 1, "step": 0.1, "error": 0.0, "cost": 2.0},
    ],
}


def test_the_report_has_the_trials(tmp_path: Path):
    text = tuning_report.text("compiled", TUNING)
    assert text.splitlines()[0] == (
        "compiled: 2 processes, each with 0 cores to sample and 1 to train; the trials took 3.1% of"
        " the time of a training"
    )
    assert text.splitlines()[-1].endswith("best")
    told = tuning_report.text("compiled", {"configuration": [1, 0, 2]})
    assert told == "compiled: 1 processes, each with 0 cores to sample and 2 to train"
    pytest.importorskip("matplotlib")
    tuning_report.draw({"settings": {}, "compiled": {"tuning": TUNING}}, tmp_path / "out.svg")
    assert (tmp_path / "out.svg").read_text().rstrip().endswith("</svg>")


@pytest.mark.long
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processes need two cores")
def test_processes_go_on_from_a_checkpoint(tmp_path: Path):
    settings = Settings(**(SETTINGS | {"epochs": 5}))

    def train(kept: Kept | None, tell: Tell) -> Message:
        tuning = Tuning(1, Configuration(2, 0, 1))
        return tuned_training.train(settings, TASK, kept, tell, tuning)

    def stop(told: Message) -> None:
        if told["epoch"] == 3:
            raise KeyboardInterrupt

    whole = train(None, lambda _: None)
    kept = Kept(tmp_path / "kept.pt", 1)
    with pytest.raises(KeyboardInterrupt):
        train(kept, stop)
    again = train(kept, lambda _: None)
    assert again["starts"] in ([0, 2], [0, 3])
    for name in ("losses", "evaluations", "accuracy"):
        assert again[name] == whole[name]
    assert whole["tuning"] == {"configuration": [2, 0, 1]}


@pytest.mark.long
def test_auto_from_end_to_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """Both seeds have the processes that the first found; a longer training goes on. There are as
    many epochs as a trial needs."""
    out, folder = tmp_path / "out.json", tmp_path / "runs"
    command = [
        *("train", "--nodes", "300", "--seeds", "2", "--hidden", "4", "--epochs", "150"),
        *("--batch-size", "32", "--fanouts", "3,2", "--auto", "--trials", "4"),
        *("--checkpoint", str(folder), "--json", str(out)),
    ]
    assert main(command) == 0
    printed = capfd.readouterr().out
    assert "in batches of 32 with fan-outs 3, 2" in printed
    assert "cores to sample" in printed and "default" in printed or "best" in printed
    results = json.loads(out.read_text())
    tuning = results["compiled"]["tuning"]
    assert len(tuning["configuration"]) == 3 and tuning["trials"]
    histories = results["compiled"]["histories"]
    assert [len(h["losses"]) for h in histories] == [150, 150]
    assert all(len(h["evaluations"]) == 150 for h in histories)
    assert results["compiled"]["fallbacks"] == []
    assert main([*command, "--resume"]) == 0
    again = json.loads(out.read_text())["compiled"]
    assert again["histories"] == histories


@pytest.mark.long
def test_batches_both_ways(tmp_path: Path):
    out = tmp_path / "out.json"
    assert (
        main(
            [
                *("train", "--model", "sage", "--nodes", "300", "--seeds", "1", "--hidden", "4"),
                *("--epochs", "5", "--batch-size", "32", "--dropout", "0", "--json", str(out)),
            ]
        )
        == 0
    )
    results = json.loads(out.read_text())
    compiled, eager = results["compiled"], results["eager"]
    assert compiled["losses"] == pytest.approx(eager["losses"], rel=1e-3)
    assert compiled["fallbacks"] == []


@pytest.mark.long
def test_nothing_is_left_of_a_tuned_training_that_is_interrupted():
    command = ["train", "--nodes", "300", "--batch-size", "32", "--auto", "--epochs", "100000"]
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from gnnc.frontend.cli import main; sys.exit(main(sys.argv[1:]))",
        ]
        + command,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    # the command, its child, a process that trains; and Python's trackers of resources
    while len(pids := session(process.pid)) < 4:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    time.sleep(2)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == train_command.STOPPED
    assert said.splitlines()[-1] == "gnnc train: stopped"
    while session(process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not shared_memory(pids)


def session(number: int) -> list[int]:
    """The processes of a session."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            state, _, _, theirs = stat.read_text().rpartition(")")[2].split()[:4]
            if int(theirs) == number and state != "Z":
                found.append(int(stat.parent.name))
    return found
