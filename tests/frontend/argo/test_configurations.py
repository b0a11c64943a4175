"""How cores can be split: all ways, none twice, none that needs more."""

from __future__ import annotations

import pytest

from gnnc.frontend.argo.configurations import Configuration, configurations, default


def test_as_many_as_the_formula_says() -> None:
    found = configurations(112)
    assert len(found) == 9847 == sum(m * (m - 1) // 2 for n in range(1, 113) for m in [112 // n])
    assert found == sorted(set(found))


@pytest.mark.parametrize("cores", [2, 3, 7, 12])
@pytest.mark.parametrize("least", [0, 1])
def test_all_that_fit_and_no_others(cores: int, least: int) -> None:
    numbers = range(cores + 1)
    every = [
        Configuration(n, s, t)
        for n in numbers[1:]
        for s in numbers[least:]
        for t in numbers[1:]
        if n * (s + t) <= cores
    ]
    assert configurations(cores, least_samplers=least) == every
    assert default(cores, least_samplers=least) in every
    assert default(cores, least_samplers=least).cores == cores


def test_no_more_processes_than_said() -> None:
    assert {x.processes for x in configurations(12, most_processes=3)} == {1, 2, 3}


def test_one_core_samples_where_it_trains() -> None:
    assert configurations(1, least_samplers=0) == [Configuration(1, 0, 1)]
    with pytest.raises(ValueError, match="cores: 1"):
        configurations(1)


@pytest.mark.parametrize("name", ["cores", "least_samplers", "most_processes"])
def test_bad_numbers_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        configurations(**{"cores": 4, name: -1})
