"""`gnnc train`, `gnnc bench` and `gnnc info` on graphs small enough for a test."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from gnnc.frontend.cli import main

TRAIN = ["train", "--epochs", "2", "--seeds", "1", "--nodes", "60", "--hidden", "4"]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch):
    """Graphs of 60 nodes have no work for two, and waiting threads disturb other processes."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.parametrize("model", ["sage", pytest.param("gin", marks=pytest.mark.long)])
def test_train(model: str, capfd: pytest.CaptureFixture[str]):
    assert main([*TRAIN, "--model", model, "--json"]) == 0
    results = json.loads(capfd.readouterr().out)
    assert results["graph"]["nodes"] == 60
    assert results["settings"]["model"] == model
    for way in ("eager", "compiled"):
        assert 0 <= results[way]["accuracy"] <= 1
        assert results[way]["epoch_seconds"] > 0
    assert results["compiled"]["kernels"]
    assert results["compiled"]["fallbacks"] == []


def test_train_without_dropout_gives_equal_accuracy(capfd: pytest.CaptureFixture[str]):
    assert main([*TRAIN, "--epochs", "5", "--dropout", "0", "--json"]) == 0
    results = json.loads(capfd.readouterr().out)
    assert results["compiled"]["accuracies"] == pytest.approx(
        results["eager"]["accuracies"], abs=0.1
    )
    assert results["compiled"]["losses"] == pytest.approx(results["eager"]["losses"], rel=1e-3)


def test_train_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    out = tmp_path / "out.json"
    assert main([*TRAIN, "--json", str(out)]) == 0
    printed = capfd.readouterr().out
    for text in ("test accuracy", "epoch, median", "memory, peak above start", "compile time"):
        assert text in printed
    assert set(json.loads(out.read_text())) == {"settings", "graph", "eager", "compiled"}


def test_train_unknown_dataset(capfd: pytest.CaptureFixture[str]):
    assert main([*TRAIN, "--dataset", "Nonsense:Cora"]) == 1
    assert "torch_geometric.datasets has no 'Nonsense'" in capfd.readouterr().err


@pytest.mark.parametrize("arguments", [["--epochs", "0"], ["--model", "gcm"], ["--seeds", "x"]])
def test_train_wrong_arguments(arguments: list[str]):
    with pytest.raises(SystemExit) as error:
        main(["train", *arguments])
    assert error.value.code == 2


@pytest.mark.skipif(find_spec("dgl") is None, reason="DGL is not installed")
def test_bench(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    files = [str(tmp_path / "out.json"), str(tmp_path / "out.md")]
    arguments = ["--graphs", "tiny", "--models", "gcn", "--rounds", "1", "--epochs", "1"]
    arguments += ["--contestants", "gnnc", "pyg", "dgl"]
    assert main(["bench", *arguments, "--json", files[0], "--markdown", files[1]]) == 0
    (race,) = json.loads(Path(files[0]).read_text())["races"]
    assert set(race["results"]) == {"gnnc", "pyg", "dgl"}
    for result in race["results"].values():
        assert result["median_seconds"] > 0
    assert race["results"]["gnnc"]["structure_seconds"] is not None
    assert "WARNING" not in capfd.readouterr().out
    assert Path(files[1]).read_text().count("| pyg") == 1


def test_info(capsys: pytest.CaptureFixture[str]):
    assert main(["info"]) == 0
    printed = capsys.readouterr().out
    assert "xdsl" in printed
    assert "C compiler" in printed
