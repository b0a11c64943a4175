"""`gnnc bench memory`: ranks that are launched, on a graph small enough for a test."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from gnnc.bench import part_memory
from gnnc.tests.runtime.ranks.launching import one_at_a_time  # noqa: F401

pytest.importorskip("mpi4py")


def test_the_graph_has_the_communities_that_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(part_memory, "BLOCK", 1000)
    for across, low, high in ((0.0, 0, 0), (0.5, 0.3, 0.45)):
        part_memory.write_graph(tmp_path, 300, 5000, across, 4)
        src, dst = np.load(tmp_path / "edges.npy")[:, 1:]
        assert src.max() <= dst.max() == 299 and min(src.min(), dst.min()) == 0
        assert low <= np.mean(src % 4 != dst % 4) <= high
        assert np.mean(src < 75) > 0.4  # by the power law, half of the sources are among a quarter


@pytest.mark.long
def test_an_edge_takes_few_bytes(tmp_path: Path) -> None:
    """While its tables are made 18, and 8 after that; a rank of two takes half of both."""
    parser = argparse.ArgumentParser()
    part_memory.add_arguments(parser)
    few = ["--nodes", "20000", "--edges", "12000000", "--features", "8", "--classes", "4"]
    args = [*few, "--ranks", "1", "2", "--folder", str(tmp_path)]
    (result,) = part_memory.measure(parser.parse_args(args))
    one, two = result["runs"]
    graph = one["peak"][0] - one["tiny"][0]
    assert 8 * 12_000_000 < graph < 24 * 12_000_000
    for tiny, peak in zip(two["tiny"], two["peak"], strict=True):
        assert peak - tiny < 0.65 * graph
    assert not list(tmp_path.iterdir())
    assert "over its share" in part_memory.report(result)
