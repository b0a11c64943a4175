"""`gnnc bench argo`: its table, and the figures that it asks for."""

from __future__ import annotations

import argparse
import os

import pytest

from gnnc.bench import argo
from gnnc.frontend.argo.configurations import Configuration
from gnnc.frontend.tools.children import Message

ONE, TWO = [1, 0, 2], [2, 0, 1]


def result(chosen: list[int], seconds: list[float], share: float) -> Message:
    """The default takes a second in each turn."""
    rows = [{"on": ONE, "seconds": [1.0] * len(seconds)}, {"on": TWO, "seconds": seconds}]
    trial = {"processes": 2, "samplers": 0, "trainers": 1, "step": 0.5, "error": 0.0, "cost": 2.0}
    of_chosen = rows[0 if chosen == ONE else 1]["seconds"]
    return {
        **{"graph": "drawn", "study": "step", "epochs": 200, "hidden": 64, "fanouts": [10, 5]},
        **{"batch_size": 1024, "configuration": chosen, "default": ONE, "trials": [trial]},
        **{"share": share, "steps": 9, "rows": rows},
        "ratio": argo._ratio(of_chosen, rows[0]["seconds"]),
    }


def test_figures_that_are_asked_for() -> None:
    for found, wanted in (
        (result(TWO, [0.9, 1.02, 1.5], 0.05), []),  # the median of turns
        (result(TWO, [0.9, 1.04, 1.5], 0.05), ["chosen / default 1.04"]),
        (result(ONE, [0.5, 0.5, 0.5], 0.051), ["trials 5.1%"]),
    ):
        assert argo.missed(found) == wanted
        assert argo.failed([found]) == bool(wanted)
    text = argo.report(result(TWO, [0.8], 0.03))
    assert "the trials took 3.0% of 200 epochs of 9 steps" in text
    assert text.splitlines()[-1].split() == "2 0 1 500.0 ms 800.0 ms 0.80 chosen".split()


def test_many_configurations_are_not_all_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = argparse.Namespace(usable=16)
    monkeypatch.setattr(argo, "machine", lambda: machine)
    usual = Configuration(1, 0, 16)
    assert argo._to_time([4, 1, 3]) == (Configuration(4, 1, 3), usual, [usual, (4, 1, 3)])
    assert argo._to_time(list(usual))[2] == [usual]


@pytest.mark.long
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processes need two cores")
def test_a_small_graph() -> None:
    parser = argparse.ArgumentParser()
    argo.add_arguments(parser)
    given = "--sizes 300x900 --fanouts 3 2 --batch-size 20 --epochs 100 --turns 1 --mode drop-in"
    (found,) = argo.measure(parser.parse_args(given.split()))
    assert all(len(row["seconds"]) == 1 for row in found["rows"])
    assert found["configuration"] in [row["on"] for row in found["rows"]]
    assert found["steps"] == 8 and found["share"] > 0
