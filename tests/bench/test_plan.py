"""`gnnc bench plan`: what ranks send is what was planned, to the byte; steps are set beside what
was predicted of them."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from gnnc.bench import calibration, plan, plan_graphs
from gnnc.bench.calibration import Task
from gnnc.bench.command import PARTS
from gnnc.bench.plan_stages_child import Spell, stages
from gnnc.frontend.plan import constants, cost
from gnnc.frontend.plan.constants import Constants
from gnnc.frontend.plan.layers import model as layers_of
from gnnc.frontend.plan.loads import of_partition
from gnnc.frontend.plan.stages import step_stages
from gnnc.frontend.tools.children import Child, Message, Refused
from gnnc.runtime.partition.edges import in_memory
from gnnc.tests.runtime.ranks.launching import one_at_a_time  # noqa: F401


def arguments(*args: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    return parser.parse_args(args)


LONG = pytest.mark.long
TINY = (Task("gcn", (6, 4, 3), 100, 500), Task("gcn", (6, 4, 3), 1000, 5000))


@pytest.mark.parametrize(
    ("model", "widths", "nodes", "edges", "ranks"),
    [
        ("gcn", (24, 16, 8), 60, 300, 3),
        pytest.param("gcn", (16, 4, 12, 8), 60, 300, 4, marks=LONG),
        pytest.param("gcn", (64, 16, 8), 4096, 20_000, 4, marks=LONG),
        pytest.param("gcn", (24, 16, 8), 500, 3000, 16, marks=LONG),
        pytest.param("sage", (24, 16, 8), 60, 300, 16, marks=LONG),
        pytest.param("sage", (128, 16, 8), 4096, 8000, 4, marks=LONG),
        pytest.param("sage", (64, 32, 16), 4096, 30_000, 4, marks=LONG),
        pytest.param("gin", (4, 16, 32), 60, 300, 4, marks=LONG),
        pytest.param("gin", (24, 16, 8), 60, 300, 16, marks=LONG),
        pytest.param("gin", (64, 32, 16), 4096, 20_000, 4, marks=LONG),
        pytest.param("gat", (24, 16, 8), 60, 300, 4, marks=LONG),
        pytest.param("gat", (24, 32, 16, 8), 60, 300, 16, marks=LONG),
        pytest.param("gcn", (24, 16, 8), 60, 300, 1, marks=LONG),
    ],
)
def test_bytes_and_messages_are_those_that_were_planned(
    model: str, widths: tuple[int, ...], nodes: int, edges: int, ranks: int
):
    """By each rank, with features that are summed once and each time, first and last."""
    question: Message = {"model": model, "widths": widths, "nodes": nodes, "edges": edges}
    with Child("gnnc.bench.plan_count_child") as child:
        counted = child.ask({**question, "ranks": ranks})
    index, owner = plan_graphs.scattered(nodes, edges, ranks)
    loads = of_partition(in_memory(index[0], index[1], nodes), owner, ranks)
    size, messages = cost.sent(layers_of(model, widths, nodes, edges), loads)
    assert counted["bytes"] == size.tolist()
    assert counted["messages"] == messages.tolist()


@pytest.mark.long
def test_steps_of_ranks_that_are_launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("mpi4py")
    constants.save(tmp_path / "c.json", Constants(), {})
    monkeypatch.setattr(plan, "SIZES", ((400, 3000),))
    monkeypatch.setattr(calibration, "TASKS", (Task("gcn", (6, 4, 3), 100, 500),))
    few = ["--features", "8", "--hidden", "6", "--classes", "3", "--seconds", "0.01"]
    few += ["--counted", "--virtual"]
    file = ["--models", "gcn", "--constants", str(tmp_path / "c.json")]
    (found,) = plan.measure(arguments(*few, *file))
    one, two = found["points"]
    assert (one["ranks"], two["ranks"]) == (1, 2)
    assert min(p["measured"] for p in (one, two)) > 0
    printed = plan.report(found)
    assert "gcn, 400 nodes, 3,000 edges: 2" in printed and "off by" in printed


def point(planned: float) -> Message:
    counts = {"bytes": [3, 4], "messages": [1, 1]}
    wrong = {"bytes": [3.0, planned], "messages": [1.0, 1.0]}
    return {"model": "gcn", "ranks": 2, "counted": counts, "planned": wrong, "simulated": 0.5}


@pytest.mark.parametrize(("planned", "failed"), [(4.0, False), (5.0, True)])
def test_other_bytes_than_planned_are_a_failure(planned: float, failed: bool):
    result = {"study": "bytes", "points": [point(planned)]}
    assert plan.failed([result]) == failed
    assert f"{3 + planned:,.0f}" in plan.report(result)
    assert not plan.failed([{"study": "steps", "points": []}])


def test_how_far_predictions_are_off():
    points = [
        {**{"model": "gcn", "nodes": 10, "edges": 20, "ranks": 1, "predicted": 1.0}, **of}
        for of in ({"measured": 1.0, "simulated": 1.1}, {"measured": 2.0, "simulated": 1.6})
    ]
    printed = plan.report({"study": "steps", "points": points})
    for text in ("+10.0%", "-20.0%", "off by 20.0% at most, 15.0% on average"):
        assert text in printed


def test_validation_is_on_other_tasks_than_the_calibration():
    sizes = {(t.nodes, t.edges) for t in calibration.TASKS}
    assert not sizes & set(plan.SIZES)
    assert [p.name for p in PARTS if p.failed is plan.failed] == ["plan"]


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(4, marks=LONG)])
def test_stages_have_the_bytes_that_were_planned(ranks: int, monkeypatch: pytest.MonkeyPatch):
    """And work before each message, and after the last."""
    monkeypatch.setattr(calibration, "TASKS", TINY)
    task = Task("sage", (12, 8, 4), 240, 1500, 0.3)
    found, pace = plan._stages(task, ranks, Constants())
    assert np.isfinite(pace)
    assert all((s.before > 0).all() and len(s.before) == ranks for s in found)
    loads = plan._planted(task, ranks)
    messages = [s for s in step_stages(task.layers(), loads, Constants()) if s.row_bytes]
    exchanged = [s for s in found if s.rows is not None and s.rows.any()]
    assert len(exchanged) == (len(messages) if ranks > 1 else 0)
    size, _ = cost.sent(task.layers(), loads)
    sent = sum(s.rows.sum(axis=0) for s in found if s.rows is not None)
    assert np.broadcast_to(sent, ranks).tolist() == np.broadcast_to(size, ranks).tolist()


def test_stages_are_medians_by_rank():
    quick = [Spell(1.0, 0.5, {1: 8}), Spell(2.0)]
    slow = [Spell(3.0, 0.5, {1: 8}), Spell(9.0)]
    other = [Spell(5.0, 0.0, {0: 4}), Spell(7.0)]
    first, last = stages([[quick, slow, slow], [other, other, other]])
    assert (first["before"], first["beside"]) == ([3.0, 5.0], [0.5, 0.0])
    assert first["bytes"] == [[0.0, 4.0], [8.0, 0.0]]
    assert (last["before"], last["bytes"]) == ([9.0, 7.0], [[0.0, 0.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match=r"\[1, 2\] messages"):
        stages([[quick], [other[:1]]])


@LONG
def test_virtual_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calibration, "TASKS", TINY)
    point = plan._virtual(Task("gcn", (12, 8, 4), 600, 4000, 0.1), 3, Constants())
    assert 0 < point["measured"] < 1 and 0 < point["simulated"] < 1
    printed = plan.report({"study": "virtual", "points": [point]})
    assert "virtual time" in printed and "gcn, 600 nodes, 4,000 edges: 3" in printed


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_planted_parts(parts: int):
    nodes, edges = 1000, 40_000
    src, dst = plan_graphs.planted(nodes, edges, 0.25, parts)
    owner = plan_graphs.owners_of_parts(nodes, parts)
    assert np.bincount(owner).tolist() == [nodes // parts] * parts
    away = owner[src] != owner[dst]
    assert away.mean() == pytest.approx(0.25 if parts > 1 else 0.0, abs=0.01)
    assert len(np.unique(src)) > 0.99 * nodes


def test_constants_that_are_none_are_refused(tmp_path: Path):
    with pytest.raises(Refused, match="--constants: .*nowhere.json"):
        next(plan.measure(arguments("--constants", str(tmp_path / "nowhere.json"))))


def test_halves_exchange_the_share_that_they_should():
    nodes, edges = 1000, 40_000
    src, dst = plan_graphs.halves(nodes, edges, 0.25)
    loads = of_partition(in_memory(src, dst, nodes), plan_graphs.owners_of_halves(nodes, 2), 2)
    assert loads.remote_edges.sum() / edges == pytest.approx(0.25, abs=0.01)
    assert not plan_graphs.owners_of_halves(nodes, 1).any()
