"""Plays a schedule in virtual time, under the rules by which the executor runs it.

The rules: a lane runs its operations in the schedule's order, one at a time (the CPU one on each
worker). An accelerator's preparation keeps accelerator and link busy. A buffer's place is taken
when an operation that fills it begins, and is free again when the one that empties it ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .plan import Buffers, Times
from .registry import ACCELERATOR, ACCELERATOR_AND_LINK, CPU, LINK, Phase, Resource
from .trace import Event, Trace, Wait

HOST_FULL = "host buffer full"
MOVED_FULL = "buffer of moved batches full"
NO_HOST_BATCH = "no batch from the CPU"
NO_BATCH = "no batch ready to train"
LINK_BUSY = "link busy"
ACCELERATOR_BUSY = "accelerator busy"


@dataclass(frozen=True)
class Operation:
    """What accelerator or link do next: `batch` is the step at which it is trained."""

    phase: Phase
    resources: frozenset[Resource]
    batch: int


@dataclass(frozen=True)
class Schedule:
    """The operations of accelerator and link in one order, which both lanes follow.

    The CPU prepares the batches of the moves in the order of the moves. Batches are trained
    0, 1, 2, ... whoever prepares them, so that all schedules of an epoch train alike.
    """

    operations: tuple[Operation, ...]
    buffers: Buffers

    @property
    def batches(self) -> int:
        return sum(o.phase == Phase.TRAIN for o in self.operations)

    @property
    def on_cpu(self) -> tuple[int, ...]:
        """The batches that the CPU prepares, in its order."""
        return tuple(o.batch for o in self.operations if o.phase == Phase.MOVE)

    @property
    def on_accelerator(self) -> tuple[int, ...]:
        """The batches that the accelerator prepares, in its order."""
        return tuple(o.batch for o in self.operations if o.phase == Phase.PREPARE)


class Clock:
    """When each operation can start, while operations are appended one by one.

    Batches of a route are counted 0, 1, 2, ... in the order in which they are prepared; they are
    trained in that order too.
    """

    def __init__(self, times: Times, buffers: Buffers) -> None:
        self._times = times
        self._buffers = buffers
        self.accelerator = 0.0
        self.link = 0.0
        self.cpu_ends: list[float] = []
        self.move_ends: list[float] = []
        self.preparation_ends: list[float] = []
        self.cpu_trained: list[float] = []
        self.accelerator_trained = 0

    def cpu_start(self, batch: int) -> tuple[float, float]:
        """When a worker is free for the CPU's next batch, and when it starts on it."""
        workers = self._times.workers
        free = self.cpu_ends[batch - workers] if batch >= workers else 0.0
        places = self._buffers.host + workers
        return free, max(free, self.move_ends[batch - places]) if batch >= places else free

    def host_ready(self) -> float:
        """When the batch that moves next lies in host memory."""
        batch = len(self.move_ends)
        if batch == len(self.cpu_ends):
            self.cpu_ends.append(self.cpu_start(batch)[1] + self._times.cpu)
        return self.cpu_ends[batch]

    def can_move(self) -> bool:
        return len(self.move_ends) - len(self.cpu_trained) < self._buffers.moved

    def can_prepare(self) -> bool:
        waiting = len(self.preparation_ends) - self.accelerator_trained
        return waiting < self._buffers.prepared

    def move_start(self) -> float:
        batch = len(self.move_ends) - self._buffers.moved
        place = self.cpu_trained[batch] if batch >= 0 else 0.0
        return max(self.link, self.host_ready(), place)

    def preparation_start(self) -> float:
        return max(self.link, self.accelerator)

    def cpu_train_start(self) -> float:
        return max(self.accelerator, self.move_ends[len(self.cpu_trained)])

    def move(self) -> None:
        self.link = self.move_start() + self._times.move
        self.move_ends.append(self.link)

    def prepare(self) -> None:
        self.link = self.accelerator = self.preparation_start() + self._times.accelerator
        self.preparation_ends.append(self.link)

    def train_of_cpu(self) -> None:
        self.accelerator = self.cpu_train_start() + self._times.train
        self.cpu_trained.append(self.accelerator)

    def train_of_accelerator(self) -> None:
        self.accelerator += self._times.train
        self.accelerator_trained += 1


def simulate(schedule: Schedule, times: Times) -> Trace:
    """The trace of the schedule if every operator takes its time of `times`.

    Raises:
        ValueError: the schedule cannot run: a batch is trained that is not there, or a buffer
            never has a place.
    """
    clock = Clock(times, schedule.buffers)
    events: list[Event] = []
    of_cpu = frozenset(schedule.on_cpu)
    for operation in schedule.operations:
        _check(operation, clock, operation.batch in of_cpu)
        events.extend(_played(operation, clock, times, operation.batch in of_cpu))
    return Trace(tuple(events), clock.accelerator, times.workers)


def _check(operation: Operation, clock: Clock, of_cpu: bool) -> None:
    phase, batch = operation.phase, operation.batch
    if phase == Phase.MOVE and not clock.can_move():
        raise ValueError(f"schedule: no place for batch {batch} among the moved ones")
    if phase == Phase.PREPARE and not clock.can_prepare():
        raise ValueError(f"schedule: no place for batch {batch} among the prepared ones")
    there = len(clock.move_ends) - len(clock.cpu_trained)
    if not of_cpu:
        there = len(clock.preparation_ends) - clock.accelerator_trained
    if phase == Phase.TRAIN and there < 1:
        raise ValueError(f"schedule: batch {batch} is trained before it is prepared")


def _played(operation: Operation, clock: Clock, times: Times, of_cpu: bool) -> Sequence[Event]:
    batch = operation.batch
    link, accelerator = clock.link, clock.accelerator
    if operation.phase == Phase.MOVE:
        position = len(clock.move_ends)
        free, begin = clock.cpu_start(position)
        ready = clock.host_ready()
        start = clock.move_start()
        clock.move()
        cause = NO_HOST_BATCH if start == ready else MOVED_FULL
        worker = position % times.workers
        on_cpu = Wait(Resource.CPU, begin - free, HOST_FULL)
        on_link = Wait(Resource.LINK, start - link, cause)
        return (
            Event(Phase.PREPARE, CPU, batch, begin, ready, (on_cpu,), worker),
            Event(Phase.MOVE, LINK, batch, start, clock.link, (on_link,)),
        )
    if operation.phase == Phase.PREPARE:
        start = clock.preparation_start()
        clock.prepare()
        waits = waits_of_both(start, link, accelerator)
        return (Event(Phase.PREPARE, ACCELERATOR_AND_LINK, batch, start, clock.link, waits),)
    start = clock.cpu_train_start() if of_cpu else accelerator
    (clock.train_of_cpu if of_cpu else clock.train_of_accelerator)()
    wait = Wait(Resource.ACCELERATOR, start - accelerator, NO_BATCH)
    return (Event(Phase.TRAIN, ACCELERATOR, batch, start, clock.accelerator, (wait,)),)


def waits_of_both(start: float, link: float, accelerator: float) -> tuple[Wait, Wait]:
    """What the lanes wait before the accelerator prepares, from when each was free."""
    return (
        Wait(Resource.LINK, start - link, ACCELERATOR_BUSY),
        Wait(Resource.ACCELERATOR, start - accelerator, LINK_BUSY),
    )
