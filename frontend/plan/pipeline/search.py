"""Searches the best launch with few tries, the same on all ranks.

MGG climbs one number after the other, from the least, and falls back where the last one gets
worse. Here the logarithm of the seconds is a Gaussian process over the logarithms of the three
numbers (frontend/tools/gaussian_process.py), and the next launch is the one that should improve
most on the best.
docs/decisions.md has how both do.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ....runtime.ranks.communicator import Communicator
from ...tools.gaussian_process import GaussianProcess
from .launches import Launch

CHOICES = {"ps": (1, 2, 4, 8, 16, 32), "dist": (1, 2, 4, 8, 16), "wpb": (1, 2, 4, 8, 16)}
"""The values of each number."""
LAUNCHES = 12
FIRST = (Launch(2, 1, 2), Launch(4, 4, 2), Launch(8, 16, 2), Launch(1, 1, 16))
"""What is tried first: few warps and many, with little to do and much."""
LENGTH = 3.0
"""So many doublings of a number apart times say little about each other."""
NOISE = 1e-4
"""The variance of a measurement, of that of all."""


@dataclass
class Tries:
    """What has been tried, in order, with the seconds of each; infinite where it does not fit."""

    seconds: dict[Launch, float] = field(default_factory=dict[Launch, float])

    @property
    def best(self) -> Launch:
        """The fastest; of equal ones the first. Raises ValueError where none has been launched."""
        found = self.ranked()
        if not found:
            raise ValueError("no launch fits on the device")
        return found[0]

    def ranked(self) -> list[Launch]:
        """Those that fit, the fastest first."""
        fit = [x for x, s in self.seconds.items() if s < float("inf")]
        return sorted(fit, key=lambda x: self.seconds[x])

    @property
    def launches(self) -> int:
        """How many were launched: one that does not fit is not."""
        return sum(s < float("inf") for s in self.seconds.values())


def search(seconds: Callable[[Launch], float], launches: int = LAUNCHES) -> Tries:
    """Tries launches, at most so many; `seconds` measures one, infinite where it does not fit.

    Raises:
        ValueError: `launches` is below 1, or what is measured is no time.
    """
    if launches < 1:
        raise ValueError(f"launches: {launches}, and one is needed at least")
    tries, process, first = Tries(), _Process(), list(FIRST)
    while tries.launches < launches:
        launch = first.pop(0) if first else process.next(tries)
        if launch is None:
            break
        if not (found := seconds(launch)) >= 0:
            raise ValueError(f"seconds: {found} for {launch}")
        tries.seconds[launch] = found
    return tries


class _Process:
    """Logarithms of seconds as a Gaussian process over launches."""

    def __init__(self) -> None:
        self.launches = every()
        self.place = {x: i for i, x in enumerate(self.launches)}
        at = np.log2([(x.ps, x.dist, x.wpb) for x in self.launches]) / LENGTH
        self.process = GaussianProcess(at, NOISE)

    def next(self, tries: Tries) -> Launch | None:
        """The one that should improve most on the best; None where all have been tried."""
        done = [self.place[x] for x in tries.seconds]
        found = self.process.next(done, list(tries.seconds.values()))
        return None if found is None else self.launches[found]


def every() -> Sequence[Launch]:
    """All launches that there are to choose from."""
    return [
        Launch(ps, dist, wpb)
        for ps in CHOICES["ps"]
        for dist in CHOICES["dist"]
        for wpb in CHOICES["wpb"]
    ]


def search_together(
    ranks: Communicator,
    seconds: Callable[[Launch], float],
    launches: int = LAUNCHES,
    times: int = 3,
) -> Tries:
    """The same on several ranks, each of which measures its own launch so many `times`: what counts
    is the median of the rank that takes longest. Rank 0 says what is tried, and all have its tries
    in the end."""

    def of_all(launch: Launch) -> float:
        mine = np.array([statistics.median(seconds(launch) for _ in range(times))])
        return float(ranks.all_reduce(mine, "max")[0])

    def told(launch: Launch) -> float:
        ranks.broadcast(launch)
        return of_all(launch)

    if ranks.rank == 0:
        tries = search(told, launches)
        ranks.broadcast(None)
        return ranks.broadcast(tries)
    while (launch := ranks.broadcast(None)) is not None:
        of_all(launch)
    return ranks.broadcast(None)
