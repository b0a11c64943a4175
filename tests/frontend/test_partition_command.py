"""`gnnc partition`: a graph in, a table, parts in files, JSON and a picture out."""

import json
from pathlib import Path

import numpy as np
import pytest

from gnnc.frontend.cli import main
from gnnc.frontend.tools.datasets import power_law_edges
from gnnc.runtime.partition.edges import fingerprint, in_file
from gnnc.runtime.partition.files import load, read_manifest


@pytest.fixture
def edges(tmp_path: Path) -> str:
    np.save(tmp_path / "edges.npy", power_law_edges(300, 1500))
    return str(tmp_path / "edges.npy")


def test_table_and_parts(edges: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "out"
    assert main(["partition", edges, "-n", "3", "--method", "all", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for text in (
        "method",
        "imbalance",
        "halo rows",
        "cut edges",
        "metis-k-way",
        "(taken)",
        "peers",
    ):
        assert text in printed
    graph = in_file(Path(edges))
    assert read_manifest(out, ranks=3, graph=fingerprint(graph)).nodes == graph.nodes
    parts = [load(out, rank) for rank in range(3)]
    assert sum(len(p.numbers) for p in parts) == 1500


def test_json_and_the_whole_of_a_file_in_blocks(edges: str, capsys: pytest.CaptureFixture[str]):
    assert main(["partition", edges, "-n", "4", "--method", "stream", "greedy", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [m["method"] for m in results["methods"]] == ["stream", "greedy"]
    chosen = results["chosen"]
    assert sum(chosen["work"]) == 1500 + 4 * 300
    (taken,) = (m for m in results["methods"] if m["method"] == chosen["method"])
    assert taken["halo_rows"] == np.sum(chosen["rows"])


def test_methods_that_cannot_be_used_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    every = np.arange(30)
    np.save(tmp_path / "ring.npy", np.stack([every, (every + 1) % 30]))
    command = ["partition", str(tmp_path / "ring.npy"), "-n", "3", "--method"]
    assert main([*command, "components", "bisection"]) == 0
    assert "components: not tried, the graph is connected" in capsys.readouterr().out
    assert main([*command, "components", "--json"]) == 1
    assert "methods: none can be used (components: the graph" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["parts.svg", "parts.png"])
def test_picture(name: str, edges: str, tmp_path: Path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert main(["partition", edges, "-n", "3", "--picture", str(tmp_path / name)]) == 0
    assert (tmp_path / name).stat().st_size > 1000


def test_graphs_that_gnnc_load_knows(
    edges: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("torch", reason="torch is not installed")
    index = np.load(edges)
    np.savez(tmp_path / "graph.npz", x=np.zeros((310, 2), np.float32), edge_index=index)
    command = ["-n", "2", "--method", "greedy", "--json"]
    assert main(["partition", str(tmp_path / "graph.npz"), *command]) == 0
    assert sum(json.loads(capsys.readouterr().out)["chosen"]["work"]) == 1500 + 4 * 310
    assert main(["partition", "default", *command]) == 0
    assert sum(json.loads(capsys.readouterr().out)["chosen"]["work"]) > 4 * 2708


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["edges.npy", "-n", "0"], "parts: 0"),
        (["edges.npy", "-n", "2", "--limit", "0.5"], "limit: 0.5"),
        (["edges.npy", "-n", "2", "--row-cost", "0"], "row_cost: 0"),
        (["edges.npy", "-n", "2", "--picture", "parts.txt"], "--picture: parts.txt should end in"),
        (["edges.npy", "-n", "2", "--json", "nowhere/out.json"], "--json: nowhere/out.json has no"),
        (["edges.npy", "-n", "2", "--out", "edges.npy"], "--out: edges.npy is a file"),
        (["nowhere.npy", "-n", "2"], "nowhere.npy"),
        (["nowhere.txt", "-n", "2"], "nowhere.txt"),
        (["x.npz", "-n", "2"], "x.npz: the data has no array 'edge_index'"),
        (["flat.npz", "-n", "2"], "flat.npz: edge_index is [3], not 2 x edges"),
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
    np.savez("x.npz", x=np.zeros(3))
    np.savez("flat.npz", edge_index=np.arange(3))
    assert main(["partition", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("gnnc partition: ")
    assert len(error.splitlines()) == 1
    assert text in error


def test_one_part(edges: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """All methods come to the same, and none is needed."""
    out = tmp_path / "out"
    assert main(["partition", edges, "-n", "1", "--method", "all", "--out", str(out)]) == 0
    assert "whole (taken)" in capsys.readouterr().out
    part = load(out, 0)
    np.testing.assert_array_equal(part.ends, np.load(edges))
    assert part.local == len(part.numbers) == 1500 and len(part.owned) == 300
