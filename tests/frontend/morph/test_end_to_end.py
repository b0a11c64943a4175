"""Profile, plan, run and refine with sleeping operators: what a script does with the four calls."""

from time import perf_counter

import pytest

from gnnc.frontend.morph.executor import Executor
from gnnc.frontend.morph.partitioner import Partitioner
from gnnc.frontend.morph.plan import Buffers, Split, Times
from gnnc.frontend.morph.profiler import Profiler
from gnnc.frontend.morph.scheduler import Scheduler

from .sleeping import Sleeping

RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
BUFFERS = Buffers(2, 3, 3)


def slept(ratio: float, workers: int) -> Sleeping:
    return Sleeping(0.016 * ratio * workers, 0.010, 0.016, 0.012)


def seconds_of(split: Split, ratio: float, workers: int, times: Times) -> float:
    schedule = Scheduler(times, BUFFERS).schedule(split)
    return Executor(slept(ratio, workers).registry, workers=workers).run(schedule).trace.seconds


def planned(ratio: float, workers: int, batches: int) -> tuple[float, Times]:
    operators = slept(ratio, workers)
    times = Profiler(operators.registry, workers=workers, warm_up=1, trials=3).measure([0])
    schedule = Scheduler(times, BUFFERS).best(batches)
    run = Executor(operators.registry, workers=workers).run(schedule)
    return run.trace.seconds, times


def fast_enough(ratio: float, workers: int, batches: int, counts: range, share: float) -> bool:
    """The plan against fixed splits, all of them run; a busy machine gets a second and a third."""
    for _ in range(3):
        seconds, times = planned(ratio, workers, batches)
        splits = [Split(p, batches - p) for p in counts]
        fixed = [seconds_of(split, ratio, workers, times) for split in splits]
        if seconds <= share * min(fixed):
            return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("ratio", RATIOS)
def test_plan_is_not_slower_than_one_side_alone(ratio):
    assert fast_enough(ratio, 2, 12, range(0, 13, 12), 1.03)


@pytest.mark.long
@pytest.mark.parametrize("ratio", RATIOS)
def test_plan_is_as_fast_as_the_best_fixed_split(ratio):
    assert fast_enough(ratio, 2, 12, range(13), 1.05)


@pytest.mark.long
def test_refining_runs_real_epochs_and_keeps_the_fastest():
    # Profiled as if the CPU were three times as fast as it is.
    wrong = Times(0.010, 0.010, 0.016, 0.012, 1)
    executor = Executor(slept(2.0, 1).registry)
    scheduler = Scheduler(wrong, BUFFERS)
    partitioner = Partitioner(wrong)
    split, tried = partitioner.refine(
        partitioner.initial(10), lambda split: executor.run(scheduler.schedule(split)).feedback()
    )
    assert len(tried) == 4
    assert split.cpu < tried[0][0].cpu
    assert [s.cpu for s, _ in tried] == list(range(10, 6, -1))


def test_finding_a_plan_takes_less_than_five_epochs():
    times = Times(0.002, 0.001, 0.001, 0.001, 2)
    scheduler = Scheduler(times)
    start = perf_counter()
    schedule = scheduler.best(400)
    assert perf_counter() - start < 5 * scheduler.simulate(schedule).seconds
