"""Seconds of a step as they could be on a machine with many cores, and searches to compare with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

from gnnc.frontend.argo.configurations import Configuration

CORES = 112
Surface = Callable[[Configuration], float]


def surface(seed: int) -> Surface:
    """Sampling that overlaps training; training is in part serial, and bound by memory that all
    processes share; a smaller batch shares fewer neighbours, and more processes wait longer for
    each other."""
    draw = Random(seed).uniform
    sampling, training = draw(0.3, 3), draw(0.5, 4)
    sampling_grows, serial = draw(0.6, 0.95), draw(0.02, 0.2)
    lanes, more, wait = draw(16, 80), draw(0.03, 0.2), draw(0.002, 0.02)

    def seconds(x: Configuration) -> float:
        work = x.processes ** (more - 1)
        sample = sampling * work / x.samplers**sampling_grows
        busy = max(1.0, x.processes * x.trainers / lanes)
        train = training * work * (serial + (1 - serial) * busy / x.trainers)
        return (max(sample, train) ** 4 + min(sample, train) ** 4) ** 0.25 + wait * math.log2(
            2 * x.processes
        )

    return seconds


def at_random(seconds: Surface, choices: Sequence[Configuration], trials: int, seed: int) -> float:
    """The least of so many drawn at random."""
    return min(seconds(x) for x in Random(seed).sample(choices, trials))


def annealed(seconds: Surface, choices: Sequence[Configuration], trials: int, seed: int) -> float:
    """The least that simulated annealing finds: to one of the near ones, by a factor of at most 2
    in each number, always if better, else as likely as the temperature says."""
    random, there = Random(seed), set(choices)
    at = random.choice(choices)
    now = best = seconds(at)
    for k in range(1, trials):
        while True:
            near = Configuration(*(round(v * 2 ** random.uniform(-1, 1)) for v in at))
            if near in there and near != at:
                break
        found = seconds(near)
        heat = 0.5 * (1 - k / trials)
        if found < now or random.random() < math.exp(-math.log(found / now) / heat):
            at, now = near, found
        best = min(best, now)
    return best
