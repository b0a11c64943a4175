"""`gnnc bench epochs`: DGL's layers compute what PyG's do, and curves are compared."""

import argparse

import numpy as np
import pytest
import torch

from gnnc.bench import epochs
from gnnc.frontend.tools.children import Message

from .real_dgl import needs_dgl

SHAPE: Message = {
    **{"nodes": 60, "edges": 200, "features": 5, "hidden": 16, "classes": 3, "fanouts": [3, 2]},
    **{"batch_size": 9, "share": 0.5, "lr": 0.01},
}


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    epochs.add_arguments(parser)
    return parser.parse_args(given)


@pytest.mark.parametrize("model", epochs.MODELS)
def test_dgl_and_pyg_compute_the_same(model: str):
    needs_dgl()
    from gnnc.bench import epochs_child

    task = epochs_child.Task(model=model, **SHAPE)
    theirs, dgl = task.weights(3), epochs_child.by_dgl(task, 0)
    dgl.take(theirs)
    seeds = 0
    for (x, blocks), y in dgl.batches(0):
        (_, edges), _ = epochs_child.on_blocks(blocks)
        wanted = theirs(x, edges)
        torch.testing.assert_close(dgl.model(x, blocks), wanted)
        seeds += len(y)
    assert seeds == 30


def test_pyg_trains_on_the_same_number_of_batches():
    needs_dgl()
    from gnnc.bench.epochs_child import Training

    training = Training("pyg", 0, model="sage", **SHAPE)
    first, again = (training.train(1, 2) for _ in range(2))
    assert len(first["losses"]) == 8 and len(first["seconds"]) == 2
    assert first["losses"][0] == pytest.approx(again["losses"][0], rel=0.5)


def test_a_step_trains_as_a_compiled_model_does():
    from gnnc.bench.epochs_child import Training

    ways = [Training(name, 0, model="sage", **SHAPE) for name in ("gnnc", "gnnc-step")]
    for seed in (1, 2):  # each turn from new weights
        one, other = (way.train(seed, 1)["losses"] for way in ways)
        assert other == pytest.approx(one, rel=1e-5)
    assert [way.description()["in_torch"] for way in ways] == [[], []]


def test_means_of_neighbours():
    from gnnc.bench.epochs_child import mean_of_neighbours

    x = torch.tensor([[1.0], [3.0], [5.0]])
    found = mean_of_neighbours(x, torch.tensor([[0, 1, 2], [2, 2, 0]]))
    assert found.flatten().tolist() == [5.0, 0.0, 2.0]


def test_curves():
    assert epochs.smoothed([1.0, 2.0, 3.0, 4.0], 2).tolist() == [1.5, 2.5, 3.5]
    assert epochs.smoothed([1.0, 3.0], 20).tolist() == [2.0]
    a, b = np.array([[1.0, 2.0], [3.0, 2.0]]), np.array([[2.0, 1.0], [2.0, 2.0]])
    assert epochs.apart(a, b) == 0.5


@pytest.mark.long
@pytest.mark.parametrize("model", epochs.MODELS)
def test_in_children(model: str):
    needs_dgl()
    options = ("--features", "5", "--hidden", "16", "--classes", "3", "--turns", "2")
    few = ("--sizes", "90x300", "--batch-size", "9", "--fanouts", "3", "2", "--window", "3")
    some = ("--contestants", "gnnc", "gnnc-step", "gnnc-blocks", "dgl", "pyg")
    (result,) = epochs.measure(arguments("--models", model, *options, *few, *some))
    assert result["absent"] == {}
    found = result["results"]
    for name in ("gnnc", "gnnc-blocks"):
        assert found[name]["apart"] == 0 and found[name]["in_torch"] == []
    assert found["gnnc-step"]["apart"] < 1e-4 and found["gnnc-step"]["in_torch"] == []
    assert found["gnnc"]["fed_by"] == "gnnc.loader" and found["dgl"]["fed_by"] == "DGL"
    # they begin with the same weights
    assert all(r["apart"] < 0.5 for r in found.values())
    assert f"{model}, 2 layers of 16" in epochs.report(result)
