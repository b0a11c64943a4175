"""Training in several processes: the same numbers, shared memory, cores, and failures.

The configurations of two processes need two cores; here they may share one, so that these tests run
on any machine: the machine is a made one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from gnnc.frontend.argo.configurations import Configuration
from gnnc.frontend.argo.runtime import Argo, WorkerFailed, argo
from gnnc.frontend.argo.worker import Shares
from gnnc.tests.frontend.argo import trainings

ONE, TWO = Configuration(1, 0, 2), Configuration(2, 0, 1)
pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="two processes need two cores"
)


def shared_memory(pids: list[int]) -> list[str]:
    """What torch has made in these processes, and left under a name."""
    starts = tuple(f"torch_{pid}_" for pid in pids)
    return [f.name for f in Path("/dev/shm").iterdir() if f.name.startswith(starts)]


def alive(pids: list[int]) -> list[int]:
    return [p for p in pids if Path(f"/proc/{p}").exists()]


def test_gradients_of_one_and_two_processes_are_equal() -> None:
    found: list[Any] = [
        argo(epoch=2).run(trainings.gradients, (*trainings.graph(), 5), configuration=x)
        for x in (ONE, TWO)
    ]
    one, two = found
    assert len(one["grads"]) == len(two["grads"]) == 5  # batches of 16, 16, 8, 16, 16
    for a, b in zip(one["grads"], two["grads"], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(one["weight"], two["weight"], rtol=1e-12, atol=1e-14)
    assert not shared_memory([os.getpid()])


@pytest.mark.long
def test_compiled_models_train_in_processes() -> None:
    x, edges, y = trainings.graph()
    args = (x.float(), edges, y)
    eager = argo().run(trainings.compiled, (*args, False), configuration=ONE)
    found = argo().run(trainings.compiled, (*args, True), configuration=TWO)
    assert len(found) == 2
    torch.testing.assert_close(found, eager, rtol=1e-4, atol=1e-6)


def test_all_start_with_the_parameters_of_the_first() -> None:
    assert argo().run(trainings.broadcast, configuration=TWO) == pytest.approx(1.0)


def test_tensors_are_shared_and_models_are_not() -> None:
    x, model = torch.zeros(2), torch.nn.Linear(2, 2)
    weight = model.weight.detach().clone()
    assert argo().run(trainings.share, (x, model), configuration=TWO)
    assert x.tolist() == [1.0, 2.0]
    assert torch.equal(model.weight.detach(), weight)


def test_cores_and_threads_are_set_before_the_process_begins() -> None:
    mask, threads = os.sched_getaffinity(0), os.environ.get("OMP_NUM_THREADS")
    trains, count, said, samples = argo().run(trainings.cores, configuration=Configuration(1, 1, 1))
    assert (len(trains), count, said, len(samples)) == (1, 1, "1", 1)
    assert trains != samples
    assert os.sched_getaffinity(0) == mask
    assert os.environ.get("OMP_NUM_THREADS") == threads


def test_workers_of_a_loader_have_the_cores_that_sample(tmp_path: Path) -> None:
    rows, process, trains = argo().run(
        trainings.loaded, (str(tmp_path), False), configuration=Configuration(1, 1, 1)
    )
    assert sorted(r[0] for r in rows) == list(range(400))
    assert process not in {r[1] for r in rows}
    assert all(len(r[2]) == 1 and not set(r[2]) & set(trains) for r in rows)


def test_workers_of_a_loader_end_with_their_process(tmp_path: Path) -> None:
    with pytest.raises(WorkerFailed, match="process 0 of 1 was killed by signal 9"):
        argo().run(trainings.loaded, (str(tmp_path), True), configuration=Configuration(1, 1, 1))
    pids = [int(f.name.split("-")[1]) for f in tmp_path.iterdir()]
    deadline = time.monotonic() + 2  # torch's own watch takes 5 seconds
    while pids and alive(pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert pids


@pytest.mark.long
def test_tunes_then_trains_with_the_best(tmp_path: Path) -> None:
    table = tmp_path / "trials.json"
    runtime = Argo(n_search=5, epoch=2, share=1e9, most_processes=2, table=table)
    done = runtime.run(trainings.sleep, ({1: 0.02, 2: 0.001},))
    assert done == 2 * 40
    assert runtime.configuration is not None and runtime.configuration.processes == 2
    assert runtime.trials.default == Configuration(1, 0, runtime.cores)
    assert all(m.cost > 35 * m.step for m in runtime.trials.measured.values())
    again = Argo(n_search=5, epoch=1, table=table)
    assert again.run(trainings.sleep, ({1: 0.0, 2: 0.0},)) == 40
    assert (again.trials, again.configuration) == (runtime.trials, runtime.configuration)


def test_the_default_runs_where_trials_would_cost_too_much() -> None:
    runtime = Argo(n_search=5, epoch=2)
    runtime.run(trainings.sleep, ({1: 0.002, 2: 0.001},))
    assert list(runtime.trials.measured) == [runtime.trials.default] == [runtime.configuration]


def test_a_train_without_timed_steps_is_told_so() -> None:
    with pytest.raises(RuntimeError, match="worker.steps"):
        Argo(n_search=2).run(trainings.no_steps)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("killed", "process 1 of 2 was killed by signal 9"),
        ("raised", "process 1 of 2 failed(.|\n)*ZeroDivisionError: on purpose"),
        ("exit", "process 1 of 2 ended with status 3"),
    ],
)
def test_one_that_fails_ends_all(tmp_path: Path, how: str, said: str) -> None:
    with pytest.raises(WorkerFailed, match=said):
        argo().run(trainings.fail, (how, str(tmp_path)), configuration=TWO)
    pids = [int(f.name.split("-")[1]) for f in tmp_path.iterdir()]
    assert len(pids) == 2 and not alive(pids)
    assert not shared_memory([os.getpid(), *pids])


SCRIPT = """
import sys, torch
from gnnc.frontend.argo.configurations import Configuration
from gnnc.frontend.argo.runtime import argo
from gnnc.tests.frontend.argo import trainings
if __name__ == "__main__":
    argo().run(
        trainings.fail, ("waits", sys.argv[1]), {}, configuration=Configuration(2, 0, 1)
    )
