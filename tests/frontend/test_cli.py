"""`gnnc train`, `gnnc bench` and `gnnc info` on graphs small enough for a test."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gnnc.frontend.cli import main
from gnnc.frontend.tools import train_command

TRAIN = ["train", "--epochs", "2", "--seeds", "1", "--nodes", "60", "--hidden", "4"]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch):
    """Graphs of 60 nodes have no work for two, and waiting threads disturb other processes."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.parametrize("model", ["sage", pytest.param("gin", marks=pytest.mark.long)])
def test_train(model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """Without dropout both train alike. A run starts two processes, so one is asked all."""
    out = tmp_path / "out.json"
    more = ["--model", model, "--epochs", "5", "--dropout", "0", "--json", str(out), "--eval", "3"]
    assert main([*TRAIN, *more]) == 0
    printed = capfd.readouterr().out
    rows = ("test accuracy", "epoch, median", "prediction, median", "memory, peak above start")
    for text in (*rows, "compile time"):
        assert text in printed
    results = json.loads(out.read_text())
    assert set(results) == {"settings", "graph", "eager", "compiled"}
    assert results["graph"]["nodes"] == 60
    assert results["settings"]["model"] == model
    for way in ("eager", "compiled"):
        assert 0 <= results[way]["accuracy"] <= 1
        assert results[way]["epoch_seconds"] > 0
        assert results[way]["prediction_seconds"] > 0
    compiled, eager = results["compiled"], results["eager"]
    assert compiled["kernels"] and compiled["fallbacks"] == []
    assert compiled["accuracies"] == pytest.approx(eager["accuracies"], abs=0.1)
    assert compiled["losses"] == pytest.approx(eager["losses"], rel=1e-3)


def test_train_whole_step_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    pytest.importorskip("matplotlib")
    more = ["--only", "compiled", "--mode", "step", "--epochs", "5", "--eval-every", "2"]
    assert main([*TRAIN, *more, "--json", "--plot", str(tmp_path / "out.png")]) == 0
    captured = capfd.readouterr()
    results = json.loads(captured.out)
    assert set(results) == {"settings", "graph", "compiled"}
    assert results["settings"]["mode"] == "step"
    assert results["compiled"]["fallbacks"] == []
    (history,) = results["compiled"]["histories"]
    assert [e["epoch"] for e in history["evaluations"]] == [2, 4, 5]
    assert len(history["losses"]) == len(history["epoch_seconds"]) == 5
    assert "compiled seed 0: epoch 5/5, loss " in captured.err
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_train_modes_compute_the_same(capfd: pytest.CaptureFixture[str]):
    found: list[Any] = []
    for mode in ("drop-in", "step"):
        assert main([*TRAIN, "--only", "compiled", "--mode", mode, "--epochs", "9", "--json"]) == 0
        found.append(json.loads(capfd.readouterr().out)["compiled"])
    one, other = found
    assert one["losses"] == pytest.approx(other["losses"], rel=1e-4)
    assert one["accuracies"] == pytest.approx(other["accuracies"], abs=0.03)


def test_train_unknown_dataset(capfd: pytest.CaptureFixture[str]):
    assert main([*TRAIN, "--dataset", "Nonsense:Cora"]) == 1
    assert "torch_geometric.datasets has no 'Nonsense'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("--epochs", "0", "must be at least 1"),
        ("--model", "gcm", "invalid choice"),
        ("--seeds", "x", "invalid int value: 'x'"),
        ("--eval-every", "-1", "must be at least 0"),
        ("--dropout", "1.5", "must be from 0 to 1"),
        ("--lr", "nan", "must be at least 0"),
        ("--weight-decay", "inf", "must be at least 0"),
        ("--mode", "whole", "invalid choice"),
    ],
)
def test_train_wrong_arguments(
    option: str, value: str, text: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as error:
        main(["train", option, value])
    assert error.value.code == 2
    assert f"argument {option}: {text}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--resume"], "--resume needs --checkpoint FOLDER"),
        (["--checkpoint-every", "5"], "--checkpoint-every needs --checkpoint FOLDER"),
        (["--checkpoint", "nowhere", "--resume"], "--checkpoint: No such file"),
        (["--plot", "out.jgp"], "--plot: out.jgp should end in one of ."),
        (["--plot", "nowhere/out.svg"], "--plot: nowhere/out.svg has no folder nowhere"),
        (["--json", "nowhere/out.json"], "--json: nowhere/out.json has no folder nowhere"),
        (["--auto"], "--auto needs --batch-size B"),
        (["--fanouts", "2,2"], "--fanouts needs --batch-size B"),
        (["--batch-size", "9", "--trials", "3"], "--trials needs --auto"),
        (["--batch-size", "9", "--plot-trials", "a.svg"], "--plot-trials needs --auto"),
        (["--batch-size", "9", "--fanouts", "2"], "--fanouts has 1 numbers for 2 layers"),
        (["--batch-size", "9", "--auto", "--eval", "2"], "--eval times predictions of one process"),
        (["--batch-size", "9", "--auto", "--plot-trials", "a.jgp"], "--plot-trials: a.jgp should"),
    ],
)
def test_train_refuses_before_it_trains(
    arguments: list[str],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(train_command, "compare", None)
    assert main(["train", *arguments]) == 1
    assert f"gnnc train: {text}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "later"),
    [([], ""), (["--checkpoint", "."], "; --resume goes on from the last checkpoints")],
)
def test_train_is_stopped(
    arguments: list[str],
    later: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    def compare(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(train_command, "compare", compare)
    monkeypatch.chdir(tmp_path)
    assert main(["train", *arguments]) == 130
    assert capsys.readouterr().err == f"gnnc train: stopped{later}\n"


def test_train_plot_without_matplotlib(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(train_command, "compare", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    assert main(["train", "--plot", "out.svg"]) == 1
    assert "--plot needs matplotlib (pip install gnnc[bench])" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed")
def test_bench(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    files = [str(tmp_path / "out.json"), str(tmp_path / "out.md")]
    arguments = ["--graphs", "tiny", "--models", "gcn", "--rounds", "1", "--epochs", "1"]
    arguments += ["--contestants", "gnnc", "dgl"]
    assert main(["bench", *arguments, "--json", files[0], "--markdown", files[1]]) == 0
    (race,) = json.loads(Path(files[0]).read_text())["races"]
    assert set(race["results"]) == {"gnnc", "dgl"}
    for result in race["results"].values():
        assert result["median_seconds"] > 0
    assert race["results"]["gnnc"]["structure_seconds"] is not None
    assert "WARNING" not in capfd.readouterr().out
    assert Path(files[1]).read_text().count("| dgl") == 1


def test_info(capsys: pytest.CaptureFixture[str]):
    assert main(["info"]) == 0
    printed = capsys.readouterr().out
    assert "xdsl" in printed
    assert "C compiler" in printed
    assert "NVRTC 1" in printed


@pytest.mark.parametrize("reason", [None, "no driver here"])
def test_info_says_whether_cuda_can_be_used(
    reason: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from gnnc.frontend.tools import info
    from gnnc.runtime.cuda.driver import Device

    class OfTwo:
        def devices(self) -> list[Device]:
            return [Device(0, "H100", (9, 0)), Device(1, "A100", (8, 0))]

    monkeypatch.setattr(info.device, "why_not", lambda: reason)
    monkeypatch.setattr(info, "driver", OfTwo)
    assert main(["info"]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("CUDA ")]
    two = "can be used: H100 (sm_90), A100 (sm_80)"
    assert line.split(maxsplit=1)[1] == (two if reason is None else f"cannot be used: {reason}")
