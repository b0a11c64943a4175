"""Virtual ranks: exchanges against NumPy, sums in the order of ranks, and what goes wrong."""

import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gnnc
from gnnc.runtime.ranks.alone import Alone
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.errors import Disagreement, RankFailed, Stuck
from gnnc.runtime.ranks.virtual import Link, run

from . import ringed
from .broken import without_fence

PATIENCE = 0.3
RUNS = [pytest.param(run, id="threads"), pytest.param(ringed.run, id="rings")]

DTYPES = ["f4", "f8", "i4", "i8", "?", "u1"]


@st.composite
def traffic(draw: st.DrawFn):
    """How many rows each rank sends to each, the dtype, and the shape of a row."""
    size = draw(st.integers(1, 4))
    count = st.one_of(st.just(0), st.integers(0, 7))
    counts = draw(st.lists(count, min_size=size * size, max_size=size * size))
    row = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    return np.array(counts).reshape(size, size), draw(st.sampled_from(DTYPES)), row


def rows_between(counts: np.ndarray, dtype: str, row: tuple[int, ...], seed: int) -> list[Any]:
    """Rows [sender][receiver]."""
    rng = np.random.default_rng(seed)
    return [[(100 * rng.random((n, *row))).astype(dtype) for n in line] for line in counts]


@pytest.mark.parametrize("run", RUNS)
@given(traffic(), st.integers(0, 9))
@settings(deadline=None, max_examples=60)
def test_exchanges(run: Any, what: tuple[np.ndarray, str, tuple[int, ...]], seed: int):
    counts, dtype, row = what
    rows = [rows_between(counts, dtype, row, seed + k) for k in range(2)]

    def work(c: Communicator) -> list[np.ndarray]:
        into = [np.empty((counts[:, c.rank].sum(), *row), dtype) for _ in rows]
        under_way = [
            c.start(np.concatenate(r[c.rank]), counts[c.rank], i, counts[:, c.rank], tag)
            for tag, (r, i) in enumerate(zip(rows, into, strict=True))
        ]
        while not under_way[1].poll():
            time.sleep(0)
        for exchange in reversed(under_way):
            exchange.wait()
        return into

    for rank, into in enumerate(run(len(counts), work)):
        for found, r in zip(into, rows, strict=True):
            np.testing.assert_array_equal(found, np.concatenate([line[rank] for line in r]))


@pytest.mark.parametrize("run", RUNS)
def test_exchanges_with_one_tag_keep_their_order(run: Any):
    def work(c: Communicator) -> list[float]:
        other = 1 - c.rank
        counts = np.eye(2, dtype=int)[other]
        into = [np.empty((1,)) for _ in range(3)]
        under_way = [
            c.start(np.array([float(k)]), counts, x, counts, 5) for k, x in enumerate(into)
        ]
        for exchange in under_way:
            exchange.wait()
        return [float(x[0]) for x in into]

    assert run(2, work) == [[0, 1, 2]] * 2


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("shape", [(), (5,), (0,), (3, 4)])
def test_all_reduce_has_the_bits_of_the_order_of_ranks(
    run: Any, kind: Any, dtype: str, shape: tuple[int, ...]
):
    rng = np.random.default_rng(0)
    arrays = (rng.standard_normal((4, *shape)) * 10.0 ** rng.integers(0, 8, (4, *shape))).astype(
        dtype
    )
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[kind]
    expected = arrays[0]
    for other in arrays[1:]:
        expected = combine(expected, other)

    def work(c: Communicator) -> list[np.ndarray]:
        time.sleep(0.01 * ((c.rank * 3) % 4))  # arrivals in another order than ranks
        early = c.start_all_reduce(arrays[c.rank], kind)
        return [c.all_reduce(arrays[c.rank], kind), early.wait()]

    for found in run(4, work):
        for array in found:
            assert array.dtype == dtype and array.shape == shape
            assert array.tobytes() == np.asarray(expected, dtype).tobytes()


def test_infinities_give_no_warning():
    results = run(2, lambda c: c.all_reduce(np.array([np.inf, 1e38], "f4") * [1, 3][c.rank], "sum"))
    assert all(np.isinf(r).all() for r in results)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("size", [1, 3])
def test_objects(run: Any, size: int):
    def work(c: Communicator) -> Any:
        given = {"rank": c.rank, "text": "x" * c.rank}
        last = c.broadcast(given, root=c.size - 1)
        c.barrier()
        return last, c.gather(c.rank), c.gather(given["text"], root=c.size - 1)

    results = run(size, work)
    assert [r[0]["rank"] for r in results] == [size - 1] * size
    assert [r[1] for r in results] == [list(range(size))] + [None] * (size - 1)
    assert results[-1][2] == ["x" * r for r in range(size)]


@pytest.mark.parametrize("run", RUNS)
def test_barrier_holds_all_back(run: Any):
    before = []

    def work(c: Communicator) -> int:
        time.sleep(0.05 * c.rank)
        before.append(c.rank)
        c.barrier()
        return len(before)

    assert run(3, work) == [3, 3, 3]


def test_agreement():
    run(3, lambda c: c.agree("the program", "a"))


