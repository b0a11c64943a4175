"""How many batches the CPU prepares and how many the accelerator does."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scipy.optimize import linprog  # pyright: ignore[reportMissingTypeStubs,reportUnknownVariableType]

from .plan import Split, Times


def line(times: Times, batches: int) -> float:
    """The least time of so many batches that the CPU prepares, with nothing else to do.

    Batch i is ready after ceil(i / workers) rounds at the earliest, then it and those after it
    pass a line of two stations, link and step: max over i of
    ceil(i / W) t_w + t_d + t_m + (p - i) max(t_d, t_m). Within a round this is most for its first
    batch, and linear in the round, so the first round or the last decides.
    """
    slower = max(times.move, times.train)
    rounds = -(-batches // times.workers)
    first = times.cpu + (batches - 1) * slower
    last = rounds * times.cpu + (batches - 1 - (rounds - 1) * times.workers) * slower
    return max(first, last) + times.move + times.train


def predicted(times: Times, split: Split) -> float:
    """A lower bound of the split's time, which a long epoch comes close to.

    With p batches of the CPU and q of the accelerator, both at once:
    max(p t_c, q t_g + max((p + q) t_m, p t_d + t_m)) (the MorphGL paper's equation 6, corrected:
    t_g is the accelerator's whole preparation), each term with what cannot overlap at its ends.
    """
    p, q = split.cpu, split.accelerator
    there = q * times.accelerator
    steps = there + split.batches * times.train
    if not p:
        return steps
    # A link that works all the time still has the last step after it.
    return max(line(times, p), steps, there + p * times.move + times.train)


def initial(times: Times, batches: int) -> Split:
    """The LP's split, rounded to whole batches.

    Minimises T over 0 <= p <= n with T >= p t_c, T >= q t_g + n t_m and T >= q t_g + p t_d + t_m,
    q = n - p. Raises ValueError where there is no batch.
    """
    if batches < 1:
        raise ValueError(f"batches: at least one is needed, not {batches}")
    n, there = batches, times.accelerator
    # Unknowns p and T; the rows say coefficient * p - T <= bound.
    rows = [[times.cpu_interval, -1.0], [-there, -1.0], [times.move - there, -1.0]]
    bounds = [0.0, -n * (there + times.train), -n * there - times.train]
    found: Any = linprog([0.0, 1.0], A_ub=rows, b_ub=bounds, bounds=[(0, n), (0, None)])
    if not found.success:
        raise RuntimeError(f"the split's linear program was not solved: {found.message}")
    low = min(int(found.x[0]), n)
    # Workers that start together end together: a full round of them is a candidate too.
    full = low // times.workers * times.workers
    counts = {0, full, low, min(low + 1, n), n}
    return min((Split(p, n - p) for p in sorted(counts)), key=lambda s: predicted(times, s))


@dataclass(frozen=True)
class Feedback:
    """What a run of a split showed: its seconds, and how long each side kept the other waiting.

    `accelerator_waited`: the accelerator had no batch to train. `cpu_waited`: the CPU's workers
    stood still, with full buffers or done with their part, as a mean over the workers.
    """

    seconds: float
    accelerator_waited: float
    cpu_waited: float


class Partitioner:
    """Initial split from the times, refined by what running it shows."""

    def __init__(self, times: Times) -> None:
        self._times = times

    def initial(self, batches: int) -> Split:
        return initial(self._times, batches)

    def refine(
        self, split: Split, run: Callable[[Split], Feedback], *, rounds: int = 4
    ) -> tuple[Split, list[tuple[Split, Feedback]]]:
        """Moves one batch a round away from the side that blocks; returns the fastest split.

        Ends after `rounds` runs, when one more would take them beyond `rounds` + 1/2 of the
        fastest, when neither side waits as long as one batch takes, or when the direction turns. A
        round is an epoch or a part of it: with the default and what the profiler takes, planning
        is done in less than 5 epochs. Raises ValueError where `rounds` is below one.
        """
        if rounds < 1:
            raise ValueError(f"rounds: at least one is needed, not {rounds}")
        tried: list[tuple[Split, Feedback]] = []
        direction = 0
        while len(tried) < rounds:
            tried.append((split, run(split)))
            turn = self._direction(split, tried[-1][1])
            if not turn or turn == -direction:
                break
            direction = turn
            spent = sum(feedback.seconds for _, feedback in tried)
            fastest = min(feedback.seconds for _, feedback in tried)
            if spent + fastest > (rounds + 0.5) * fastest:
                break
            split = Split(split.cpu + turn, split.accelerator - turn)
        return min(tried, key=lambda each: each[1].seconds)[0], tried

    def _direction(self, split: Split, feedback: Feedback) -> int:
        """1 where the CPU should prepare one more, -1 where one less, 0 where it is even."""
        excess = feedback.cpu_waited - feedback.accelerator_waited
        if excess >= self._times.cpu_interval and split.accelerator and excess > 0:
            return 1
        if -excess >= self._times.accelerator and split.cpu and excess < 0:
            return -1
        return 0
