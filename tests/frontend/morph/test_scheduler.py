from random import Random
from statistics import median

import pytest

from gnnc.frontend.morph.executor import Run
from gnnc.frontend.morph.partitioner import Partitioner, line, predicted
from gnnc.frontend.morph.plan import Buffers, Split, Times
from gnnc.frontend.morph.profiler import Profiler
from gnnc.frontend.morph.registry import (
    ACCELERATOR,
    ACCELERATOR_AND_LINK,
    CPU,
    LINK,
    Phase,
    Registry,
    Resource,
)
from gnnc.frontend.morph.scheduler import Scheduler
from gnnc.frontend.morph.simulator import Operation, Schedule, simulate

from .exhaustive import shortest

RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


def of_ratio(ratio: float, workers: int) -> Times:
    """A CPU that needs `ratio` times as long for a batch as the accelerator, by all workers."""
    return Times(0.012 * ratio * workers, 0.004, 0.012, 0.008, workers)


def random_case(draw: Random, most: int) -> tuple[Times, Buffers, int]:
    each = [draw.choice((0.1, 1.0, 1.0, 3.0)) * draw.uniform(0.2, 1.0) for _ in range(4)]
    workers = draw.randint(1, 4)
    buffers = Buffers(draw.randint(1, 3), draw.randint(1, 3), draw.randint(1, 3))
    return Times(each[0] * workers, *each[1:], workers), buffers, draw.randint(1, most)


def alone(times: Times, batches: int) -> float:
    """What the better side alone needs at most: the CPU's is a line of three stations."""
    slowest = max(times.cpu_interval, times.move, times.train)
    cpu = times.cpu + times.move + times.train + (batches - 1) * slowest
    return min(batches * (times.accelerator + times.train), cpu)


def approximation(times: Times, buffers: Buffers) -> float:
    """How many times the optimum a plan takes at most (docs/morph.md)."""
    ratio = 1 + max(1.0, times.accelerator / times.move)
    return min(2.0, ratio) if buffers.moved >= 2 else ratio


def check_random_cases(count: int, seed: int) -> list[float]:
    draw = Random(seed)
    ratios = []
    for _ in range(count):
        times, buffers, n = random_case(draw, 8)
        found = simulate(Scheduler(times, buffers).best(n), times).seconds
        optimum = shortest(times, buffers, n, found)
        least = min(predicted(times, Split(p, n - p)) for p in range(n + 1))
        assert least <= optimum + 1e-9
        assert found <= approximation(times, buffers) * optimum + 1e-9
        if buffers.moved >= 2:
            assert found <= alone(times, n) + 1e-9
        ratios.append(found / optimum)
    return ratios


def test_random_cases_against_every_order():
    assert median(check_random_cases(60, 1)) <= 1.1


@pytest.mark.long
def test_a_thousand_random_cases_against_every_order():
    ratios = check_random_cases(1000, 2)
    assert median(ratios) <= 1.1
    assert max(ratios) <= 1.5


def test_long_epochs_against_the_lower_bound():
    draw = Random(3)
    for _ in range(20):
        times, buffers, n = random_case(draw, 80)
        found = simulate(Scheduler(times, buffers).best(n), times).seconds
        least = min(predicted(times, Split(p, n - p)) for p in range(n + 1))
        assert found <= approximation(times, buffers) * least + 1e-9


def test_the_bound_of_the_cpu_alone_is_what_it_takes():
    draw = Random(4)
    for _ in range(200):
        times, buffers, n = random_case(draw, 30)
        if buffers.moved == 1:
            continue
        schedule = Scheduler(times, buffers).schedule(Split(n, 0))
        assert simulate(schedule, times).seconds == pytest.approx(line(times, n), rel=1e-12)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("workers", (2, 4, 8, 16))
def test_never_worse_than_one_side_alone_or_any_fixed_split(workers):
    for ratio in RATIOS:
        times = of_ratio(ratio, workers)
        scheduler = Scheduler(times, Buffers(4, 4, 4))
        n = 24
        found = simulate(scheduler.best(n), times).seconds
        splits = [
            simulate(scheduler.schedule(Split(p, n - p)), times).seconds for p in range(n + 1)
        ]
        assert found <= 1.03 * min(splits[0], splits[-1])
        assert found <= 1.05 * min(splits)


