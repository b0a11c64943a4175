"""`gnnc bench ranks`: ranks that are launched, on a graph small enough for a test."""

import argparse

import pytest

from gnnc.bench import ranks
from gnnc.tests.runtime.ranks.launching import one_at_a_time  # noqa: F401

pytest.importorskip("mpi4py")


@pytest.mark.long
@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_contestants_begin_with_one_loss(model: str) -> None:
    """One process, two ranks, and PyG on the same parts."""
    parser = argparse.ArgumentParser()
    ranks.add_arguments(parser)
    few = ["--nodes", "200", "--edges", "900", "--features", "3", "--hidden", "8", "--classes", "4"]
    once = ["--graphs", "planted", "--models", model, "--steps", "1", "--turns", "1"]
    (result,) = ranks.measure(parser.parse_args([*few, *once]))
    first, *others = result["losses"].values()
    assert others == pytest.approx([first] * 2, rel=1e-5)
    assert all(s > 0 for s in result["seconds"].values())
    assert "2 x 1" in ranks.report(result)
