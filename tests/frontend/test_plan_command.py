"""`gnnc plan`: numbers, graphs and folders in; tables, JSON and a figure out."""

import json
from pathlib import Path

import numpy as np
import pytest

from gnnc.bench import calibration
from gnnc.frontend.cli import main
from gnnc.frontend.plan import constants
from gnnc.frontend.plan.constants import Constants
from gnnc.frontend.tools.datasets import power_law_edges

NUMBERS = ["plan", "--nodes", "1e9", "--edges", "1e11", "-n", "1", "16", "1024"]


@pytest.fixture
def edges(tmp_path: Path) -> str:
    np.save(tmp_path / "edges.npy", power_law_edges(300, 1500))
    return str(tmp_path / "edges.npy")


def test_tables_of_a_graph_that_fits_nowhere(capsys: pytest.CaptureFixture[str]):
    assert main([*NUMBERS, "--exponent", "0.6", "--model", "sage"]) == 0
    printed = capsys.readouterr().out
    assert "sage of 128, 64, 16 numbers a node, on 1,000,000,000 nodes" in printed
    for text in ("simulated", "speed-up", "memory a rank", "1.5D", "columns", "fastest", "1,024 "):
        assert text in printed


def test_json_of_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "plan.json"
    more = ["--steps", "3", "--imbalance", "1.1", "--layers", "3", "--json", str(out)]
    assert main([*NUMBERS, *more]) == 0
    found = json.loads(out.read_text())
    assert found["training"] == {"model": "gcn", "widths": [128, 64, 64, 16], "steps": 3}
    one, some, many = found["predictions"]
    assert one["halo_rows"] == one["message_seconds"] == 0
    assert some["epoch_seconds"] == 3 * some["seconds"]
    assert many["seconds"] < some["seconds"] < one["seconds"]
    assert many["simulated"] is None and some["simulated"] == pytest.approx(some["seconds"])
    assert len(many["schemes"]) == len(many["layers"]) == 3
    assert {s["name"] for s in many["schemes"][2]} == {"halo", "replicated", "columns"}
    assert "PREDICTION" in capsys.readouterr().out


def test_a_graph_and_the_folder_of_its_partition_say_the_same(
    edges: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = str(tmp_path / "parts")
    way = ["--method", "greedy"]
    assert main(["partition", edges, "-n", "3", *way, "--out", folder]) == 0
    capsys.readouterr()
    assert main(["plan", edges, "-n", "3", *way, "--json"]) == 0
    cut = json.loads(capsys.readouterr().out)
    assert main(["plan", folder, "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read == cut
    assert cut["predictions"][0]["halo_rows"] > 0


def test_options_take_the_place_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "c.json"
    constants.save(file, Constants(alpha=2.0, bandwidth=3.0), {})
    more = ["--constants", str(file), "--bandwidth", "5e9", "--overlap", "0.5", "--json"]
    assert main([*NUMBERS, *more]) == 0
    used = json.loads(capsys.readouterr().out)["constants"]
    assert (used["alpha"], used["bandwidth"], used["overlap"]) == (2.0, 5e9, 0.5)


@pytest.mark.parametrize("name", ["plan.svg", "plan.png"])
def test_figure(name: str, tmp_path: Path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert main([*NUMBERS, "--plot", str(tmp_path / name)]) == 0
    assert (tmp_path / name).stat().st_size > 1000


def test_calibrates_and_uses_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """What measuring gives is tested where it is done (tests/bench/test_calibration.py)."""
    found = Constants(alpha=0.25)
    monkeypatch.setattr(calibration, "calibrate", lambda: found)
    file = tmp_path / "c.json"
    assert main(["plan", "--calibrate", str(file)]) == 0
    assert "alpha" in capsys.readouterr().out
    assert constants.load(file) == found
    assert main([*NUMBERS, "--calibrate", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["constants"]["alpha"] == 0.25
    assert "cores" in json.loads(file.read_text())["machine"]


SIZES = ["--nodes", "10", "--edges", "10"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "graph: give one, or --nodes and --edges"),
        (["--nodes", "10"], "--nodes and --edges: both are needed"),
        (["edges.npy", *SIZES], "--nodes and --edges: the graph has its own"),
        (["nowhere.npy"], "nowhere.npy"),
        ([*SIZES, "--exponent", "-1"], "exponent: -1.0"),
        ([*SIZES, "--across", "2"], "across: 2.0"),
        ([*SIZES, "--border", "-1"], "border: -1.0"),
        ([*SIZES, "--imbalance", "0.5"], "imbalance: 0.5"),
        ([*SIZES, "--alpha", "-1"], "alpha: -1.0"),
        ([*SIZES, "--bandwidth", "0"], "bandwidth: 0.0"),
        ([*SIZES, "--overlap", "nan"], "overlap: nan"),
        ([*SIZES, "--model", "gat", "--hidden", "12"], "hidden: 8 heads cannot share 12"),
        ([*SIZES, "--constants", "nowhere.json"], "nowhere.json"),
        ([*SIZES, "--constants", "edges.npy"], "edges.npy has no constants"),
        ([*SIZES, "--plot", "plan.txt"], "--plot: plan.txt should end in"),
        ([*SIZES, "--json", "nowhere/out.json"], "--json: nowhere/out.json has no"),
        (["--calibrate", "nowhere/c.json"], "--calibrate: nowhere/c.json has no"),
        (["--calibrate", "c.json", "--constants", "c.json"], "--constants: --calibrate measures"),
    ],
)
def test_refused(
    arguments: list[str],
    text: str,
    edges: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert main(["plan", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("gnnc plan: ")
    assert len(error.splitlines()) == 1
    assert text in error


def test_refused_ranks_of_a_folder(edges: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = str(tmp_path / "parts")
    assert main(["partition", edges, "-n", "2", "--method", "greedy", "--out", folder]) == 0
    assert main(["plan", folder, "-n", "2", "4"]) == 1
    assert f"--ranks: {folder} is for 2 ranks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("--nodes", "0", "must be a whole number of at least 1"),
        ("--edges", "1.5", "must be a whole number of at least 1"),
        ("--ranks", "x", "invalid whole number value: 'x'"),
        ("--chunks", "nan", "must be a whole number of at least 1"),
        ("--model", "gcm", "invalid choice"),
    ],
)
def test_wrong_arguments(option: str, value: str, text: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as error:
        main(["plan", option, value])
    assert error.value.code == 2
    assert text in capsys.readouterr().err
