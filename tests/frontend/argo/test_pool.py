"""Processes that run one training after another: the same numbers, shared memory, cores, failures.

All tests have the same two processes, but where one is killed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gnnc.frontend.argo.configurations import Configuration
from gnnc.frontend.argo.cores import machine
from gnnc.frontend.argo.pool import Pool, Work
from gnnc.frontend.argo.runtime import WorkerFailed
from gnnc.frontend.argo.worker import Lengths
from gnnc.tests.frontend.argo import trainings

from .left import alive, shared_memory

ONE, TWO = Configuration(1, 0, 2), Configuration(2, 0, 1)
pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="two processes need two cores"
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(machine()) as made:
        yield made


def ran(pool: Pool, train: Any, *args: Any, on: Configuration, epochs: int = 1) -> Any:
    return pool.run(Work(train, args, {}), on, Lengths(epochs))[0].value


def test_gradients_of_one_and_two_processes_are_equal(pool: Pool) -> None:
    args = (*trainings.graph(), 5)
    one, two = (ran(pool, trainings.gradients, *args, on=x, epochs=2) for x in (ONE, TWO))
    assert len(one["grads"]) == len(two["grads"]) == 5  # batches of 16, 16, 8, 16, 16
    for a, b in zip(one["grads"], two["grads"], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(one["weight"], two["weight"], rtol=1e-12, atol=1e-14)
    assert not shared_memory([os.getpid()])


def test_whole_steps_of_one_and_two_processes_are_equal(pool: Pool) -> None:
    from gnnc.loader import ShaDowKHopSampler
    from gnnc.tests.frontend.loader.graphs import plain

    data: Any = plain()
    data.x, data.y = torch.rand(len(data.x), 5), torch.arange(len(data.x)) % 3
    sizes = {"batch_size": 16, "shuffle": True, "seed": 0}
    loader = ShaDowKHopSampler(data, 2, 3, node_idx=torch.arange(50), **sizes)
    one, two = (ran(pool, trainings.stepped, loader, on=x) for x in (ONE, TWO))
    assert len(one[0]) == 4 and one[2] == two[2] == []  # 16, 16, 16 and 2 seeds
    np.testing.assert_allclose(one[0], two[0], rtol=1e-4)
    torch.testing.assert_close(one[1], two[1], rtol=1e-3, atol=1e-5)


def test_all_start_with_the_parameters_of_the_first(pool: Pool) -> None:
    assert ran(pool, trainings.broadcast, on=TWO) == pytest.approx(1.0)


def test_tensors_and_arrays_are_shared_and_models_are_not(pool: Pool) -> None:
    x, array, few, model = torch.zeros(2), np.zeros(2**14), np.zeros(2), torch.nn.Linear(2, 2)
    x.share_memory_()
    weight = model.weight.detach().clone()
    assert ran(pool, trainings.share, x, array, few, model, on=TWO)
    assert x.tolist() == [1.0, 2.0]
    assert torch.equal(model.weight.detach(), weight)
    assert not array.any() and not few.any()  # an array is copied, once
    mine = torch.zeros(2)  # and so is a tensor that was not shared before
    assert ran(pool, trainings.share, mine, array, few, model, on=TWO)
    assert not mine.any()


def test_all_threads_are_bound_to_other_cores_by_each_training(pool: Pool) -> None:
    mask, threads = os.sched_getaffinity(0), os.environ.get("OMP_NUM_THREADS")
    both = tuple(sorted(machine().cores[:2]))
    for on in (ONE, Configuration(1, 1, 1), ONE):
        found, count, said, samples = ran(pool, trainings.cores, on=on)
        assert (count, said) == (on.trainers, str(on.trainers))
        (trains,) = found
        if on.samplers:
            assert len(trains) == len(samples) == 1
            assert trains != tuple(samples)
        else:
            assert trains == tuple(samples) == both
    assert os.sched_getaffinity(0) == mask
    assert os.environ.get("OMP_NUM_THREADS") == threads


def test_processes_are_used_again_and_random_numbers_begin_anew(pool: Pool) -> None:
    first, again = (ran(pool, trainings.drawn, on=x) for x in (ONE, TWO))
    assert first == again


def test_what_processes_tell_is_heard(pool: Pool) -> None:
    heard: list[Any] = []
    pool.run(Work(trainings.tells, (), {}), TWO, Lengths(1), heard.append)
    assert sorted(heard) == [(0, "here"), (1, "here")]


def test_more_cores_than_there_are_is_refused(pool: Pool) -> None:
    with pytest.raises(ValueError, match="configuration"):
        ran(pool, trainings.broadcast, on=Configuration(999, 1, 1))


FAILURES = [
    ("killed", "process 1 of 2 was killed by signal 9"),
    ("raised", "process 1 of 2 failed(.|\n)*ZeroDivisionError: on purpose"),
    ("exit", "process 1 of 2 ended with status 3"),
]


@pytest.mark.parametrize(
    ("how", "said"),
    [FAILURES[0], *(pytest.param(*f, marks=pytest.mark.long) for f in FAILURES[1:])],
)
def test_one_that_fails_ends_all(pool: Pool, tmp_path: Path, how: str, said: str) -> None:
    with pytest.raises(WorkerFailed, match=said):
        ran(pool, trainings.fail, how, str(tmp_path), on=TWO)
    pids = [int(f.name.split("-")[1]) for f in tmp_path.iterdir()]
    assert len(pids) == 2 and not alive(pids) and len(pool) == 0
    assert not shared_memory([os.getpid(), *pids])


@pytest.mark.long
def test_one_that_is_killed_between_trainings_is_missed_by_the_next(pool: Pool) -> None:
    pid, _ = ran(pool, trainings.drawn, on=TWO)
    os.kill(pid, 9)
    with pytest.raises(WorkerFailed, match="process 0 of . was killed by signal 9"):
        ran(pool, trainings.drawn, on=TWO)
    assert len(pool) == 0


@pytest.mark.long
def test_processes_too_many_end(pool: Pool) -> None:
    pid, _ = ran(pool, trainings.drawn, on=TWO)
    pool.shrink(0)
    assert len(pool) == 0 and not alive([pid])
