"""Searches the best launch with few tries, the same on all ranks.

MGG climbs one number after the other, from the least, and falls back where the last one gets
worse. Here the logarithm of the seconds is a Gaussian process over the logarithms of the three
numbers (Matern 3/2, Rasmussen and Williams, 2006, chapter 4), and the next launch is the one that
should improve most on the best (Jones, Schonlau and Welch, J. Global Optimization 1998).
docs/decisions.md has how both do.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ....runtime.ranks.communicator import Communicator
from .launches import Launch

Floats = NDArray[np.float64]
CHOICES = {"ps": (1, 2, 4, 8, 16, 32), "dist": (1, 2, 4, 8, 16), "wpb": (1, 2, 4, 8, 16)}
"""The values of each number."""
LAUNCHES = 12
FIRST = (Launch(2, 1, 2), Launch(4, 4, 2), Launch(8, 16, 2), Launch(1, 1, 16))
"""What is tried first: few warps and many, with little to do and much."""
LENGTH = 3.0
"""So many doublings of a number apart times say little about each other."""
NOISE = 1e-4
"""The variance of a measurement, of that of all."""
LEAST = 1e-9
"""Seconds: without rows a launch takes none."""
LEAST_SPREAD = 1e-3
"""Of the logarithms: launches that all take as long are no reason to divide by 0."""


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
        apart = np.sqrt(3 * ((at[:, None] - at[None]) ** 2).sum(-1))
        self.alike: Floats = (1 + apart) * np.exp(-apart)

    def next(self, tries: Tries) -> Launch | None:
        """The one that should improve most on the best; None where all have been tried."""
        left = [self.place[x] for x in self.launches if x not in tries.seconds]
        done = [self.place[x] for x in tries.ranked()]
        if not left or not done:
            return self.launches[left[0]] if left else None
        found = np.log([max(tries.seconds[self.launches[i]], LEAST) for i in done])
        middle, spread = found.mean(), max(float(found.std()), LEAST_SPREAD)
        known = self.alike[np.ix_(done, done)] + NOISE * np.eye(len(done))
        between = self.alike[np.ix_(done, left)]
        weights = np.linalg.solve(known, between)
        mean = middle + weights.T @ (found - middle)
        variance = np.maximum(1 - (between * weights).sum(0), 1e-12)
        gain = _expected_improvement(found.min() - mean, spread * np.sqrt(variance))
        return self.launches[left[int(gain.argmax())]]


def _expected_improvement(above: Floats, deviation: Floats) -> Floats:
    """Of normal variables whose means are so far below the best."""
    u, normal = above / deviation, NormalDist()
    below = np.array([normal.cdf(x) for x in u])
    return above * below + deviation * np.exp(-u * u / 2) / np.sqrt(2 * np.pi)


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
