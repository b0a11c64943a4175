"""Constants are found again in the times that they make."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from gnnc.bench import calibration
from gnnc.bench.calibration import MESSAGES, RANKS, TASKS
from gnnc.bench.ceilings import Ceilings
from gnnc.frontend.plan import cost
from gnnc.frontend.plan.constants import Constants
from gnnc.frontend.plan.loads import alone
from gnnc.frontend.tools.children import ChildFailed, Message

TRUE = Constants(
    edge_number=7e-11,
    far_number=3e-10,
    cache_bytes=8 * 2**20,
    node_number=2e-10,
    multiply_add=5e-11,
    score=4e-9,
    fixed=2e-4,
    shared=1.25,
    shared_caches=0.25,
    exchange=6e-5,
    alpha=2e-5,
    bandwidth=4e9,
    fixed_bytes=3e8,
    edge_bytes=50,
)
NEAR, CACHE, MEMORY = 2**20, 10 * 2**20, 80 * 2**20
FAST = Ceilings(1, ((NEAR, 1e12), (CACHE, 9e11), (MEMORY, 1e11)), 1e12)


def answers() -> tuple[Message, Message]:
    """Those of a machine whose steps are as the model says."""
    one = [cost.predict(t.layers(), alone(t.nodes, t.edges), TRUE) for t in TASKS]
    two = [cost.predict(t.layers(), t.apart(), TRUE) for t in TASKS]
    messages = [TRUE.alpha + size / TRUE.bandwidth for size in MESSAGES]
    memory = {"fixed_bytes": 3e8, "graph_bytes": one[1].memory - 3e8}
    answer = {"seconds": [p.seconds for p in one], "messages": [1.0], **memory}
    return answer, {"seconds": [p.seconds for p in two], "messages": messages}


def test_constants_are_those_that_the_times_come_from():
    found = asdict(calibration.fitted(*answers(), calibration.least(FAST)))
    # the smallest task has some work as well, which counts for its exchanges
    loose = {"exchange": 0.1, "shared": 0.02}
    for name, value in asdict(TRUE).items():
        assert found[name] == pytest.approx(value, rel=loose.get(name, 1e-3)), name


def test_noise_of_some_per_cent_moves_steps_by_no_more():
    one, two = answers()
    noisy = [s * (1.05 if i % 2 else 0.95) for i, s in enumerate(one["seconds"])]
    found = calibration.fitted({**one, "seconds": noisy}, two, calibration.least(FAST))
    for task, seconds in zip(TASKS, one["seconds"], strict=True):
        predicted = cost.predict(task.layers(), alone(task.nodes, task.edges), found).seconds
        assert predicted == pytest.approx(seconds, rel=0.1)


def test_no_constant_is_below_what_the_machine_can_do():
    slow = Ceilings(1, ((NEAR, 4e9), (CACHE, 2e9), (MEMORY, 2e9)), 1e9)
    least = calibration.least(slow)
    assert (least.edge_number, least.far_number, least.node_number) == (1e-9, 2e-9, 2e-9)
    assert least.multiply_add == 2e-9
    found = calibration.fitted(*answers(), least)
    assert found.edge_number == pytest.approx(1e-9)
    assert found.node_number == pytest.approx(2e-9)


def test_tasks_measured_beside_are_told_apart(monkeypatch: pytest.MonkeyPatch):
    """Their times make no constants."""
    answer = dict(zip((1, RANKS), answers(), strict=True))

    def launched(script: str, question: Message, ranks: int, threads: int) -> Message:
        assert question["tasks"][len(TASKS) :] == [asdict(TASKS[3])]
        assert bool(question["messages"]) == (ranks > 1)
        return {**answer[ranks], "seconds": [*answer[ranks]["seconds"], 7.0 * ranks]}

    monkeypatch.setattr(calibration, "launched", launched)
    monkeypatch.setattr(calibration.ceilings, "measure", lambda threads, sizes: FAST)
    constants, seconds = calibration.beside([TASKS[3]], 0.1)
    assert constants == calibration.fitted(*answers(), calibration.least(FAST))
    assert seconds == {1: [7.0], RANKS: [7.0 * RANKS]}


@pytest.mark.parametrize("slower", [0.8, 1.0, 1.5])
def test_pace_is_how_much_longer_work_takes(slower: float):
    now = TRUE.at(slower)
    alike = [(t.layers(), alone(t.nodes, t.edges)) for t in calibration.paced()]
    seconds = [cost.predict(layers, loads, now).seconds for layers, loads in alike]
    # the smallest task has some work as well
    assert calibration.pace(TRUE, seconds) == pytest.approx(slower, rel=0.03)


def test_times_that_are_none_are_refused():
    one, two = answers()
    with pytest.raises(ChildFailed, match="the clock"):
        calibration.fitted({**one, "seconds": [0.0] * len(TASKS)}, two, calibration.least(FAST))


def test_questions_are_those_of_the_tasks():
    asked: Any = calibration.question(TASKS[:2], (8,), 0.1)
    assert asked["tasks"][0] == asdict(TASKS[0])
    assert (asked["messages"], asked["seconds"]) == ([8], 0.1)


@pytest.mark.parametrize("task", TASKS)
def test_halves_are_apart(task: calibration.Task):
    found = task.apart()
    assert found.ranks == RANKS and not found.ghosts.any()
    assert found.owned[0] * RANKS == task.nodes
    assert replace(task, across=0.5).apart().ghosts[0] > 0
