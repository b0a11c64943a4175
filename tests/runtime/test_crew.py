"""How many threads calls get, on machines whose times are made up here."""

import ctypes
import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gnnc.runtime.cpu import crew as crew_module
from gnnc.runtime.cpu import threads
from gnnc.runtime.cpu.crew import DYNAMIC_VARIABLE, TRIED, Crew, Crews
from gnnc.runtime.cpu.loader import CpuEntry

Machine = Callable[[int], float]
ONE, TEAM = 0.2e-3, 0.11e-3
"""Seconds of a call on one thread, and on a team of two on free cores."""


@pytest.fixture(autouse=True)
def adjusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DYNAMIC_VARIABLE, raising=False)


def free(count: int) -> float:
    return ONE if count == 1 else TEAM


def busy(share: float, pause: float, seed: int = 0) -> Machine:
    """A team waits so long for its last thread, in that share of the calls."""
    chance = random.Random(seed)
    return lambda count: free(count) + pause * (count > 1 and chance.random() < share)


def calls(crew: Crew, machine: Machine, number: int, allowed: int = 2) -> tuple[float, float]:
    """Seconds of so many calls, and the share of them that a team ran."""
    seconds, teams = 0.0, 0
    for _ in range(number):
        count = crew.threads(allowed)
        assert count in (1, allowed)
        took = machine(count)
        crew.took(count, took)
        seconds, teams = seconds + took, teams + (count > 1)
    return seconds, teams / number


@pytest.mark.parametrize("allowed", [2, 8])
def test_teams_on_free_cores(allowed: int):
    seconds, teams = calls(Crew(), free, 5000, allowed)
    assert teams > 0.98
    assert seconds < 1.01 * 5000 * TEAM


@pytest.mark.parametrize("share,pause", [(0.1, 28e-3), (0.5, 4e-3), (1.0, 95e-3)])
@pytest.mark.parametrize("seed", range(5))
def test_one_thread_on_busy_cores(share: float, pause: float, seed: int):
    crew, machine = Crew(), busy(share, pause, seed)
    calls(crew, machine, 2000)
    seconds, teams = calls(crew, machine, 20_000)
    assert teams < 0.05
    assert seconds < 1.5 * 20_000 * ONE


def test_teams_come_back_when_cores_are_free_again():
    crew = Crew()
    calls(crew, busy(0.3, 8e-3), 5000)
    calls(crew, free, 20_000)
    _, teams = calls(crew, free, 2000)
    assert teams > 0.98


def test_a_single_pause_changes_nothing():
    crew = Crew()
    calls(crew, free, 1000)
    crew.took(crew.threads(2), 8e-3)
    _, teams = calls(crew, free, 1000)
    assert teams > 0.98


def test_a_single_pause_of_long_calls_is_soon_over():
    crew = Crew()
    seconds = {1: 50e-3, 2: 28e-3}
    calls(crew, lambda count: seconds[count], 100)
    crew.took(2, 1.5)
    _, teams = calls(crew, lambda count: seconds[count], 200)
    assert teams > 0.75


@pytest.mark.usefixtures("two_threads")
def test_the_first_call_after_a_rest_is_not_counted(monkeypatch: pytest.MonkeyPatch):
    """Three calls at a time, before which others had the caches, for seconds."""
    now, seen = 0.0, list[int]()
    monkeypatch.setattr(crew_module, "perf_counter", lambda: now)

    def call(count: int) -> None:
        nonlocal now
        seen.append(count)
        now += (0.3 if k % 3 == 0 else 28e-3) if count == 2 else 50e-3

    crews = Crews()
    for k in range(60):
        now += 5.0 if k % 3 == 0 else 0.0
        crews.run("a", 1000, call)
    assert seen.count(2) > 55


def test_one_thread_where_the_first_calls_are_slow_already():
    _, teams = calls(Crew(), lambda count: 20e-3 if count > 1 else 5e-3, 200)
    assert teams < 0.05


def test_teams_where_the_first_calls_find_new_memory():
    """Twice as long as later ones, which is longer than one thread takes."""
    crew, times = Crew(), iter([2.0, 56e-3, 56e-3])
    _, teams = calls(crew, lambda count: next(times, 28e-3 if count > 1 else 52e-3), 100)
    assert teams > 0.95


def test_long_calls_are_not_tried_on_one_thread():
    _, teams = calls(Crew(), lambda count: 2 * TRIED / count**0.5, 50)
    assert teams == 1


def test_times_are_in_proportion_to_sizes():
    crew, chance, teams = Crew(), random.Random(0), 0
    for _ in range(2000):
        size = chance.randrange(1000, 2000)
        count = crew.threads(2, size)
        crew.took(count, free(count) * size, size)
        teams += count > 1
    assert teams > 0.97 * 2000


def test_one_thread_where_more_are_not_allowed():
    crew = Crew()
    assert calls(crew, free, 10, allowed=1)[1] == 0
    assert calls(crew, free, 1000)[1] > 0.98


def test_openmp_may_say_that_nothing_is_adjusted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(DYNAMIC_VARIABLE, "FALSE")
    assert calls(Crew(), busy(1.0, 95e-3), 1000)[1] == 1


@pytest.fixture
def two_threads() -> Iterator[None]:
    threads.set_num_threads(2)
    yield
    threads.set_num_threads(None)


@pytest.mark.usefixtures("two_threads")
def test_calls_of_other_kinds_or_sizes_learn_for_themselves():
    crews, seen = Crews(), list[int]()

    def call(count: int) -> str:
        seen.append(count)
        return "done"

    for name, size in (*[("a", 1000)] * 5, ("a", 1023), ("a", 1024), ("b", 1000), ("b", 0)):
        assert crews.run(name, size, call) == "done"
    assert seen == [2] * 5 + [1, 2, 2, 2]  # the sixth one is a try


@pytest.mark.usefixtures("two_threads")
def test_threads_that_are_said_stay():
    crews, seen = Crews(), list[int]()
    for _ in range(5):
        crews.run("a", 1000, seen.append, 3)
    assert seen == [3] * 5


def test_one_thread_is_not_timed():
    crews, seen = Crews(), list[int]()
    threads.set_num_threads(1)
    try:
        for _ in range(5):
            crews.run("a", 1000, seen.append)
    finally:
        threads.set_num_threads(None)
    assert seen == [1] * 5


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("profile", [False, True])
def test_profiled_phases_keep_all_threads(profile: bool):
    seen = list[int]()
    entry: Any = CpuEntry.__new__(CpuEntry)
    entry.function = lambda count, sizes, places: seen.append(count)
    entry.crews, entry.seconds = Crews(), (ctypes.c_double * 1)() if profile else None
    phase = SimpleNamespace(sizes=(ctypes.c_int64 * 1)(), messages=None, rows_in_all=10)
    for _ in range(6):
        entry.run(phase, 0, (ctypes.c_void_p * 1)())
    assert seen == [2] * 5 + [2 if profile else 1]
