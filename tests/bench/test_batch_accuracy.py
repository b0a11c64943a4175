"""`gnnc bench batch-accuracy`: its table, what it refuses, and both ways on a drawn graph."""

import argparse
import os
from pathlib import Path

import pytest

from gnnc.bench import batch_accuracy
from gnnc.bench.labelled import Labelled
from gnnc.frontend.tools.children import Message, Refused
from gnnc.frontend.tools.datasets import citation


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    batch_accuracy.add_arguments(parser)
    return parser.parse_args(given)


def result(batches: list[float], whole: list[float]) -> Message:
    ways = zip(batch_accuracy.WAYS, (batches, whole), strict=True)
    shape = {"hidden": 64, "graph": "dblp", "nodes": 9, "edges": 8, "fanouts": [5, 5]}
    results = {w: {"scores": s, "steps": 4, "seconds": 1.0, "in_torch": []} for w, s in ways}
    return {**shape, "batch_size": 7, "results": results}


def test_ways_may_be_a_hundredth_apart():
    near, far = result([0.8, 0.82], [0.81, 0.825]), result([0.8, 0.82], [0.81, 0.84])
    assert not batch_accuracy.failed([near])
    assert batch_accuracy.failed([near, far])
    text = batch_accuracy.report(far)
    assert "mean over seeds: -0.0150 ± 0.0050" in text and "2 seeds" in text


def test_data_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GNNC_DATA", raising=False)
    with pytest.raises(Refused, match="--data FOLDER"):
        next(batch_accuracy.measure(arguments("--graphs", "cora")))


@pytest.mark.long
def test_both_ways_learn(tmp_path: Path):
    from gnnc.bench.batch_accuracy_child import Training

    task = citation(300, 900, 60, 3)
    Labelled(task.x, task.edge_index, task.y).save(tmp_path / "graph.npz")
    training = Training(str(tmp_path / "graph.npz"), 16, [5, 5], 40)
    batched, whole = (training.train(0, n, b) for n, b in ((6, True), (30, False)))
    assert batched["steps"] == 30 and whole["steps"] == 30
    assert batched["in_torch"] == whole["in_torch"] == []
    assert abs(batched["score"] - whole["score"]) < 0.15
    assert whole["score"] > 0.5


@pytest.mark.long
@pytest.mark.skipif("GNNC_DATA" not in os.environ, reason="GNNC_DATA does not name a folder")
def test_real_data():
    few = ("--seeds", "1", "--epochs", "3", "--whole-epochs", "20", "--hidden", "16")
    (found,) = batch_accuracy.measure(arguments("--graphs", "cora", *few))
    assert all(found["results"][way]["scores"][0] > 0.6 for way in batch_accuracy.WAYS)
    assert "on cora: 2,708 nodes" in batch_accuracy.report(found)
