"""Runs a schedule: the CPU's workers and the link on threads, the steps on the caller's."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from threading import Condition, Thread
from time import perf_counter
from typing import TextIO

from ..tools.progress import Count, counted
from .partitioner import Feedback
from .plan import Times
from .registry import ACCELERATOR, ACCELERATOR_AND_LINK, CPU, LINK, Phase, Registry, Resource
from .simulator import (
    HOST_FULL,
    LINK_BUSY,
    MOVED_FULL,
    NO_BATCH,
    NO_HOST_BATCH,
    Operation,
    Schedule,
    simulate,
    waits_of_both,
)
from .trace import Event, Trace, Wait


class BatchChanged(RuntimeError):
    """A batch was not the same when it was trained as when it was prepared."""


@dataclass(frozen=True)
class Run:
    """What an epoch gave: the steps' results in the order of the steps, and what ran when."""

    results: tuple[object, ...]
    trace: Trace

    def times(self) -> Times | None:
        """The median times as they were measured; None where a side had no batch."""
        seconds: dict[tuple[Phase, frozenset[Resource]], list[float]] = {}
        for event in self.trace.events:
            each = seconds.setdefault((event.phase, event.resources), [])
            each.append(event.end - event.start)
        keys = ((Phase.PREPARE, CPU), (Phase.MOVE, LINK), (Phase.PREPARE, ACCELERATOR_AND_LINK))
        if not all(key in seconds for key in keys):
            return None
        cpu, move, there = (median(seconds[key]) for key in keys)
        train = median(seconds[Phase.TRAIN, ACCELERATOR])
        return Times(cpu, move, there, train, self.trace.workers)

    def feedback(self) -> Feedback:
        """What the partitioner refines its split by."""
        trace = self.trace
        waited = trace.blocked(Resource.ACCELERATOR).get(NO_BATCH, 0.0)
        idle = trace.seconds * (1 - trace.busy(Resource.CPU))
        return Feedback(trace.seconds, waited, idle)


