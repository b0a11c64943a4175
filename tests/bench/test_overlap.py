"""`gnnc bench overlap`: two ranks with links, on a graph small enough for a test."""

import argparse

import pytest

from gnnc.bench import overlap
from gnnc.frontend.tools.children import Message


def arguments(*args: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    overlap.add_arguments(parser)
    return parser.parse_args(args)


@pytest.mark.long
def test_two_ranks_train_with_a_link() -> None:
    """On a link on which messages take as long as the work, by what a rank sends in a step."""
    few = ["--nodes", "200", "--edges", "900", "--features", "3", "--hidden", "6", "--classes", "2"]
    args = arguments("--models", "sage", *few, "--shares", "1", "--steps", "1", "--chunks", "2")
    (found,) = overlap.measure(args)
    assert found["halo"] > 0 and found["work_seconds"] > 0
    (point,) = found["points"]
    assert point["both_seconds"] > 0 and point["message_seconds"] > 0
    assert f"{found['halo']:,} ghosts a rank" in overlap.report(found)


@pytest.mark.parametrize(("both", "hidden"), [(3.0, 0.0), (2.5, 0.5), (2.0, 1.0)])
def test_what_is_hidden(both: float, hidden: float) -> None:
    counts: Message = {"bytes": 90, "messages": 10}
    bandwidth = overlap._bandwidth(counts, 1.0, 0.01)
    point = overlap._point(counts, 2.0, both, 0.01, bandwidth)
    assert point["message_seconds"] == pytest.approx(1.0)
    assert point["hidden"] == pytest.approx(hidden)
