"""Launches of MGG's kernel: what they take, how long they would, and the search for the best."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnc.frontend.plan.pipeline.launches import DEVICES, Launch, partitions
from gnnc.frontend.plan.pipeline.play import Task, Way, of_all, paired, seconds
from gnnc.frontend.plan.pipeline.search import LAUNCHES, every, search, search_together
from gnnc.frontend.plan.pipeline.tables import BadTable, load, save
from gnnc.frontend.plan.simulate import Link
from gnnc.runtime.ranks import virtual

H100 = DEVICES["h100"]
LINK = Link(bandwidth=1e11, latency=2e-6)


def tasks(count: int, seed: int) -> Iterator[tuple[list[Task], Link]]:
    """Rows of two ranks of graphs of several kinds, and a link."""
    rng = np.random.default_rng(seed)
    for kind in range(count):
        rows, mean = int(10 ** rng.uniform(3, 4.7)), int(rng.choice([3, 10, 50, 150]))
        match kind % 5:
            case 0:
                degrees = rng.poisson(mean, rows)
            case 1:
                degrees = np.minimum(mean * rng.pareto(1.5, rows), rows).astype(np.int64)
            case 2:
                degrees = rng.poisson(mean, rows)
                degrees[0] = rows  # a hub
            case 3:
                degrees = np.full(rows, mean)
            case _:
                degrees = rng.poisson(mean, rows) * (rng.random(rows) < 0.3)
        width = int(rng.choice([16, 32, 64, 128, 256, 602]))
        far = rng.binomial(degrees, rng.uniform(0, 0.9))
        none = np.zeros(0, np.int64)  # a rank without rows
        link = Link(bandwidth=float(rng.choice([2e10, 1e11, 4.5e11])), latency=2e-6)
        yield [Task(degrees - far, far, width), Task(none, none, width)], link


def test_partitions() -> None:
    assert partitions(np.array([5, 0, 2, 4]), 2).tolist() == [2, 2, 1, 2, 2, 2]
    assert partitions(np.array([5, 0, 2]), None).tolist() == [5, 2]
    assert partitions(np.zeros(0, np.int64), 4).tolist() == []


@given(st.lists(st.integers(0, 70)), st.integers(1, 40))
def test_partitions_have_all_neighbours(degrees: list[int], ps: int) -> None:
    found = partitions(np.array(degrees, np.int64), ps)
    assert found.sum() == sum(degrees)
    assert all(0 < x <= ps for x in found)
    assert len(found) == sum(-(-d // ps) for d in degrees)


def test_what_a_launch_takes() -> None:
    launch = Launch(ps=16, dist=2, wpb=4)
    assert launch.numbers_of_warp(64) == 2 * 16 * 64 * 2
    assert launch.shared_bytes(64, depth=2) == 4 * 16 * 4 + 4 * 4 * 64 * 3
    assert H100.resident_blocks(launch, 64, 2) == 16  # 64 warps
    assert H100.resident_blocks(Launch(wpb=1), 64, 2) == 32  # as many blocks as there may be
    assert H100.resident_blocks(launch, 1024, 4) == 233472 // (256 + 4 * 4 * 1024 * 5)
    assert H100.resident_blocks(launch, 64, 2, registers=255) == 2
    assert H100.resident_blocks(launch, 10**4, 2) == 0
    assert seconds(Task(np.ones(3, int), np.ones(3, int), 10**4), launch, H100, LINK) == np.inf


def test_times_follow_what_they_are_made_of() -> None:
    for of_ranks, link in tasks(10, seed=1):
        task = of_ranks[0]
        for launch in (Launch(), Launch(8, 2, 4), Launch(32, 16, 16)):
            found = seconds(task, launch, H100, link)
            slow = Link(bandwidth=link.bandwidth / 4, latency=link.latency)
            assert seconds(task, launch, H100, slow) >= found
            assert seconds(task, launch, replace(H100, bandwidth=1e11), link) >= found
            assert seconds(task, launch, H100, link, Way.SYNCHRONOUS) >= found
            near = Task(task.local, 0 * task.remote, task.width)
            assert seconds(near, launch, H100, link) == seconds(near, launch, H100, slow)
            assert found >= task.remote.sum() * 4 * task.width / link.bandwidth
    none = np.zeros(0, np.int64)
    assert seconds(Task(none, none, 8), Launch(), H100, LINK) == 0.0


@pytest.mark.parametrize("count", [2, pytest.param(50, marks=pytest.mark.long)])
def test_the_search_comes_close_to_the_best_of_all(count: int) -> None:
    off: list[float] = []
    for of_ranks, link in tasks(count, seed=0):
        tries = search(lambda x, t=of_ranks, k=link: of_all(t, x, H100, k))
        assert tries.launches <= LAUNCHES
        best = min(of_all(of_ranks, x, H100, link) for x in every())
        off.append(tries.seconds[tries.best] / best)
    assert max(off) <= 1.1


def test_the_search_keeps_to_its_launches_with_any_times() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        times = {x: rng.choice([rng.random(), np.inf]) for x in every()}
        tries = search(times.__getitem__)
        assert tries.launches <= LAUNCHES
        assert set(tries.seconds.items()) <= set(times.items())


def test_nothing_to_do_takes_no_time() -> None:
    none = np.zeros(0, np.int64)
    tries = search(lambda x: of_all([Task(none, none, 8)], x, H100, LINK))
    assert tries.launches == LAUNCHES and set(tries.seconds.values()) == {0.0}


def test_pairs_of_a_warp() -> None:
    """Two rows a partition: warp 0 has the first two local ones and the first two remote ones."""
    local, remote = partitions(np.array([5, 3]), 2), partitions(np.array([0, 3]), 2)
    near, far = paired(local, remote, 2)
    assert near.tolist() == [[2, 2], [1, 2], [1, 0]]
    assert far.tolist() == [[2, 1], [0, 0], [0, 0]]


def test_ranks_agree() -> None:
    """What counts is the slowest rank, and all find the same."""
    of_ranks = [t for found, _ in tasks(3, seed=4) for t in found[:1]]

    def work(c: virtual.Virtual) -> object:
        return search_together(c, lambda x: seconds(of_ranks[c.rank], x, H100, LINK)).seconds

    alone = search(lambda x: of_all(of_ranks, x, H100, LINK)).seconds
    assert virtual.run(3, work) == [alone] * 3


def test_tables(tmp_path: Path) -> None:
    (of_ranks, link), (others, _) = tasks(2, seed=2)
    tries = search(lambda x: of_all(of_ranks, x, H100, link))
    path = tmp_path / "launches.json"
    save(path, tries, "h100", of_ranks)
    assert load(path, "h100", of_ranks) == tries
    with pytest.raises(BadTable, match="of the device h100, and this is a100"):
        load(path, "a100", of_ranks)
    with pytest.raises(BadTable, match="of other rows"):
        load(path, "h100", others)
    whole = json.loads(path.read_text())
    for change in ({"launches": [{"ps": 0}]}, {"launches": 3}, {"version": 2}):
        path.write_text(json.dumps(whole | change))
        with pytest.raises(BadTable, match=r"is damaged|is no table of launches"):
            load(path, "h100", of_ranks)
    path.write_bytes(b"{")
    with pytest.raises(BadTable, match="is no table of launches"):
        load(path, "h100", of_ranks)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="dist: 0, and it is an integer, 1 at least"):
        Launch(dist=0)
    with pytest.raises(ValueError, match="ps: 1.5, and it is an integer"):
        Launch(ps=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="remote: numbers of neighbours are integers of 0 or more"):
        Task(np.zeros(1, int), np.array([-1]), 4)
    with pytest.raises(ValueError, match="seconds: nan for Launch"):
        search(lambda _: np.nan)
    with pytest.raises(ValueError, match="degrees: -1 is no number of neighbours"):
        partitions(np.array([1, -1]), 2)
    with pytest.raises(ValueError, match="ps: 0, and it is 1 at least"):
        partitions(np.array([1]), 0)
    with pytest.raises(ValueError, match="remote: 1 rows, and 2 have local neighbours"):
        Task(np.zeros(2, int), np.zeros(1, int), 4)
    with pytest.raises(ValueError, match="width: 0, and it is 1 at least"):
        Task(np.zeros(2, int), np.zeros(2, int), 0)
    with pytest.raises(ValueError, match="launches: 0, and one is needed at least"):
        search(lambda _: 1.0, 0)
    with pytest.raises(ValueError, match="no launch fits on the device"):
        assert search(lambda _: np.inf).best