"""


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        *(pytest.param(n, marks=pytest.mark.long) for n in (signal.SIGTERM, signal.SIGKILL)),
    ],
)
def test_nothing_is_left_when_it_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "pids"
    folder.mkdir()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder)], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while len(pids := [int(f.name.split("-")[1]) for f in folder.iterdir()]) < 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "leaked" not in said
    while alive(pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not shared_memory([process.pid, *pids])


def test_shares_of_all_are_the_batches_of_one() -> None:
    whole = Shares(37, 8, 0, 1, seed=5, drop_last=False)
    parts = [Shares(37, 8, r, 3, seed=5, drop_last=False) for r in range(3)]
    epochs: list[list[int]] = []
    for _ in range(2):
        batches = list(whole)
        for batch, *split in zip(batches, *parts, strict=True):
            assert sorted(i for s in split for i in s) == sorted(batch)
            assert max(map(len, split)) - min(map(len, split)) <= 1
        epochs.append([i for b in batches for i in b])
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(37))
    assert epochs[0] != epochs[1]
    assert len(whole) == 5


def test_batches_without_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="drop_last"):
        Shares(17, 8, 0, 2, seed=0, drop_last=False)
    assert len(list(Shares(17, 8, 0, 2, seed=0, drop_last=True))) == 2
    with pytest.raises(ValueError, match="batch_size"):
        Shares(17, 2, 0, 3, seed=0, drop_last=False)


@pytest.mark.parametrize("name", ["n_search", "epoch", "share"])
def test_bad_numbers_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        argo(**{name: 0})
    with pytest.raises(ValueError, match="configuration"):
        argo().run(trainings.broadcast, configuration=Configuration(999, 1, 1))
