"""Finds a fast configuration with few trials, and knows what the trials cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..tools.gaussian_process import GaussianProcess
from .configurations import Configuration

LENGTH = 3.0
"""So many doublings of a number apart configurations say little about each other."""
NOISE = 1e-3
"""The variance of a measurement, of that of all."""
SHARE = 0.05
"""Of the time of all epochs: so much may the trials take."""
MARGIN = 0.03
"""So much faster than the default is no noise, whatever the trials say of their spread."""
DEVIATIONS = 2.0
"""A difference below so many standard deviations of it is noise."""
CONFIRMING = 2
"""So many trials are left for another look at the default and what beats it."""
LOOKS = 3
"""So often both are looked at again, unless it is clear before: a machine that others use is faster
by a tenth in one trial than in the next."""
CLEAR = 0.2
"""What is faster than the default by so much, in two trials, is so."""
FIRST_PROCESSES = (2, 4, 8, 16)
"""Tried after the default, with a quarter of the cores of each process to sample."""


@dataclass(frozen=True)
class Measured:
    """What a trial found."""

    step: float
    """Mean seconds of a step (of the whole batch, whatever the number of processes), above 0;
    infinite where the configuration does not run."""
    error: float = 0.0
    """The standard error of `step`."""
    cost: float = 0.0
    """Seconds of the whole trial: starting processes and warming up included."""

    def __post_init__(self) -> None:
        if not (self.step > 0 and 0 <= self.error < math.inf and 0 <= self.cost < math.inf):
            raise ValueError(f"no measurement: {self}")


@dataclass
class Trials:
    """All trials, in order: the first is the default."""

    measured: dict[Configuration, Measured] = field(default_factory=dict[Configuration, Measured])

    @property
    def default(self) -> Configuration:
        """The first. Raises ValueError where nothing has been tried."""
        if not self.measured:
            raise ValueError("nothing has been tried")
        return next(iter(self.measured))

    @property
    def fastest(self) -> Configuration:
        """The one whose step took least; of equal ones the first."""
        self.default  # noqa: B018
        return min(self.measured, key=lambda x: self.measured[x].step)

    @property
    def best(self) -> Configuration:
        """The fastest, if it beats the default by more than noise; else the default.

        Raises:
            ValueError: Nothing has been tried, or nothing ran.
        """
        default, fastest = self.default, self.fastest
        usual, found = self.measured[default], self.measured[fastest]
        if found.step == math.inf:
            raise ValueError("no configuration ran")
        if usual.step == math.inf:
            return fastest
        noise = max(MARGIN * usual.step, DEVIATIONS * math.hypot(usual.error, found.error))
        return fastest if usual.step - found.step > noise else default

    @property
    def cost(self) -> float:
        """Seconds of all trials."""
        return sum(m.cost for m in self.measured.values())

    def share(self, steps: int) -> float:
        """What the trials cost, of the time that so many steps take with the best."""
        return self.cost / (steps * self.measured[self.best].step)


def tune(
    measure: Callable[[Configuration], Measured],
    choices: Sequence[Configuration],
    default: Configuration,
    trials: int,
    *,
    steps: Callable[[], int | None] = lambda: None,
    share: float = SHARE,
    preparing: Callable[[Configuration], float] = lambda _: 0.0,
) -> Trials:
    """Tries configurations, the default first, with at most so many trials.

    Args:
        measure: Runs a trial.
        choices: What there is to choose from; `default` is among them.
        default: Kept unless another is faster by more than noise.
        trials: At least 1. The last ones are for more looks at the default and what beats it, two
            at least.
        steps: How many steps the training is to have, asked after each trial; None: not known.
            Where known, no trial is begun that would likely let all trials cost more than `share`
            of the training with the best so far; another look at what beats the default may cost
            as much as is within the share of a training with the default. The default is always
            tried.
        share: Of the time of the training; above 0. Enough of it is kept for the last two trials.
        preparing: Seconds that a trial would take longer now than it does once more, as for
            processes that are not there yet.

    Raises:
        ValueError: `trials` is below 1, `share` is not above 0, or `default` is no choice.
    """
    if trials < 1:
        raise ValueError(f"trials: {trials}, and one is needed at least")
    if not share > 0:
        raise ValueError(f"share must be above 0, got {share}")
    if default not in choices:
        raise ValueError(f"default: {default} is not among the choices")
    found, process = Trials(), _Process(choices)
    purse = _Purse(found, measure, steps, share, preparing)
    first, dear = [default, *_first(choices, default)], set[Configuration]()
    while len(found.measured) < max(1, trials - CONFIRMING):
        chosen = first.pop(0) if first else process.next(found, dear)
        if chosen is None:
            break
        if found.measured and not purse.allows(chosen, CONFIRMING, found.fastest):
            dear |= {x for x in choices if preparing(x) >= preparing(chosen)}
            first = [x for x in first if x not in dear]
            continue
        found.measured[chosen] = purse.measure(chosen)
    _confirm(found, purse, trials - len(found.measured))
    return found


class _Purse:
    """Runs trials, and knows what one more would cost."""

    def __init__(
        self,
        found: Trials,
        measure: Callable[[Configuration], Measured],
        steps: Callable[[], int | None],
        share: float,
        preparing: Callable[[Configuration], float],
    ) -> None:
        self._found, self._measure = found, measure
        self._steps, self._share, self._preparing = steps, share, preparing
        self._costs: list[float] = []

    def measure(self, x: Configuration) -> Measured:
        """A trial."""
        prepared = self._preparing(x)
        measured = self._measure(x)
        self._costs.append(max(0.0, measured.cost - prepared))
        return measured

    def allows(self, x: Configuration, more: int, training: Configuration) -> bool:
        """Whether a trial of this, and so many more, cost no more than the share of a training with
        that configuration."""
        steps = self._steps()
        if steps is None:
            return True
        one = sum(self._costs) / len(self._costs)
        cost = self._found.cost + self._preparing(x) + (1 + more) * one
        return cost <= self._share * steps * self._found.measured[training].step


def _confirm(found: Trials, purse: _Purse, left: int) -> None:
    """Measures what beats the default more often, for the least of many trials was lucky, and the
    default with it, where that is within the share of the training that is left: one after the
    other, first this, then that, for a machine is faster at times than at others."""
    trials = {x: [m] for x, m in found.measured.items()}
    while (best := found.best) != found.default and not _settled(found, len(trials[best])):
        pair = (best, found.default), (found.default, best)
        for x, training in pair if len(trials[best]) % 2 else pair[::-1]:
            if found.measured[x].step == math.inf:
                continue
            if left < 1 or not purse.allows(x, 0, training):
                return
            trials[x].append(purse.measure(x))
            found.measured[x] = _mean(trials[x])
            left -= 1


def _settled(found: Trials, trials: int) -> bool:
    """Whether that many trials of what beats the default are enough."""
    usual, best = found.measured[found.default].step, found.measured[found.best].step
    clear = usual == math.inf or usual - best > CLEAR * usual
    return trials > (1 if clear else LOOKS)


def _mean(trials: Sequence[Measured]) -> Measured:
    """Of trials of one configuration, whose differences say more of the noise than any alone
    does."""
    cost, steps = sum(m.cost for m in trials), [m.step for m in trials]
    if math.inf in steps:
        return Measured(math.inf, 0.0, cost)
    within = math.hypot(*(m.error for m in trials)) / len(trials)
    error = max(within, statistics.stdev(steps) / len(trials) ** 0.5)
    return Measured(statistics.mean(steps), error, cost)


def _first(choices: Sequence[Configuration], default: Configuration) -> list[Configuration]:
    """A few with more processes, each with a quarter of its cores to sample."""
    cores, there = default.cores, set(choices)
    found: list[Configuration] = []
    for n in FIRST_PROCESSES:
        each = cores // n
        samplers = max(default.samplers, each // 4)
        if (x := Configuration(n, samplers, each - samplers)) in there and x != default:
            found.append(x)
    return found


class _Process:
    """Logarithms of seconds as a Gaussian process over configurations."""

    def __init__(self, choices: Sequence[Configuration]) -> None:
        self._choices = choices
        self._place = {x: i for i, x in enumerate(choices)}
        at = np.log2([(x.processes, 1 + x.samplers, x.trainers) for x in choices]) / LENGTH
        self._process = GaussianProcess(at, NOISE)

    def next(self, found: Trials, dear: set[Configuration]) -> Configuration | None:
        """The one that should improve most on the best, of those that are not too dear; None where
        all have been tried."""
        seconds = {self._place[x]: math.inf for x in dear}
        seconds |= {self._place[x]: m.step for x, m in found.measured.items()}
        place = self._process.next(list(seconds), list(seconds.values()))
        return None if place is None else self._choices[place]
