"""Slopes, figures and the end of memory of `gnnc bench scaling`."""

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest

from gnnc.bench import scaling
from gnnc.bench.large_graphs import large_power_law
from gnnc.frontend.tools.children import Message, OutOfMemory


def arguments(*args: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    scaling.add_arguments(parser)
    return parser.parse_args(args)


def points(args: argparse.Namespace, edges: int) -> list[Message]:
    """Epochs of a quarter of a microsecond an edge and thread, on a machine with room for 1e6."""
    if edges > 10**6:
        raise OutOfMemory("took 1.0 GiB, its limit")
    return [
        {"edges": edges, "nodes": edges // 10, "threads": t, "memory": 100 * edges}
        | {"epoch_seconds": 2.5e-7 * edges / t, "seconds": [], "first_seconds": 1.0}
        for t in args.threads
    ]


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> Message:
    monkeypatch.setattr(scaling, "_points", points)
    args = arguments("--edges", "1e7", "1e5", "1e6", "1e4", "--threads", "1", "2")
    (found,) = scaling.measure(args)
    return found


def test_stops_at_what_fits(result: Message):
    assert [p["edges"] for p in result["points"][::2]] == [10**4, 10**5, 10**6]
    assert result["stopped"] == "stopped at 10,000,000 edges: took 1.0 GiB, its limit"
    assert result["slopes"] == {"1": pytest.approx(1.0), "2": pytest.approx(1.0)}


def test_slope_needs_two_points(result: Message):
    assert scaling.slope(result["points"][:4], 1) is None  # one of them is below FIT_FROM


def test_report(result: Message):
    text = scaling.report(result)
    (line,) = [line.split() for line in text.splitlines() if line.startswith("1,000,000")]
    assert line[1:] == ["250.0", "ms", "125.0", "ms", "125.0", "ns", "2.00", "95", "MiB"]
    assert "2 threads: epoch ~ edges^1.00 from 100,000 edges on" in text
    assert "stopped at 10,000,000 edges" in text


def test_plot(result: Message, tmp_path: Path):
    pytest.importorskip("matplotlib")
    name = scaling.plot(result, tmp_path)
    assert name == "scaling-gnnc-2x16.svg"
    assert (tmp_path / name).read_text().rstrip().endswith("</svg>")


def test_no_plot_without_matplotlib(
    result: Message,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert scaling.plot(result, tmp_path) is None
    assert "no figure: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_numbers_of_edges():
    assert arguments("--edges", "1e4", "20").edges == [10**4, 20]
    with pytest.raises(SystemExit):
        arguments("--edges", "1.5")


def test_graph():
    edge_index = large_power_law(50, 10_000)
    assert edge_index.shape == (2, 10_000)
    for row in edge_index:
        counts = np.sort(np.bincount(row, minlength=50))[::-1]
        assert len(counts) == 50
        # the most frequent of n ends has a share of about n^-0.4, here 0.21
        assert 0.15 < counts[0] / 10_000 < 0.27
    assert not (edge_index[0] == edge_index[1]).all()


@pytest.mark.parametrize("contestant", ["gnnc", pytest.param("gnnc-step", marks=pytest.mark.long)])
def test_trains_in_a_child(contestant: str):
    shape = ("--contestant", contestant, "--edges", "300", "--threads", "1")
    args = arguments(*shape, "--seconds", "0.01")
    (found,) = scaling.measure(args)
    (point,) = found["points"]
    assert point["nodes"] == 30
    assert len(point["seconds"]) >= 2 * scaling.TURNS
    assert found["stopped"] is None
