"""The tuner finds what is fast, keeps the default where nothing beats it, and its price."""

from __future__ import annotations

import math
import statistics
from random import Random

import numpy as np
import pytest

from gnnc.frontend.argo.configurations import Configuration, configurations, default
from gnnc.frontend.argo.tuner import Measured, Trials, tune

from .surfaces import CORES, annealed, at_random, surface

TRIALS = 36


def regrets(seeds: int) -> dict[str, list[float]]:
    """Of the tuner and of two other searches, for every seed; times have noise of 3 %."""
    choices = configurations(CORES)
    found: dict[str, list[float]] = {"tuned": [], "random": [], "annealed": []}
    for seed in range(seeds):
        seconds, noise = surface(seed), Random(seed)
        least = min(seconds(x) for x in choices)

        measured: list[Configuration] = []

        def measure(x: Configuration) -> Measured:
            measured.append(x)
            return Measured(seconds(x) * math.exp(noise.gauss(0, 0.03)), 0.03 * seconds(x) / 5)

        tuned = seconds(tune(measure, choices, default(CORES), TRIALS).best)
        assert len(measured) <= TRIALS
        found["tuned"].append(tuned / least - 1)
        found["random"].append(at_random(seconds, choices, TRIALS, seed) / least - 1)
        found["annealed"].append(annealed(seconds, choices, TRIALS, seed) / least - 1)
    return found


@pytest.mark.parametrize(
    ("seeds", "most"), [(3, 0.1), pytest.param(20, 0.05, marks=pytest.mark.long)]
)
def test_regret_is_small_and_less_than_that_of_others(seeds: int, most: float) -> None:
    """The others are told exact times, and are still worse."""
    found = {name: statistics.median(values) for name, values in regrets(seeds).items()}
    assert found["tuned"] <= most
    assert found["tuned"] < found["random"]
    assert found["tuned"] < found["annealed"]


def test_every_choice_of_two_cores_is_tried_and_the_default_kept_within_noise() -> None:
    choices = configurations(2, least_samplers=0)
    usual = default(2, least_samplers=0)
    for seed in range(50):
        draw = Random(seed)
        true = {x: draw.uniform(0.98, 1.3) for x in choices}
        true[usual] = 1.0
        found = tune(
            lambda x: Measured(true[x] * draw.uniform(0.995, 1.005), 0.002), choices, usual, 20
        )
        assert set(found.measured) == set(choices)
        assert found.default == usual
        assert true[found.best] <= 1.0


def test_a_lucky_trial_is_seen_through() -> None:
    """Once much faster, else as fast as the default."""
    choices, seen = configurations(2, least_samplers=0), set[Configuration]()

    def measure(x: Configuration) -> Measured:
        lucky = x == Configuration(2, 0, 1) and x not in seen
        seen.add(x)
        return Measured(0.5 if lucky else 1.0, 0.001)

    found = tune(measure, choices, default(2, least_samplers=0), 20)
    assert found.fastest == Configuration(2, 0, 1)
    assert found.best == found.default


def on_a_machine_that_drifts(step: dict[Configuration, float], seed: int) -> float:
    """The seconds of what is chosen where all of a trial's steps are faster or slower by a tenth or
    more than those of the trial before."""
    draw = np.random.default_rng(seed)
    state = draw.normal()

    def measure(x: Configuration) -> Measured:
        nonlocal state
        state = 0.7 * state + (1 - 0.7**2) ** 0.5 * draw.normal()
        return Measured(step[x] * math.exp(0.12 * state), 0.02 * step[x])

    return step[tune(measure, list(step), default(2, least_samplers=0), 20).best]


@pytest.mark.parametrize(("other", "most", "least"), [(1.07, 0.0, 0.0), (0.7, 1.0, 0.85)])
def test_what_a_machine_that_drifts_makes_faster_is_not_chosen(
    other: float, most: float, least: float
) -> None:
    first, one, *others = configurations(2, least_samplers=0)[::-1]
    assert first.processes == 2
    step = {first: other, one: 1.15} | dict.fromkeys(others, 1.0)
    chosen = [on_a_machine_that_drifts(step, seed) for seed in range(400)]
    assert least <= sum(x == other for x in chosen) / len(chosen) <= most


def test_what_is_clearly_faster_is_taken() -> None:
    found = Trials({Configuration(1, 0, 2): Measured(1.0), Configuration(2, 0, 1): Measured(0.8)})
    assert found.best == Configuration(2, 0, 1)


def test_a_spread_hides_a_difference() -> None:
    found = Trials(
        {Configuration(1, 0, 2): Measured(1.0, 0.1), Configuration(2, 0, 1): Measured(0.8, 0.1)}
    )
    assert found.fastest == Configuration(2, 0, 1)
    assert found.best == Configuration(1, 0, 2)


def test_trials_end_before_they_cost_more_than_their_share() -> None:
    choices, steps = configurations(16), 200 * 10
    found = tune(lambda x: Measured(0.1, 0.0, 1.5), choices, default(16), 36, steps=lambda: steps)
    assert len(found.measured) == 4  # 6 seconds of 200, and 3 are kept for another look
    assert found.share(steps) <= 0.05


def test_where_processes_are_too_dear_others_are_tried() -> None:
    tried: list[Configuration] = []

    def measure(x: Configuration) -> Measured:
        tried.append(x)
        return Measured(0.1, 0.0, 1.0)

    def preparing(x: Configuration) -> float:
        return 5.0 if x.processes > 2 else 0.0

    tune(
        measure,
        configurations(16),
        default(16),
        36,
        steps=lambda: 1500,  # 150 seconds, and trials have 7.5
        preparing=preparing,
    )
    assert len(tried) == len(set(tried)) == 5
    assert {x.processes for x in tried} == {1, 2}


def test_the_default_is_tried_however_dear() -> None:
    found = tune(
        lambda x: Measured(0.1, 0.0, 100.0), configurations(4), default(4), 9, steps=lambda: 10
    )
    assert list(found.measured) == [default(4)]


def test_what_does_not_run_is_not_chosen() -> None:
    choices = configurations(8)
    found = tune(
        lambda x: Measured(math.inf if x.processes > 1 else 1 / x.trainers),
        choices,
        default(8),
        len(choices),
    )
    assert found.best == default(8)


def test_bad_arguments_are_named() -> None:
    choices = configurations(4)
    with pytest.raises(ValueError, match="trials"):
        tune(lambda x: Measured(1.0), choices, default(4), 0)
    with pytest.raises(ValueError, match="share"):
        tune(lambda x: Measured(1.0), choices, default(4), 1, share=0)
    with pytest.raises(ValueError, match="default"):
        tune(lambda x: Measured(1.0), choices, Configuration(9, 1, 1), 1)
    with pytest.raises(ValueError, match="no measurement"):
        Measured(float("nan"))
