from time import sleep

import pytest

from gnnc.frontend.morph.plan import Buffers, Split, Times
from gnnc.frontend.morph.profiler import Profiler
from gnnc.frontend.morph.registry import (
    ACCELERATOR,
    ACCELERATOR_AND_LINK,
    CPU,
    LINK,
    Phase,
    Registry,
)

from .sleeping import Sleeping


def test_operators_are_found_by_phase_and_resources():
    registry = Registry()
    registry.register("prepare", CPU, lambda index: index)
    assert registry.get(Phase.PREPARE, CPU)(7) == 7
    registry.register("move", LINK, lambda batch: -batch)
    assert registry.get("move", frozenset({"link"}))(7) == -7


def test_wrong_pairs_are_refused_by_name():
    registry = Registry()
    registry.register("train", ACCELERATOR, print)
    with pytest.raises(ValueError, match="train on accelerator is registered already"):
        registry.register("train", ACCELERATOR, print)
    with pytest.raises(ValueError, match="no schedule runs move on cpu"):
        registry.register("move", CPU, print)
    with pytest.raises(ValueError, match="fetch"):
        registry.register("fetch", CPU, print)
    with pytest.raises(KeyError, match="prepare on cpu"):
        registry.get("prepare", CPU)


def test_medians_of_sleeping_operators():
    slept = Sleeping(cpu=0.02, move=0.01, accelerator=0.015, train=0.005)
    times = Profiler(slept.registry, workers=4, warm_up=1, trials=3).measure([5, 6])
    # A sleep is never shorter than asked, and longer only by what the machine is busy.
    assert 0.02 <= times.cpu < 0.03
    assert 0.01 <= times.move < 0.02
    assert 0.015 <= times.accelerator < 0.025
    assert 0.005 <= times.train < 0.015
    assert times.cpu_interval == times.cpu / 4


def test_warm_up_is_not_counted():
    calls: list[object] = []

    def train(batch: object) -> None:
        calls.append(batch)
        sleep(0.05 if len(calls) <= 3 else 0)

    registry = Registry()
    registry.register("prepare", CPU, lambda index: index)
    registry.register("move", LINK, lambda batch: batch)
    registry.register("prepare", ACCELERATOR_AND_LINK, lambda index: index)
    registry.register("train", ACCELERATOR, train)
    assert Profiler(registry, warm_up=3, trials=3).measure([0]).train < 0.04
    assert len(calls) == 6


def test_wrong_arguments_are_named():
    slept = Sleeping(0, 0, 0, 0)
    for name, value in {"workers": 0, "warm_up": -1, "trials": 0}.items():
        with pytest.raises(ValueError, match=name):
            Profiler(slept.registry, **{name: value})
    with pytest.raises(ValueError, match="batches"):
        Profiler(slept.registry).measure([])
    with pytest.raises(ValueError, match="train"):
        Times(cpu=1, move=1, accelerator=1, train=-1)
    with pytest.raises(ValueError, match="move"):
        Times(cpu=1, move=float("nan"), accelerator=1, train=1)
    with pytest.raises(ValueError, match="moved"):
        Buffers(moved=0)
    with pytest.raises(ValueError, match="split"):
        Split(0, 0)
