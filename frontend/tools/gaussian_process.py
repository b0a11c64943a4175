"""Which of finitely many places to measure next, where a measurement is dear.

The logarithm of what is measured is a Gaussian process over the places (Matern 3/2, Rasmussen and
Williams, 2006, chapter 4), and the next one is that which should improve most on the best (Jones,
Schonlau and Welch, J. Global Optimization 1998).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST = 1e-9
"""Seconds: what takes none has a logarithm as well."""
LEAST_SPREAD = 1e-3
"""Of the logarithms: places that all take as long are no reason to divide by 0."""


class GaussianProcess:
    """Logarithms of seconds over places.

    Args:
        places: (places, coordinates), float64: a distance of 1 is one over which two say little
            about each other.
        noise: The variance of a measurement, of that of all.
    """

    def __init__(self, places: Floats, noise: float) -> None:
        self._places = places
        self._noise = noise

    def next(self, done: Sequence[int], seconds: Sequence[float]) -> int | None:
        """The place, of those not in `done`, that should improve most on the best of `done`, whose
        `seconds` are in the same order; where nothing is done the first. None where none is left.
        A place that has no time (it is infinite) counts as done, and says nothing of others.
        """
        left = np.setdiff1d(np.arange(len(self._places)), np.array(done, np.int64))
        fit = [(p, s) for p, s in zip(done, seconds, strict=True) if s < float("inf")]
        if not len(left) or not fit:
            return int(left[0]) if len(left) else None
        found = np.log([max(s, LEAST) for _, s in fit])
        known_at = self._places[[p for p, _ in fit]]
        middle, spread = found.mean(), max(float(found.std()), LEAST_SPREAD)
        known = _alike(known_at, known_at) + self._noise * np.eye(len(fit))
        between = _alike(known_at, self._places[left])
        weights = np.linalg.solve(known, between)
        mean = middle + weights.T @ (found - middle)
        variance = np.maximum(1 - (between * weights).sum(0), 1e-12)
        gain = _expected_improvement(found.min() - mean, spread * np.sqrt(variance))
        return int(left[gain.argmax()])


def _alike(some: Floats, others: Floats) -> Floats:
    """How much each of some places says about each of others."""
    apart = np.sqrt(3 * ((some[:, None] - others[None]) ** 2).sum(-1))
    return (1 + apart) * np.exp(-apart)


def _expected_improvement(above: Floats, deviation: Floats) -> Floats:
    """Of normal variables whose means are so far below the best."""
    u = above / deviation
    below = np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in u.tolist()])
    return above * below + deviation * np.exp(-u * u / 2) / np.sqrt(2 * np.pi)
