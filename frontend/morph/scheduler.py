"""The dual-buffer schedule: what accelerator and link do next, batch by batch.

At each point the operation that can start first is taken. Where several can, a rule's order
decides, and the best of several rules is kept, as the simulator plays them:
fill (the accelerator prepares until its buffer is full), drain (what the CPU prepared is moved
and trained first) and their mixtures. With `prepared` places used in part, a rule alternates
between preparing and training, which leaves the link free for moves during the steps.
"""

from collections.abc import Callable
from functools import partial
from itertools import permutations

from .partitioner import initial, predicted
from .plan import Buffers, Split, Times
from .registry import ACCELERATOR, ACCELERATOR_AND_LINK, LINK, Phase
from .simulator import Clock, Operation, Schedule, simulate
from .trace import Trace

PREPARE, MOVE, TRAIN_OF_CPU, TRAIN_OF_ACCELERATOR = range(4)
Rule = tuple[tuple[int, ...], int]
"""The order of preference and the places of the accelerator's own batches that it uses."""

_NEAR = 8
"""So many batches around the LP's split are played, or one for each worker if these are more."""


class Scheduler:
    """Finds schedules for operators of known times.

    Sources: Fill, Block and Flush of the MorphGL paper, as rules of one list schedule, so that
    the schedule may be played for any buffers.
    """

    def __init__(self, times: Times, buffers: Buffers | None = None) -> None:
        self.times = times
        self.buffers = buffers or Buffers()

    def simulate(self, schedule: Schedule) -> Trace:
        return simulate(schedule, self.times)

    def schedule(self, split: Split) -> Schedule:
        """The shortest schedule of the split over all rules."""
        return min(
            ((_built(split, self.times, self.buffers, rule)) for rule in self._rules(split)),
            key=lambda found: found[0],
        )[1]()

    def best(self, batches: int) -> Schedule:
        """The shortest over the splits near the LP's, all-CPU and all-accelerator included.

        Raises ValueError where there is no batch.
        """
        if batches < 1:
            raise ValueError(f"batches: at least one is needed, not {batches}")
        centre = initial(self.times, batches).cpu
        width = max(_NEAR, self.times.workers)
        near = range(max(0, centre - width), min(batches, centre + width) + 1)
        counts = sorted({0, batches, *near})
        splits = [Split(count, batches - count) for count in counts]
        splits.sort(key=partial(predicted, self.times))
        rules = self._promising(splits[0])
        found: tuple[float, Callable[[], Schedule]] | None = None
        for split in splits:
            if found and predicted(self.times, split) >= found[0]:
                break  # no schedule of the splits that follow can be shorter
            for rule in rules if split.cpu and split.accelerator else rules[:1]:
                played = _built(split, self.times, self.buffers, rule)
                if found is None or played[0] < found[0]:
                    found = played
        assert found is not None
        return found[1]()

    def _rules(self, split: Split) -> list[Rule]:
        if not split.cpu or not split.accelerator:
            return [((PREPARE, MOVE, TRAIN_OF_CPU, TRAIN_OF_ACCELERATOR), 1)]
        places = sorted({1, min(self.buffers.prepared, split.accelerator)})
        return [(order, used) for used in places for order in permutations(range(4))]

    def _promising(self, split: Split) -> list[Rule]:
        """The best rules of one split, which the neighbouring splits then try."""
        played = [
            (_built(split, self.times, self.buffers, rule)[0], rule) for rule in self._rules(split)
        ]
        played.sort(key=lambda found: found[0])
        return [rule for _, rule in played[: 6 if split.batches > 32 else None]]


def _built(
    split: Split, times: Times, buffers: Buffers, rule: Rule
) -> tuple[float, Callable[[], Schedule]]:
    """The makespan of the rule's schedule, and the schedule for whom it is the best."""
    order, used = rule
    clock = Clock(times, buffers)
    taken: list[int] = []
    cpu, accelerator = split.cpu, split.accelerator
    for _ in range(2 * split.batches):
        starts = [float("inf")] * 4
        prepared = len(clock.preparation_ends)
        moved = len(clock.move_ends)
        if prepared < accelerator and prepared - clock.accelerator_trained < used:
            starts[PREPARE] = clock.preparation_start()
        if moved < cpu and clock.can_move():
            starts[MOVE] = clock.move_start()
        if moved > len(clock.cpu_trained):
            starts[TRAIN_OF_CPU] = clock.cpu_train_start()
        if prepared > clock.accelerator_trained:
            starts[TRAIN_OF_ACCELERATOR] = clock.accelerator
        choice = min(order, key=starts.__getitem__)
        taken.append(choice)
        (clock.prepare, clock.move, clock.train_of_cpu, clock.train_of_accelerator)[choice]()
    return clock.accelerator, partial(_numbered, taken, buffers)


def _numbered(taken: list[int], buffers: Buffers) -> Schedule:
    """Each batch gets the number of the step that trains it."""
    trained = [t for t in taken if t in (TRAIN_OF_CPU, TRAIN_OF_ACCELERATOR)]
    of_cpu = iter([i for i, t in enumerate(trained) if t == TRAIN_OF_CPU])
    of_accelerator = iter([i for i, t in enumerate(trained) if t == TRAIN_OF_ACCELERATOR])
    steps = iter(range(len(trained)))
    operations: list[Operation] = []
    for choice in taken:
        if choice == MOVE:
            operations.append(Operation(Phase.MOVE, LINK, next(of_cpu)))
        elif choice == PREPARE:
            next_one = next(of_accelerator)
            operations.append(Operation(Phase.PREPARE, ACCELERATOR_AND_LINK, next_one))
        else:
            operations.append(Operation(Phase.TRAIN, ACCELERATOR, next(steps)))
    return Schedule(tuple(operations), buffers)