@pytest.mark.parametrize(
    ("values", "text"), [("aab", "rank 2 from ranks 0 and 1"), ("ba", "rank 1 from rank 0")]
)
def test_disagreement_is_the_same_on_every_rank(values: str, text: str):
    def work(c: Communicator) -> str:
        with pytest.raises(Disagreement, match=f"differ in the program: {text}") as caught:
            c.agree("the program", values[c.rank])
        return str(caught.value)

    assert len(set(run(len(values), work))) == 1


def test_public_names_know_the_rank():
    assert (gnnc.rank(), gnnc.world_size()) == (0, 1)
    assert run(3, lambda _: (gnnc.rank(), gnnc.world_size())) == [(0, 3), (1, 3), (2, 3)]
    assert (gnnc.rank(), gnnc.world_size()) == (0, 1)


def test_alone():
    c = Alone()
    into = np.empty((2, 3))
    c.start(np.ones((2, 3)), [2], into, [2], 0).wait()
    assert into.sum() == 6
    assert c.all_reduce(np.array(3.0), "sum") == 3
    assert c.broadcast("x") == "x" and c.gather("x") == ["x"]
    c.agree("the program", "a")
    c.barrier()


@pytest.mark.parametrize("run", RUNS)
def test_a_failure_stops_the_others_and_is_named(run: Any):
    stopped: list[str] = []

    def work(c: Communicator) -> None:
        with c.stage("forward"):
            if c.rank == 1:
                with c.stage("halo of layer 2"):
                    raise KeyError("rows")
            try:
                c.barrier()
            except RankFailed as error:
                stopped.append(str(error))
                raise

    begun = time.monotonic()
    with pytest.raises(KeyError) as caught:
        run(3, work)
    assert time.monotonic() - begun < 5
    assert caught.value.__notes__ == ['in rank 1 of 3, in stage "halo of layer 2"']
    assert len(stopped) == 2
    assert all('rank 1 failed in stage "halo of layer 2"; rank ' in s for s in stopped)


def test_a_stage_ends_with_its_error():
    def work(c: Communicator) -> None:
        with pytest.raises(KeyError), c.stage("inner"):
            raise KeyError
        c.barrier()
        raise ValueError

    with pytest.raises(ValueError) as caught:
        run(1, work)
    assert caught.value.__notes__ == ['in rank 0 of 1, in stage "start"']


@pytest.mark.parametrize("begun", [False, True])
def test_what_comes_before_a_call_may_take_its_time(begun: bool):
    """As tracing does; a call that has begun may not."""

    def work(c: Communicator) -> None:
        c.barrier()
        for _ in range(2):
            with c.until_call("trace", patience=60):
                if c.rank == 1 and begun:
                    c.begin_call()
                if c.rank == 1:
                    time.sleep(3 * PATIENCE)
                c.barrier()

    if not begun:
        run(2, work, patience=PATIENCE)
        return
    with pytest.raises(Stuck, match='rank 1 is stuck: .* in stage "call 1"'):
        run(2, work, patience=PATIENCE)


@pytest.mark.parametrize(("inside", "told"), [(True, "epoch 3"), (False, "call 3")])
def test_calls_are_stages_where_nothing_else_is(inside: bool, told: str):
    def work(c: Communicator) -> None:
        c.begin_call()
        with c.stage("epoch 3"):
            c.begin_call()
            if inside:
                raise ValueError
        c.begin_call()
        raise ValueError

    with pytest.raises(ValueError) as caught:
        run(1, work)
    assert caught.value.__notes__ == [f'in rank 0 of 1, in stage "{told}"']


@pytest.mark.parametrize("run", RUNS)
def test_ranks_in_different_collectives(run: Any):
    def work(c: Communicator) -> None:
        with c.stage(f"part {c.rank}"):
            if c.rank == 0:
                c.barrier()
            else:
                c.all_reduce(np.zeros(2), "sum")

    with pytest.raises(Stuck) as caught:
        run(2, work, patience=PATIENCE)
    text = str(caught.value)
    assert 'rank 0 waits for rank 1 in barrier, stage "part 0"' in text
    assert 'rank 1 waits for rank 0 in all-reduce (sum), stage "part 1"' in text
    assert caught.value.culprits == (0, 1)


def test_waiting_for_a_rank_that_has_finished():
    with pytest.raises(Stuck, match="rank 1 has finished; rank 0 waits for rank 1 in barrier"):
        run(2, lambda c: c.barrier() if c.rank == 0 else None, patience=PATIENCE)


def test_waiting_for_a_rank_that_is_stuck_behind_another():
    """Rank 0 waits for 1, which waits for 2: it is 2 that is named."""
    release = threading.Event()

    def work(c: Communicator) -> None:
        with c.stage(f"part {c.rank}"):
            if c.rank == 2:
                release.wait(5)
                return
            one = np.zeros(1)
            counts = [[0, 1, 0], [0, 0, 1]][c.rank]
            c.start(one, counts, np.zeros(0), [0, 0, 0], 1).wait()

    with pytest.raises(Stuck, match='rank 2 is stuck: .* in stage "part 2"') as caught:
        run(3, work, patience=PATIENCE)
    release.set()
    assert caught.value.culprits == (2,)


