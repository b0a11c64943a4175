"""Where a Gaussian process looks next."""

from __future__ import annotations

import numpy as np

from gnnc.frontend.tools.gaussian_process import GaussianProcess

LINE = np.linspace(0.0, 6.0, 61)[:, None]


def test_the_least_of_a_valley_is_found_with_few() -> None:
    process, least = GaussianProcess(LINE, 1e-4), 4.3
    done = [0, 60]
    seconds = [float(np.exp((LINE[p, 0] - least) ** 2)) for p in done]
    for _ in range(10):
        place = process.next(done, seconds)
        assert place is not None and place not in done
        done.append(place)
        seconds.append(float(np.exp((LINE[place, 0] - least) ** 2)))
    assert abs(LINE[done[int(np.argmin(seconds))], 0] - least) < 0.15


def test_all_are_tried_in_the_end_and_once() -> None:
    process, done = GaussianProcess(LINE[:7], 1e-4), list[int]()
    while (place := process.next(done, [1.0] * len(done))) is not None:
        done.append(place)
    assert sorted(done) == list(range(7))


def test_what_has_no_time_is_not_tried_again() -> None:
    process = GaussianProcess(LINE[:3], 1e-4)
    assert process.next([0], [float("inf")]) == 1
    assert process.next([0, 1], [float("inf"), 2.0]) == 2
    assert process.next([0, 1, 2], [float("inf")] * 3) is None


def test_a_second_of_nothing_has_a_logarithm() -> None:
    assert GaussianProcess(LINE[:3], 1e-4).next([0, 1], [0.0, 1.0]) == 2
