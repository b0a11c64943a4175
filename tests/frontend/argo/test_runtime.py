"""A training that is tuned, as scripts call it, and what is left when it is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gnnc.frontend.argo import pool, runtime
from gnnc.frontend.argo.configurations import Configuration, default
from gnnc.frontend.argo.cores import Machine, machine, masks
from gnnc.frontend.argo.process import Ended
from gnnc.frontend.argo.runtime import TIMED, WARM, Argo, WorkerFailed, argo
from gnnc.frontend.argo.worker import Lengths, Shares, Worker, stalls, summary
from gnnc.tests.frontend.argo import trainings

from .left import alive, shared_memory

ONE, TWO = Configuration(1, 0, 2), Configuration(2, 0, 1)
two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="two processes need two cores"
)


class Played:
    """A pool whose processes take as long as said, by a clock that it sets itself."""

    start_seconds = 2.5
    compiling, setup, step = 8.0, 0.5, {1: 0.020, 2: 0.010}

    def __init__(self, given: Machine) -> None:
        self.now, self.count, self.ran = 0.0, 0, list[tuple[Configuration, Lengths]]()
        made.append(self)

    def __len__(self) -> int:
        return self.count

    def __enter__(self) -> Played:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def grow(self, count: int) -> None:
        if count > self.count:
            self.now += self.start_seconds
        self.count = max(self.count, count)

    def shrink(self, count: int) -> None:
        self.count = min(self.count, count)

    def run(
        self, work: object, on: Configuration, lengths: Lengths, tell: object = None
    ) -> list[Ended]:
        self.grow(on.processes)
        first = self.setup + (0.0 if self.ran else self.compiling)
        step = self.step[on.processes]
        self.ran.append((on, lengths))
        self.now += first + (lengths.warm + lengths.timed) * step
        seconds = [step] * lengths.timed
        return [Ended(seconds, 40, first, f"trained by {r}") for r in range(on.processes)]


made: list[Played] = []


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Played]]:
    made.clear()
    monkeypatch.setattr(pool, "Pool", Played)
    monkeypatch.setattr(runtime, "machine", lambda: Machine((0, 1), float("inf")))
    monkeypatch.setattr(runtime.time, "monotonic", lambda: made[-1].now)
    yield made


def test_trials_and_training_have_the_same_processes(played: list[Played]) -> None:
    tuned = Argo(epoch=10_000)
    assert tuned.run(trainings.no_steps) == "trained by 0"
    (pool,) = played
    trials, training = pool.ran[:-1], pool.ran[-1]
    assert all(lengths == Lengths(10_000, WARM, TIMED) for _, lengths in trials)
    assert training == (TWO, Lengths(10_000)) and tuned.configuration == TWO
    assert len(pool) == 2
    # the default, three others, and the default and the best once more
    assert [x for x, _ in trials].count(default(2, least_samplers=0)) == 2
    assert [x for x, _ in trials].count(TWO) == 2
    assert len(trials) == 6


def test_costs_are_what_a_training_without_trials_has_not(played: list[Played]) -> None:
    """Not the start of the first processes, nor compiling; but what trials read anew."""
    tuned = Argo(epoch=10_000)
    tuned.run(trainings.no_steps)
    cost = {x: m.cost for x, m in tuned.trials.measured.items()}
    steps = WARM + TIMED
    assert cost[ONE] == pytest.approx(2 * steps * 0.020 + 0.5)
    assert cost[TWO] == pytest.approx(2 * (steps * 0.010 + 0.5))
    assert cost[Configuration(1, 1, 1)] == pytest.approx(steps * 0.020 + 0.5)
    share = tuned.tuning_share
    assert share == pytest.approx(tuned.trials.cost / (40 * 10_000 * 0.010))


@pytest.mark.parametrize(("epochs", "tried"), [(10, 1), (60, 1), (80, 2), (200, 3), (300, 4)])
def test_trials_cost_no_more_than_their_share(
    played: list[Played], epochs: int, tried: int
) -> None:
    tuned = Argo(epoch=epochs)
    tuned.run(trainings.no_steps)
    assert len(tuned.trials.measured) == tried
    untuned = 40 * epochs * 0.020
    assert tuned.trials.cost <= max(0.05 * untuned, (WARM + TIMED) * 0.020)
    looked = [x for x, _ in played[0].ran[:-1]]
    assert looked.count(TWO) == (2 if tried > 1 else 0)  # no winner is taken on one trial


def test_a_training_of_fewer_steps_than_trials_may_take_has_none(played: list[Played]) -> None:
    from gnnc.loader import NeighborLoader
    from gnnc.tests.frontend.loader.graphs import plain

    loader = NeighborLoader(plain(), [3], batch_size=60)  # two batches
    for epochs, tried in ((349, False), (350, True)):
        tuned = Argo(epoch=epochs)
        tuned.run(trainings.no_steps, (loader,))
        assert bool(tuned.trials.measured) == tried
    assert [x for x, _ in played[0].ran] == [ONE] and tuned.configuration is not None


def test_a_step_in_which_something_was_compiled_says_nothing_of_others() -> None:
    even = [0.010] * 27
    assert summary([*even, 0.3, 0.2, 0.1]) == (pytest.approx(0.010), 0.0)
    assert stalls([*even, 0.3, 0.2, 0.1]) == pytest.approx(0.57)
    mean, error = summary([0.009, 0.011] * 15)
    assert mean == pytest.approx(0.010) and error == pytest.approx(0.001 / 24**0.5, rel=0.2)


def test_a_table_is_read_instead_of_tuning(played: list[Played], tmp_path: Path) -> None:
    table = tmp_path / "trials.json"
    tuned, again = Argo(epoch=10_000, table=table), Argo(epoch=1, table=table)
    tuned.run(trainings.no_steps)
    again.run(trainings.no_steps)
    assert played[1].ran == [(TWO, Lengths(1))]
    assert (again.trials, again.configuration) == (tuned.trials, tuned.configuration)


def test_a_train_without_timed_steps_is_told_so(
    played: list[Played], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Played, "run", lambda *_: [Ended([], None, 0.0)])
    with pytest.raises(RuntimeError, match="worker.steps"):
        Argo(n_search=2).run(trainings.no_steps)


@pytest.mark.parametrize("name", ["n_search", "epoch", "share"])
def test_bad_numbers_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        argo(**{name: 0})


def test_more_cores_than_there_are_are_refused_before_anything_starts(
    played: list[Played],
) -> None:
    with pytest.raises(ValueError, match="configuration"):
        argo().run(trainings.broadcast, configuration=Configuration(999, 1, 1))
    assert not played


@two_cores
def test_threads_of_our_loaders_have_the_cores_that_sample() -> None:
    from gnnc.loader import NeighborLoader
    from gnnc.tests.frontend.loader.graphs import plain

    on = Configuration(1, 1, 1)
    worker = Worker(on, masks(machine(), on)[0], Lengths(1))
    mine = os.sched_getaffinity(0)
    loader = NeighborLoader(
        plain(), [3], batch_size=8, transform=lambda _: tuple(os.sched_getaffinity(0))
    )
    shared = worker.loader(loader)
    assert set(shared) == {worker.masks.samplers}
    assert os.sched_getaffinity(0) == mine
    assert shared.num_workers == 1 and shared.seed == loader.seed
    assert set(loader) == {tuple(mine)}  # it is as it was


@two_cores
@pytest.mark.long
def test_compiled_models_train_in_processes() -> None:
    x, edges, y = trainings.graph()
    args = (x.float(), edges, y)
    eager = argo().run(trainings.compiled, (*args, False), configuration=ONE)
    found = argo().run(trainings.compiled, (*args, True), configuration=TWO)
    assert len(found) == 2
    torch.testing.assert_close(found, eager, rtol=1e-4, atol=1e-6)


@two_cores
@pytest.mark.long
@pytest.mark.parametrize("on", [ONE, TWO, Configuration(1, 1, 1)])
def test_batches_of_our_loaders_give_equal_gradients(on: Configuration) -> None:
    from gnnc.loader import ShaDowKHopSampler
    from gnnc.tests.frontend.loader.graphs import plain

    data: Any = plain(10_000, 40_000)
    data.x, data.y = torch.rand(10_000, 8), data.y % 3
    loader = ShaDowKHopSampler(data, 2, 3, batch_size=64, node_idx=torch.arange(130), shuffle=True)
    eager = argo(epoch=2).run(
        trainings.sampled, (data, loader, False), configuration=Configuration(1, 0, 1)
    )
    found = argo(epoch=2).run(trainings.sampled, (data, loader, True), configuration=on)
    assert len(found) == 6  # 64, 64 and 2 seeds, twice
    torch.testing.assert_close(found, eager, rtol=1e-4, atol=1e-6)
    assert np.isfinite(found[-1][0].numpy()).all()


@two_cores
@pytest.mark.long
def test_message_flow_gives_equal_gradients() -> None:
    import gnnc.dgl as dgl
    from gnnc.tests.frontend.loader.graphs import plain

    data = plain()
    g = dgl.graph((data.edge_index[0], data.edge_index[1]), num_nodes=120)
    g.ndata["x"] = data.x
    sampler = dgl.dataloading.NeighborSampler([2, 3])
    loader = dgl.dataloading.DataLoader(g, torch.arange(100), sampler, batch_size=30, shuffle=True)
    eager = argo().run(trainings.flows, (loader, False), configuration=Configuration(1, 0, 1))
    for on in (ONE, TWO):
        found = argo().run(trainings.flows, (loader, True), configuration=on)
        assert len(found) == 4
        torch.testing.assert_close(found, eager, rtol=1e-4, atol=1e-6)


@two_cores
@pytest.mark.long
def test_workers_of_a_loader_have_the_cores_that_sample(tmp_path: Path) -> None:
    rows, process, trains = argo().run(
        trainings.loaded, (str(tmp_path), False), configuration=Configuration(1, 1, 1)
    )
    assert sorted(r[0] for r in rows) == list(range(400))
    assert process not in {r[1] for r in rows}
    assert all(len(r[2]) == 1 and not set(r[2]) & set(trains) for r in rows)


@two_cores
@pytest.mark.long
def test_workers_of_a_loader_end_with_their_process(tmp_path: Path) -> None:
    with pytest.raises(WorkerFailed, match="process 0 of 1 was killed by signal 9"):
        argo().run(trainings.loaded, (str(tmp_path), True), configuration=Configuration(1, 1, 1))
    pids = [int(f.name.split("-")[1]) for f in tmp_path.iterdir()]
    deadline = time.monotonic() + 2  # torch's own watch takes 5 seconds
    while pids and alive(pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert pids


@two_cores
@pytest.mark.long
def test_tunes_then_trains_with_the_best() -> None:
    tuned = Argo(n_search=5, epoch=2, share=1e9, most_processes=2)
    done = tuned.run(trainings.sleep, ({1: 0.02, 2: 0.001},))
    assert done == 2 * 40
    assert tuned.configuration is not None and tuned.configuration.processes == 2
    assert tuned.trials.default == Configuration(1, 0, tuned.cores)
    assert all(m.cost > 34 * m.step for m in tuned.trials.measured.values())


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


@two_cores
@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
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