def test_a_stage_may_take_its_time():
    def work(c: Communicator) -> None:
        if c.rank == 1:
            with c.stage("compile", patience=60):
                time.sleep(4 * PATIENCE)
        c.barrier()

    run(2, work, patience=PATIENCE)


def test_a_message_takes_the_time_of_its_link():
    link = Link(latency=0.2, bandwidth=1e5)

    def work(c: Communicator) -> tuple[float, float]:
        other = np.eye(2, dtype=int)[1 - c.rank]
        x, y = np.ones((10_000, 1), np.uint8), np.zeros((10_000, 1), np.uint8)
        begun = time.monotonic()
        exchange = c.start(x, 10_000 * other, y, 10_000 * other, 0)
        started = time.monotonic() - begun
        assert not exchange.poll() and not y.any()
        exchange.wait()
        assert y.all()
        return started, time.monotonic() - begun

    for started, ended in run(2, work, link=link):
        assert started < 0.25
        assert ended >= 0.3


def test_a_missing_fence_shows():
    """What tests of partitioned programs rest on: with a link that takes time, rows are not there
    before the wait, and memory that is sent is read until then."""

    def work(c: Communicator) -> float:
        other = np.eye(2, dtype=int)[1 - c.rank]
        into = np.full((1, 2), np.nan)
        c.start(np.full((1, 2), 1.0 + c.rank), other, into, other, 0).wait()
        return float(into.sum())

    slow = Link(latency=0.05)
    assert run(2, work, link=slow) == [4.0, 2.0]
    assert np.isnan(run(2, work, link=slow, wrap=without_fence)).all()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"send_counts": [1]}, ValueError, "send_counts has 1 numbers for 2 ranks"),
        ({"send_counts": [3, 1]}, ValueError, "send_counts adds up to 4, sent has 2 rows"),
        ({"receive_counts": [3, -1]}, ValueError, "receive_counts has a negative number: -1"),
        ({"received": np.zeros((2, 3), "f4")}, ValueError, "received has rows of float32"),
        ({"received": np.zeros((2, 4))}, ValueError, r"received has the shape \(2, 4\)"),
        ({"sent": np.zeros((2, 6))[:, ::2]}, ValueError, "sent is not contiguous"),
        ({"sent": np.array([[None] * 3] * 2)}, ValueError, "received has rows of float64"),
        ({"receive_counts": [2, 0], "send_counts": [1, 1]}, ValueError, "rank 0 sends itself 1"),
        ({"tag": -1}, ValueError, "tag must be from 0"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], error: type[Exception], text: str):
    arguments: dict[str, Any] = {
        "sent": np.zeros((2, 3)),
        "send_counts": [1, 1],
        "received": np.zeros((2, 3)),
        "receive_counts": [1, 1],
        "tag": 0,
    }

    def work(c: Communicator) -> None:
        if c.rank == 0:
            with pytest.raises(error, match=text):
                c.start(**{**arguments, **change})

    run(2, work)


def test_wrong_arguments_of_collectives():
    def work(c: Communicator) -> None:
        with pytest.raises(ValueError, match="kind must be one of sum, max, min, mul, got 'mean'"):
            c.all_reduce(np.zeros(1), "mean")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="array must hold integers or floats, not bool"):
            c.all_reduce(np.zeros(1, bool), "sum")
        with pytest.raises(ValueError, match="root must be a rank from 0 to 1, got 2"):
            c.broadcast(1, root=2)
        with pytest.raises(ValueError, match="patience must be"), c.stage("x", patience=0):
            pass

    run(2, work)
    with pytest.raises(ValueError, match="size must be at least 1"):
        run(0, work)


@pytest.mark.parametrize("run", RUNS)
def test_a_message_of_another_length(run: Any):
    def work(c: Communicator) -> None:
        counts = np.eye(2, dtype=int)[1 - c.rank]
        more = (1 + c.rank) * counts
        c.start(np.zeros(more.sum()), more, np.zeros(1), counts, 7).wait()

    with pytest.raises(ValueError, match="exchange 7: rank 1 sends 16 bytes to rank 0, which exp"):
        run(2, work)


def test_ranks_of_one_machine_copy():
    """Only a link takes time while ranks work on something else."""
    assert run(2, lambda ranks: ranks.on_one_machine) == [True, True]
    slow = Link(latency=1e-3)
    assert run(2, lambda ranks: ranks.on_one_machine, link=slow) == [False, False]


SLOW = """
import sys, time
from gnnc.runtime.ranks import virtual
def work(c):
    c.barrier()
    if c.rank == 0:
        print("begins", flush=True)
    for _ in range(10 * c.rank):  # rank 0 waits meanwhile
        time.sleep(0.1)
    c.barrier()
virtual.run(2, work, patience=2)
"""


def test_a_job_that_was_stopped_goes_on():
    """For longer than any rank has patience."""
    command = [sys.executable, "-c", SLOW]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"begins\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        process.send_signal(signal.SIGCONT)
        assert process.wait(20) == 0, process.stderr.read()
