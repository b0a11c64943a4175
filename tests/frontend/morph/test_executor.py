import io
import signal
import subprocess
import sys
import threading
import traceback
from time import perf_counter

import numpy as np
import pytest

from gnnc.frontend.morph.checksum import checksum
from gnnc.frontend.morph.executor import BatchChanged, Executor
from gnnc.frontend.morph.link import RateLimitedLink
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

from .sleeping import Sleeping

QUICK = Times(0.002, 0.0005, 0.001, 0.001, 2)


@pytest.fixture(autouse=True)
def no_thread_outlives_a_run():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def registry_with(**changed) -> Registry:
    operators = {
        "cpu": lambda index: np.full(3, index, dtype=np.float32),
        "move": np.copy,
        "there": lambda index: np.full(3, index, dtype=np.float32),
        "train": lambda batch: float(batch.sum()),
    }
    operators |= changed
    registry = Registry()
    registry.register(Phase.PREPARE, CPU, operators["cpu"])
    registry.register(Phase.MOVE, LINK, operators["move"])
    registry.register(Phase.PREPARE, ACCELERATOR_AND_LINK, operators["there"])
    registry.register(Phase.TRAIN, ACCELERATOR, operators["train"])
    return registry


def within(seconds: float, expected: float, share: float) -> bool:
    return abs(seconds - expected) <= share * expected


@pytest.mark.parametrize(
    "workers, ratio",
    [(1, 0.5), *(pytest.param(*each, marks=pytest.mark.long) for each in ((2, 1.0), (3, 3.0)))],
)
def test_the_trace_of_sleeping_operators_is_the_simulators(workers, ratio):
    times = Times(0.024 * ratio * workers, 0.012, 0.024, 0.018, workers)
    scheduler = Scheduler(times)
    schedule = scheduler.best(12)
    played = scheduler.simulate(schedule)
    # A busy machine wakes sleepers late; it does so less in one of a few runs.
    for _ in range(4):
        slept = Sleeping(times.cpu, times.move, times.accelerator, times.train)
        run = Executor(slept.registry, workers=workers).run(schedule)
        starts = {(e.phase, e.resources, e.batch): e.start for e in run.trace.events}
        late = [
            abs(starts[e.phase, e.resources, e.batch] - e.start) / played.seconds
            for e in played.events
        ]
        if within(run.trace.seconds, played.seconds, 0.05) and max(late) <= 0.05:
            break
    else:
        pytest.fail(f"{run.trace.seconds} against {played.seconds}, starts off by {max(late)}")
    assert slept.trained == list(range(12))
    assert slept.prepared_on_cpu == set(schedule.on_cpu)
    for lane in Resource:
        assert run.trace.busy(lane) == pytest.approx(played.busy(lane), abs=0.08)
        blocked = [sum(trace.blocked(lane).values()) for trace in (run.trace, played)]
        share = blocked[0] / played.seconds
        assert share == pytest.approx(blocked[1] / played.seconds, abs=0.1 * workers)


@pytest.mark.parametrize("p", [0, 3, 10, 20])
@pytest.mark.parametrize("workers", [1, 4])
def test_losses_are_equal_whoever_prepares(p, workers):
    weight = np.zeros(3)
    seen = []

    def train(batch):
        nonlocal weight
        weight = 0.9 * weight + np.sin(batch)
        seen.append(float(weight.sum()))
        return seen[-1]

    schedule = Scheduler(QUICK, Buffers(1, 2, 3)).schedule(Split(p, 20 - p))
    run = Executor(registry_with(train=train), workers=workers, checksum=checksum).run(schedule)
    expected = 0.0
    for batch, loss in enumerate(run.results):
        expected = 0.9 * expected + float(np.sin(np.float32(batch))) * 3
        assert loss == pytest.approx(expected, rel=1e-5)
    assert seen == list(run.results) and len(seen) == 20


@pytest.mark.parametrize("side", ["cpu", "there", "move"])
def test_shared_memory_is_found_by_its_checksum(side):
    shared = np.zeros(3, dtype=np.float32)

    def into_shared(value):
        shared[:] = value
        return shared

    split = Split(0, 12) if side == "there" else Split(12, 0)
    # Two places, both filled before the first step.
    schedule = Scheduler(Times(0, 0, 0, 1, 1), Buffers(2, 2, 2)).schedule(split)
    if side == "there":
        o = schedule.operations
        schedule = type(schedule)((o[0], o[2], o[1], o[3], *o[4:]), schedule.buffers)
    slow = threading.Event()
    registry = registry_with(**{side: into_shared}, train=lambda batch: slow.wait(0.02))
    with pytest.raises(BatchChanged, match="changed between its preparation and its step"):
        Executor(registry, checksum=checksum).run(schedule)


