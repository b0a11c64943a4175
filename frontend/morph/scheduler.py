"""The dual-buffer schedule: what accelerator and link do next, batch by batch.

At each point the operation that can start first is taken. Where several can, a rule's order
decides, and the best of several rules is kept, as the simulator plays them:
fill (the accelerator prepares until its buffer is full), drain (what the CPU prepared is moved
and trained first) and their mixtures. With `prepared` places used in part, a rule alternates
between preparing and training, which leaves the link free for moves during the steps. One order
needs no rule, the accelerator's batches before those of the CPU: it is what bounds the makespan.
"""

from collections.abc import Sequence
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
        return self._shortest([split], self._rules(split))

    def best(self, batches: int) -> Schedule:
        """The shortest over the splits near the LP's, all-CPU and all-accelerator included.

        Where C* is the optimum over all splits and orders, it takes at most 2 C* if two batches or
        more may lie moved, and at most (1 + max(1, t_g / t_d)) C* in any case. docs/morph.md has
        the proof, and Theorem 2 of the MorphGL paper, which both are below.

        Raises ValueError where there is no batch.
        """
        if batches < 1:
            raise ValueError(f"batches: at least one is needed, not {batches}")
        splits = [Split(count, batches - count) for count in range(batches + 1)]
        least = min(splits, key=self._promise)
        centre = initial(self.times, batches).cpu
        width = max(_NEAR, self.times.workers)
        near = splits[max(0, centre - width) : centre + width + 1]
        tried = sorted({splits[0], least, *near, splits[-1]}, key=self._promise)
        shared = [split for split in tried if split.cpu and split.accelerator]
        return self._shortest(tried, self._promising(shared[0]) if shared else [])

    def _promise(self, split: Split) -> tuple[float, int]:
        return predicted(self.times, split), split.cpu

    def _shortest(self, splits: Sequence[Split], rules: Sequence[Rule]) -> Schedule:
        """The shortest over splits that come in the order of their bounds."""
        seconds, shortest = float("inf"), list[int]()
        for split in splits:
            if predicted(self.times, split) >= seconds:
                break  # no schedule of the splits that follow can be shorter
            shared = split.cpu and split.accelerator
            orders = [self._taken(split, rule) for rule in rules] if shared else []
            # Last, as it wins no tie: where times vary, lanes that alternate wait less.
            orders.append(_in_turn(split, self.buffers))
            for taken in orders:
                found = self._seconds(taken)
                if found < seconds:
                    seconds, shortest = found, taken
        return _numbered(shortest, self.buffers)

    def _rules(self, split: Split) -> list[Rule]:
        places = sorted({1, min(self.buffers.prepared, split.accelerator)})
        return [(order, used) for used in places for order in permutations(range(4))]

    def _promising(self, split: Split) -> list[Rule]:
        """The best rules of one split, which the neighbouring splits then try."""
        rules = self._rules(split)
        rules.sort(key=lambda rule: self._seconds(self._taken(split, rule)))
        return rules[: 6 if split.batches > 32 else None]

    def _taken(self, split: Split, rule: Rule) -> list[int]:
        """What the rule takes, one operation after the other."""
        order, used = rule
        clock = Clock(self.times, self.buffers)
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
            _append(choice, clock)
        return taken

    def _seconds(self, taken: Sequence[int]) -> float:
        clock = Clock(self.times, self.buffers)
        for choice in taken:
            _append(choice, clock)
        return clock.accelerator


def _append(choice: int, clock: Clock) -> None:
    (clock.prepare, clock.move, clock.train_of_cpu, clock.train_of_accelerator)[choice]()


def _in_turn(split: Split, buffers: Buffers) -> list[int]:
    """The accelerator's batches one by one, then those of the CPU, moved as early as there is a
    place."""
    ahead = min(buffers.moved, split.cpu)
    return [
        *[PREPARE, TRAIN_OF_ACCELERATOR] * split.accelerator,
        *[MOVE] * ahead,
        *[TRAIN_OF_CPU, MOVE] * (split.cpu - ahead),
        *[TRAIN_OF_CPU] * ahead,
    ]


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