class Executor:
    """Runs schedules with a registry's operators.

    `workers` threads prepare on the CPU, one moves over the link. Steps and preparations of the
    accelerator run on the thread that calls `run`, so that training code needs no thread of its
    own and Ctrl-C reaches it. With a `checksum`, each batch's is taken when it is prepared and
    again before its step. `progress` is a stream that is told how far an epoch is: a bar on a
    terminal, else a line now and then.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        workers: int = 1,
        checksum: Callable[[object], int] | None = None,
        progress: TextIO | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers: at least one is needed, not {workers}")
        self._registry = registry
        self._workers = workers
        self._checksum = checksum
        self._progress = progress

    def run(self, schedule: Schedule) -> Run:
        """Trains the batches 0, 1, 2, ... of the schedule.

        Whatever ends it, no thread outlives the call: on an error or Ctrl-C the operators that
        run are waited for and no other is begun. Raises ValueError for a schedule that cannot
        run, KeyError where an operator is missing, BatchChanged, and what an operator raises,
        with its trace and a note of phase and batch.
        """
        simulate(schedule, Times(0, 0, 0, 0, self._workers))
        epoch = _Epoch(self._registry, schedule, self._workers, self._checksum)
        with counted("training", "batch", schedule.batches, self._progress) as count:
            return epoch.run(count)


class _Stopped(Exception):
    """Another lane failed."""


class _Epoch:
    """The state of one run, which all lanes read and change under one condition."""

    def __init__(
        self,
        registry: Registry,
        schedule: Schedule,
        workers: int,
        checksum: Callable[[object], int] | None,
    ) -> None:
        self._on_cpu = schedule.on_cpu
        needed = {(o.phase, o.resources) for o in schedule.operations}
        needed |= {(Phase.PREPARE, CPU)} if self._on_cpu else set()
        self._operators = {key: registry.get(*key) for key in needed}
        self._schedule = schedule
        self._buffers = schedule.buffers
        self._workers = workers
        self._checksum = checksum
        self._changed = Condition()
        self._stopped = False
        self._error: BaseException | None = None
        self._begun = self._moves_begun = self._moves_ended = self._cpu_trained = 0
        self._link_turn = 0
        self._link_free = 0.0
        self._host: dict[int, object] = {}
        self._ready: dict[int, object] = {}
        self._sums: dict[int, int] = {}
        self._events: list[Event] = []
        self._start = 0.0

    def run(self, count: Count) -> Run:
        lanes = [partial(self._work, worker) for worker in range(self._workers)]
        if not self._on_cpu:
            lanes = []
        threads = [Thread(target=self._guarded, args=(lane,)) for lane in (*lanes, self._link)]
        self._start = perf_counter()
        results: list[object] = []
        try:
            for thread in threads:
                thread.start()
            self._accelerate(results, count)
        except _Stopped:
            pass
        except BaseException as error:
            self._stop(error)
        finally:
            self._stop(None)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        if self._error is not None:
            raise self._error
        seconds = max(e.end for e in self._events)
        return Run(tuple(results), Trace(tuple(self._events), seconds, self._workers))

    def _guarded(self, lane: Callable[[], None]) -> None:
        try:
            lane()
        except _Stopped:
            pass
        except BaseException as error:  # raised again by the thread that called
            self._stop(error)

    def _stop(self, error: BaseException | None) -> None:
        with self._changed:
            self._stopped = True
            self._error = self._error or error
            self._changed.notify_all()

    def _wait(self, blocked_by: Callable[[], str]) -> str:
        """Waits, the condition held, until nothing blocks; returns what did last."""
        cause = ""
        while True:
            if self._stopped:
                raise _Stopped
            now = blocked_by()
            if not now:
                return cause
            cause = now
            self._changed.wait()

    def _run(
        self,
        operation: Operation,
        payload: object,
        waits: Callable[[float], tuple[Wait, ...]],
        worker: int = 0,
    ) -> object:
        """Runs the operator; `waits` says what its lanes waited, if it starts then."""
        phase, resources, batch = operation.phase, operation.resources, operation.batch
        start = perf_counter() - self._start
        try:
            result = self._operators[phase, resources](payload)
        except BaseException as error:
            error.add_note(f"{phase} on {' and '.join(sorted(resources))}, batch {batch}")
            raise
        end = perf_counter() - self._start
        event = Event(phase, resources, batch, start, end, waits(start), worker)
        if phase == Phase.PREPARE and self._checksum is not None:
            self._sums[batch] = self._checksum(result)
        with self._changed:
            self._events.append(event)
        return result

    def _now(self) -> float:
        return perf_counter() - self._start

    def _work(self, worker: int) -> None:
        places = self._buffers.host + self._workers
        while True:
            free = self._now()
            with self._changed:
                cause = self._wait(lambda: self._host_full(places))
                if self._begun == len(self._on_cpu):
                    return
                batch = self._on_cpu[self._begun]
                self._begun += 1
            operation = Operation(Phase.PREPARE, CPU, batch)
            waits = partial(_waits, Resource.CPU, free, cause)
            result = self._run(operation, batch, waits, worker)
            with self._changed:
                self._host[batch] = result
                self._changed.notify_all()

    def _host_full(self, places: int) -> str:
        done = self._begun == len(self._on_cpu)
        return "" if done or self._begun - self._moves_ended < places else HOST_FULL

    def _link(self) -> None:
        turn = 0
        for operation in self._schedule.operations:
            if operation.phase == Phase.TRAIN:
                continue
            if operation.phase == Phase.MOVE:
                with self._changed:
                    cause = self._wait(partial(self._move_blocked, turn, operation.batch))
                    payload = self._host.pop(operation.batch)
                    self._moves_begun += 1
                    waits = partial(_waits, Resource.LINK, self._link_free, cause)
                moved = self._run(operation, payload, waits)
                with self._changed:
                    self._ready[operation.batch] = moved
                    self._moves_ended += 1
                    self._pass_link_on()
            turn += 1

    def _move_blocked(self, turn: int, batch: int) -> str:
        if self._link_turn != turn:
            return LINK_BUSY
        if batch not in self._host:
            return NO_HOST_BATCH
        full = self._moves_begun - self._cpu_trained >= self._buffers.moved
        return MOVED_FULL if full else ""

    def _accelerate(self, results: list[object], count: Count) -> None:
        of_cpu = frozenset(self._on_cpu)
        turn = 0
        free = 0.0
        for operation in self._schedule.operations:
            if operation.phase == Phase.PREPARE:
                self._prepare(operation, turn, free)
            elif operation.phase == Phase.TRAIN:
                results.append(self._train(operation, operation.batch in of_cpu, free))
                count(len(results), "")
            turn += operation.phase != Phase.TRAIN
            if operation.phase != Phase.MOVE:
                free = self._now()

    def _prepare(self, operation: Operation, turn: int, free: float) -> None:
        with self._changed:
            self._wait(lambda: "" if self._link_turn == turn else LINK_BUSY)
            link_free = self._link_free
        waits = partial(waits_of_both, link=link_free, accelerator=free)
        result = self._run(operation, operation.batch, waits)
        with self._changed:
            self._ready[operation.batch] = result
            self._pass_link_on()

    def _pass_link_on(self) -> None:
        """Lets the link's next operation begin; the condition is held."""
        self._link_turn += 1
        self._link_free = self._now()
        self._changed.notify_all()

    def _train(self, operation: Operation, of_cpu: bool, free: float) -> object:
        batch = operation.batch
        with self._changed:
            cause = self._wait(lambda: "" if batch in self._ready else NO_BATCH)
            payload = self._ready.pop(batch)
        if self._checksum is not None and self._checksum(payload) != self._sums.pop(batch):
            raise BatchChanged(
                f"batch {batch} changed between its preparation and its step: an operator "
                "returns memory that another batch is written to"
            )
        waits = partial(_waits, Resource.ACCELERATOR, free, cause)
        result = self._run(operation, payload, waits)
        with self._changed:
            self._cpu_trained += of_cpu
            self._changed.notify_all()
        return result


def _waits(lane: Resource, free: float, cause: str, start: float) -> tuple[Wait, ...]:
    """Nothing where nothing blocked: what passes between two operators is no wait for any."""
    return (Wait(lane, start - free, cause),) if cause else ()