@pytest.mark.parametrize("side", ["cpu", "move", "there", "train"])
def test_errors_come_with_their_trace_and_end_all_lanes(side):
    calls = []

    def broken_operator(value):
        calls.append(value)
        if len(calls) == 3:
            raise OSError("the feature file is truncated")
        return np.ones(3)

    schedule = Scheduler(QUICK).schedule(Split(20, 20))
    with pytest.raises(OSError, match="truncated") as caught:
        Executor(registry_with(**{side: broken_operator}), workers=3).run(schedule)
    assert "broken_operator" in "".join(traceback.format_exception(caught.value))
    assert "batch " in caught.value.__notes__[0]
    assert len(calls) < 20


def test_ctrl_c_ends_all_lanes():
    def interrupted(batch):
        if batch[0] == 2:
            raise KeyboardInterrupt
        return 0.0

    schedule = Scheduler(QUICK).schedule(Split(20, 20))
    with pytest.raises(KeyboardInterrupt):
        Executor(registry_with(train=interrupted), workers=3).run(schedule)


def test_buffers_are_bounded():
    lock = threading.Lock()
    held = {"host": 0, "moved": 0}
    most = {"host": 0, "moved": 0}

    def change(name, by):
        with lock:
            held[name] += by
            most[name] = max(most[name], held[name])

    def cpu(index):
        change("host", 1)
        return np.full(1, index)

    def move(batch):
        change("moved", 1)
        change("host", -1)
        return batch

    def train(batch):
        threading.Event().wait(0.003)
        change("moved", -1)

    schedule = Scheduler(QUICK, Buffers(2, 2, 2)).schedule(Split(30, 0))
    Executor(registry_with(cpu=cpu, move=move, train=train), workers=3).run(schedule)
    assert most["host"] <= 2 + 3
    assert most["moved"] <= 2


def test_progress_is_told():
    stream = io.StringIO()
    schedule = Scheduler(QUICK).schedule(Split(2, 3))
    Executor(registry_with(), progress=stream).run(schedule)
    Profiler(registry_with(), trials=1, warm_up=0, progress=stream).measure([0])
    assert stream.getvalue().splitlines() == ["training: batch 5/5", "profiling: batch 1/1"]


def test_missing_operators_and_wrong_arguments():
    schedule = Scheduler(QUICK).schedule(Split(1, 1))
    with pytest.raises(KeyError, match="no operator is registered"):
        Executor(Registry()).run(schedule)
    with pytest.raises(ValueError, match="workers"):
        Executor(Registry(), workers=0)


def test_measured_times_and_feedback_of_a_run():
    slept = Sleeping(0.02, 0.005, 0.01, 0.01)
    run = Executor(slept.registry).run(
        Scheduler(Times(0.02, 0.005, 0.01, 0.01)).schedule(Split(3, 3))
    )
    times = run.times()
    assert times is not None and 0.02 <= times.cpu < 0.03 and 0.005 <= times.move < 0.015
    feedback = run.feedback()
    assert feedback.seconds == run.trace.seconds
    assert 0 <= feedback.accelerator_waited < feedback.seconds
    only = Executor(slept.registry).run(Scheduler(QUICK).schedule(Split(0, 2)))
    assert only.times() is None


def test_a_link_takes_the_time_of_its_rate_and_copies():
    link = RateLimitedLink(1e6, latency=0.01)
    batch = {"x": np.ones(2500), "edges": [np.zeros(5, dtype=np.int32)], "size": 3}
    start = perf_counter()
    moved = link(batch)
    assert perf_counter() - start >= 0.01 + 0.02
    assert link.bytes_moved == 20_020
    assert checksum(moved) == checksum(batch)
    batch["x"][0] = 7
    assert checksum(moved) != checksum(batch)
    with pytest.raises(ValueError, match="bytes_per_second"):
        RateLimitedLink(0)
    with pytest.raises(TypeError, match="object"):
        checksum(object())


INTERRUPTED = """
import signal
import subprocess
import sys
import threading
from gnnc.tests.frontend.morph.sleeping import Sleeping
from gnnc import morph

# a shell's jobs in the background are started with Ctrl-C ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
slept = Sleeping(0.02, 0.01, 0.01, 0.01)
schedule = morph.Scheduler(morph.Times(0.02, 0.01, 0.01, 0.01, 2)).schedule(morph.Split(900, 900))
threading.Timer(0.2, lambda: print("running", flush=True)).start()
try:
    morph.Executor(slept.registry, workers=2).run(schedule)
except KeyboardInterrupt:
    print("ended with", threading.active_count(), "thread")
"""


def test_the_signal_of_ctrl_c_ends_the_process():
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert out == "ended with 1 thread\n" and process.returncode == 0
