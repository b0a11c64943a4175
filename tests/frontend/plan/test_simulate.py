"""Virtual time: what follows from any work and messages, and what was worked out by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnc.frontend.plan.simulate import Link, Run, Stage, simulate

TIGHT = 1e-9
"""Sums of the same numbers in another order."""


def stage(
    before: Sequence[float],
    beside: Sequence[float],
    after: Sequence[float],
    rows: Sequence[Sequence[float]] | None = None,
    row_bytes: tuple[float, ...] = (1.0,),
) -> Stage:
    work = (np.array(x, np.float64) for x in (before, beside, after))
    return Stage(*work, None if rows is None else np.array(rows, np.float64), row_bytes)


@st.composite
def steps(draw: st.DrawFn, most: int = 4, messages: bool = True) -> list[Stage]:
    """Stages of up to four ranks, with any work and rows."""
    ranks = draw(st.integers(1, most))
    seconds = st.lists(st.integers(0, 20), min_size=ranks, max_size=ranks)
    rows = st.lists(seconds, min_size=ranks, max_size=ranks)
    widths = st.sampled_from([(1.0,), (2.0, 0.5)])
    count = draw(st.integers(1, 4))
    return [
        stage(
            *(draw(seconds) for _ in range(3)),
            draw(st.none() | rows) if messages else None,
            draw(widths),
        )
        for _ in range(count)
    ]


links = st.builds(
    Link,
    overhead=st.sampled_from([0.0, 0.1, 3.0]),
    bandwidth=st.sampled_from([0.3, 1.0, 5.0, float("inf")]),
    latency=st.sampled_from([0.0, 0.7, 4.0]),
)
chunks, overlaps = st.integers(1, 4), st.sampled_from([0.0, 0.4, 1.0])


def work(stages: Sequence[Stage]) -> np.ndarray:
    return np.sum([s.before + s.beside + s.after for s in stages], axis=0)


def bytes_sent(stages: Sequence[Stage]) -> np.ndarray:
    total = np.zeros(len(stages[0].before))
    for s in stages:
        if s.rows is not None:
            total += (s.rows - np.diag(np.diag(s.rows))).sum(axis=0) * sum(s.row_bytes)
    return total


@settings(max_examples=150, deadline=None)
@given(steps(), links, chunks, overlaps)
def test_what_holds_of_every_step(found: list[Stage], link: Link, pieces: int, overlap: float):
    run = simulate(found, link, chunks=pieces, overlap=overlap)
    assert np.all(run.finished >= work(found) - TIGHT)
    assert np.allclose(run.finished, work(found) + run.waited)
    assert run.seconds == run.finished.max()
    assert np.allclose(run.sent, bytes_sent(found))
    port = bytes_sent(found) / link.bandwidth + run.messages * link.overhead
    # all that a rank sends leaves one port, and is waited for by somebody
    assert run.seconds >= port.max() - TIGHT


@settings(max_examples=150, deadline=None)
@given(steps(), links, chunks, overlaps, st.sampled_from([1.01, 2.0, 1e6]))
def test_a_better_link_is_never_slower(
    found: list[Stage], link: Link, pieces: int, overlap: float, times: float
):
    def seconds(of: Link) -> float:
        return simulate(found, of, chunks=pieces, overlap=overlap).seconds

    plain = seconds(link) + TIGHT
    assert seconds(Link(link.overhead, link.bandwidth * times, link.latency)) <= plain
    assert seconds(Link(link.overhead / times, link.bandwidth, link.latency)) <= plain
    assert seconds(Link(link.overhead, link.bandwidth, link.latency / times)) <= plain


@settings(max_examples=100, deadline=None)
@given(steps(), links, chunks, overlaps, st.data())
def test_less_work_is_never_slower(
    found: list[Stage], link: Link, pieces: int, overlap: float, data: st.DataObject
):
    place = data.draw(st.integers(0, len(found) - 1))
    s = found[place]
    less = Stage(s.before / 2, s.beside / 3, s.after / 4, s.rows, s.row_bytes)
    lighter = [*found[:place], less, *found[place + 1 :]]
    ways = {"chunks": pieces, "overlap": overlap}
    assert simulate(lighter, link, **ways).seconds <= simulate(found, link, **ways).seconds + TIGHT


@settings(max_examples=100, deadline=None)
@given(steps(), links, chunks)
def test_overlap_is_never_slower(found: list[Stage], link: Link, pieces: int):
    seconds = [simulate(found, link, chunks=pieces, overlap=x).seconds for x in (0, 0.3, 1)]
    assert seconds[0] + TIGHT >= seconds[1] >= seconds[2] - TIGHT


@settings(max_examples=50, deadline=None)
@given(steps(messages=False), links, chunks, overlaps)
def test_without_messages_the_most_work_counts(
    found: list[Stage], link: Link, pieces: int, overlap: float
):
    run = simulate(found, link, chunks=pieces, overlap=overlap)
    assert run.seconds == pytest.approx(work(found).max())
    assert not run.waited.any()


@settings(max_examples=50, deadline=None)
@given(steps(most=1), links, chunks, overlaps)
def test_one_rank_only_works(found: list[Stage], link: Link, pieces: int, overlap: float):
    run = simulate(found, link, chunks=pieces, overlap=overlap)
    assert run.seconds == pytest.approx(work(found)[0])
    assert run.messages[0] == 0


def test_messages_that_cost_nothing():
    rows = [[0, 1], [1, 0]]
    run = simulate([stage([1, 3], [0, 0], [1, 1], rows)], Link())
    assert run.finished.tolist() == [4, 4]  # the first waits for the second
    assert run.waited.tolist() == [2, 0]


def test_a_port_carries_one_message_at_a_time():
    """Two ranks send 10 bytes each to rank 0, which takes one after the other."""
    rows = [[0, 10, 10], [0, 0, 0], [0, 0, 0]]
    found = stage([0] * 3, [0] * 3, [0] * 3, rows)
    run = simulate([found], Link(overhead=1, bandwidth=5, latency=2))
    assert run.finished.tolist() == [8, 0, 0]
    assert run.messages.tolist() == [0, 1, 1]


def test_chunks_are_worked_on_while_others_come():
    """10 bytes in 10 s, 10 s of work on them: 20 s in one piece, 15 s in two."""
    found = stage([0, 0], [0, 0], [10, 10], [[0, 10], [10, 0]])
    seconds = [simulate([found], Link(bandwidth=1), chunks=c).seconds for c in (1, 2, 5)]
    assert seconds == pytest.approx([20, 15, 12])


def test_local_work_hides_messages():
    found = stage([1, 1], [6, 6], [2, 2], [[0, 4], [4, 0]])
    seconds = [simulate([found], Link(bandwidth=1), overlap=x).seconds for x in (0, 0.5, 1)]
    assert seconds == [13, 10, 9]


def test_messages_of_a_later_stage_wait_for_their_turn():
    """Rank 2 sends for the second stage before rank 1 sends for the first: its message keeps the
    port of rank 0 only after that."""
    first = stage([0, 5, 0], [0] * 3, [0] * 3, [[0, 1, 0], [0] * 3, [0] * 3])
    second = stage([0] * 3, [0] * 3, [0] * 3, [[0, 0, 20], [0] * 3, [0] * 3])
    run: Run = simulate([first, second], Link(bandwidth=1))
    assert run.finished[0] == 26


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"chunks": 0}, "chunks: 0"),
        ({"overlap": 1.5}, "overlap: 1.5"),
        ({"stages": []}, "stages: there is none"),
        ({"stages": [stage([1], [1, 2], [1])]}, "stage 0 has not a number for each of 1 ranks"),
        ({"stages": [stage([-1], [1], [1])]}, "stage 0 has work of negative time"),
        ({"stages": [stage([1], [1], [1], [[0, 1]])]}, "the rows of stage 0 are not those of 1"),
    ],
)
def test_refused(wrong: dict[str, object], text: str):
    given_: dict[str, object] = {"stages": [stage([1], [1], [1])], "link": Link(), **wrong}
    with pytest.raises(ValueError, match=text):
        simulate(**given_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"overhead": -1}, "overhead: -1"),
        ({"latency": float("nan")}, "latency: nan"),
        ({"bandwidth": 0}, "bandwidth: 0"),
    ],
)
def test_refused_links(wrong: dict[str, float], text: str):
    with pytest.raises(ValueError, match=text):
        Link(**wrong)