def planning(ratio: float, workers: int) -> tuple[float, float]:
    """In virtual time: what profiling and refining take, and an epoch of the best plan."""
    n, times = 200, of_ratio(ratio, workers)
    calls = {key: 0 for key in ("cpu", "move", "accelerator", "train")}

    def counting(name: str):
        def operator(payload: object) -> object:
            calls[name] += 1
            return payload

        return operator

    registry = Registry()
    registry.register(Phase.PREPARE, CPU, counting("cpu"))
    registry.register(Phase.MOVE, LINK, counting("move"))
    registry.register(Phase.PREPARE, ACCELERATOR_AND_LINK, counting("accelerator"))
    registry.register(Phase.TRAIN, ACCELERATOR, counting("train"))
    Profiler(registry, workers=workers).measure(range(n))
    assert calls["cpu"] % workers == 0
    calls["cpu"] //= workers
    spent = sum(count * getattr(times, name) for name, count in calls.items())
    scheduler, partitioner = Scheduler(times), Partitioner(times)
    split, tried = partitioner.refine(
        partitioner.initial(n),
        lambda split: Run((), scheduler.simulate(scheduler.schedule(split))).feedback(),
    )
    seconds = min(feedback.seconds for _, feedback in tried)
    assert seconds == scheduler.simulate(scheduler.schedule(split)).seconds
    return spent + sum(feedback.seconds for _, feedback in tried), seconds


@pytest.mark.one_in(3)
@pytest.mark.parametrize("workers", [2, 16])
@pytest.mark.parametrize("ratio", (8.0, 4.0, 2.0, 1.0, 0.5, 0.25))
def test_planning_takes_less_than_five_epochs(ratio, workers):
    spent, epoch = planning(ratio, workers)
    assert spent < 5 * epoch


def test_both_sides_work_where_both_are_as_fast():
    times = of_ratio(1.0, 2)
    scheduler = Scheduler(times)
    trace = scheduler.simulate(scheduler.best(60))
    alone_there = 60 * (times.accelerator + times.train)
    assert trace.seconds < 0.75 * alone_there
    assert trace.busy(Resource.CPU) > 0.9
    assert trace.busy(Resource.ACCELERATOR) > 0.95


def test_lanes_run_one_operation_at_a_time_and_buffers_hold():
    times = Times(0.3, 0.07, 0.09, 0.05, 3)
    buffers = Buffers(1, 2, 2)
    schedule = Scheduler(times, buffers).schedule(Split(12, 9))
    trace = simulate(schedule, times)
    for lane in (Resource.LINK, Resource.ACCELERATOR):
        events = trace.on(lane)
        for before, after in zip(events, events[1:], strict=False):
            assert after.start >= before.end - 1e-12
            waited = sum(w.seconds for w in after.waits if w.lane == lane)
            assert waited == pytest.approx(after.start - before.end, abs=1e-12)
    ends = {(e.phase, e.resources, e.batch): e for e in trace.events}
    moves = [e for e in trace.on(Resource.LINK) if e.phase == Phase.MOVE]
    for position, move in enumerate(moves):
        train = ends[Phase.TRAIN, ACCELERATOR, move.batch]
        assert train.start >= move.end - 1e-12
        if position >= buffers.moved:
            emptied = ends[Phase.TRAIN, ACCELERATOR, moves[position - buffers.moved].batch]
            assert move.start >= emptied.end - 1e-12
    steps = [e.batch for e in trace.on(Resource.ACCELERATOR) if e.phase == Phase.TRAIN]
    assert steps == list(range(21))


def test_schedules_that_cannot_run_are_refused():
    train = Operation(Phase.TRAIN, ACCELERATOR, 0)
    times = Times(1, 1, 1, 1)
    with pytest.raises(ValueError, match="batch 0 is trained before it is prepared"):
        simulate(Schedule((train,), Buffers()), times)
    moves = tuple(Operation(Phase.MOVE, LINK, i) for i in range(3))
    with pytest.raises(ValueError, match="no place for batch 2"):
        simulate(Schedule(moves, Buffers(moved=2)), times)
    with pytest.raises(ValueError, match="batches"):
        Scheduler(times).best(0)
