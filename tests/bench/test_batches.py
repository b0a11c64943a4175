"""`gnnc bench batches`: its steps, and the figures that it asks for."""

import argparse

import pytest
import torch

from gnnc.bench import batches
from gnnc.bench.turns import Turns
from gnnc.frontend.tools.children import ChildFailed, Message

SMALL = ("--steps", "2", "--turns", "1", "--threads", "1", "--sizes", "30x60")
SAMPLED = ("--sampled-from", "200x900", "--batch-size", "20", "--fanouts", "3", "2")


def arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    batches.add_arguments(parser)
    return parser.parse_args(given)


def of_new_graphs(nodes: int, new: float, pyg: float) -> Message:
    row = {"nodes": nodes, "edges": 5 * nodes, "threads": 2, "new": new, "same": 1e-3, "pyg": pyg}
    return {"study": "new graphs", "rows": [row]}


def test_figures_that_are_asked_for():
    most = 1.15e-3 + 1e-4
    for result, wanted in (
        (of_new_graphs(1000, most, 1.8 * most), []),
        (of_new_graphs(1000, most, 1.7 * most), ["pyg / gnnc 1.70"]),
        (of_new_graphs(10_000, most * 1.01, 4e-3), ["pyg / gnnc 3.17", "new"]),
        (of_new_graphs(77, most, 0.0), []),  # nothing is asked for this size
        ({"study": "calls", "nodes": 34, "edges": 156, "call": 1e-3, "beyond": 149e-6}, []),
        ({"study": "calls", "beyond": 151e-6}, ["beyond kernels"]),
        ({"study": "busy", "rows": [{"all": 1.5, "one": 1.0}]}, []),
        ({"study": "busy", "rows": [{"all": 1.6, "one": 1.0}]}, ["all / one 1.60"]),
        ({"study": "trimmed", "rows": [{"gnnc": 1.0, "pyg": 2.4}]}, ["pyg / gnnc 2.40"]),
        ({"study": "pooled", "rows": [{"step": 1.0, "call": 2.0, "pyg": 0.5}]}, []),
    ):
        assert batches.missed(result) == wanted
        assert batches.failed([result]) == bool(wanted)
    text = batches.report(of_new_graphs(1000, 2e-3, 4e-3))
    assert "1.2 ms" in text and "2.00" in text


def test_graphs_differ_in_size():
    from gnnc.bench.batches_child import Small

    made = Small().graphs(5, 100, 500)
    assert len({x.shape for (x, _), _ in made}) > 1
    for (x, edge_index), y in made:
        assert 90 <= len(x) <= 110 and 450 <= edge_index.shape[1] <= 550 and len(y) == len(x)
    (((x, _), _),) = Small().graphs(1, 100, 500)
    assert len(x) == 100


def test_steps_of_pyg():
    from gnnc.bench.batches_child import Stepping

    before = torch.get_num_threads()
    try:
        plain = Stepping(False, False, None).steps(1, 3, nodes=20, edges=40)
        sampled = {"nodes": 50, "edges": 200, "fanouts": [3, 2], "batch_size": 9}
        trimmed = Stepping(False, False, sampled).steps(1, 2)
    finally:
        torch.set_num_threads(before)
    assert len(plain["seconds"]) == 3 and len(trimmed["seconds"]) == 2
    assert plain["kernels"] == [0.0] * 3


def test_batches_of_small_graphs_are_new():
    from gnnc.bench.pooled_graphs_child import Training

    before = torch.get_num_threads()
    try:
        training = Training("gine", "pyg")
        first, second = training.batch(), training.batch()
        assert len(training.steps(1, 2)["seconds"]) == 2
    finally:
        torch.set_num_threads(before)
    assert first.num_graphs == second.num_graphs == 64 and first.x.shape != second.x.shape
    row = {"model": "gine", "threads": 1, "step": 1e-3, "call": 2e-3, "pyg": 4e-3}
    text = batches.report({"study": "pooled", "graphs": 64, "rows": [row]})
    assert "4.00" in text and "2.00" in text and "64 graphs" in text


def test_a_contestant_that_is_out_ends_the_study():
    racing = Turns({})
    racing.absent["gnnc"] = "gone"
    with pytest.raises(ChildFailed, match="gnnc: gone"):
        batches._asked(racing, "gnnc", {})


def test_a_model_that_runs_in_torch_is_not_measured():
    racing = Turns({})
    racing.ask = lambda name, question: {"in_torch": ["a slice"]}
    with pytest.raises(ChildFailed, match="gnnc runs in torch: a slice"):
        batches._asked(racing, "gnnc", {})


@pytest.mark.long
def test_in_children():
    new, call, busy, trimmed, pooled = batches.measure(arguments(*SMALL, *SAMPLED))
    assert all(new["rows"][0][kind] > 0 for kind in ("new", "same", "pyg"))
    assert 0 < call["beyond"] < call["call"]
    assert busy["rows"][0]["all"] > 0 < busy["rows"][0]["one"]
    assert trimmed["rows"][0]["gnnc"] > 0
    assert all(row[way] > 0 for row in pooled["rows"] for way in ("step", "call", "pyg"))
    for result, text in (
        (new, "30, 60"),
        (call, "34 nodes"),
        (busy, "1 threads and one"),
        (trimmed, "200 nodes, 900 edges"),
        (pooled, "64 graphs of 10 to 39 nodes"),
    ):
        assert text in batches.report(result)
