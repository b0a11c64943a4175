"""A plan of memory that graphs of about one size share gives each buffer room of its own."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnc.runtime.layout import Layout, Places, Rows
from gnnc.runtime.plans import FEW, KEPT, Plans, about

DOMAINS = (["N", []], ["g", []])
WORKSPACE = 640


def layout(widths: list[int], lives: list[tuple[int, int]], outputs: int) -> Layout:
    """Buffers of rows of so many floats, on nodes and edges in turns; the last ones are outputs."""
    first_output = len(widths) - outputs
    buffers: list[dict[str, Any]] = [
        {
            "kind": "temporary" if k < first_output else "output",
            "domain": DOMAINS[k % 2],
            "row": [width],
            "bytes": 4,
            "lives": list(life),
        }
        for k, (width, life) in enumerate(zip(widths, lives, strict=True))
    ]
    return Layout(buffers, [])


def check(found: Places, of: Layout, counts: list[int]) -> None:
    """No two buffers that are in use at one step share a byte, and none leaves its room."""

    def size(rows: Rows) -> int:
        return rows[3] * counts[rows[1]]

    lives = {b.rows[0]: b for group in of.living.values() for b in group}
    lenders = dict(found.lent)
    rooms = dict(found.rooms) | {room: size(lives[k].rows) for room, k in found.lent}
    assert rooms[0] >= WORKSPACE
    spans = [(k, room, at, at + size(lives[k].rows)) for k, room, at in found.within]
    spans += [(k, room, 0, size(lives[k].rows)) for room, k in lenders.items()]
    assert len(spans) == len(found.within) + len(lenders)
    for _, room, start, end in spans:
        assert 0 <= start <= end <= rooms[room]
    for (a, room, start, end), (b, other, low, high) in combinations(spans, 2):
        together = lives[a].first <= lives[b].last and lives[b].first <= lives[a].last
        assert room != other or not together or end <= low or high <= start


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    count = draw(st.integers(1, 7))
    widths = draw(st.lists(st.sampled_from([1, 8, 64, 100]), min_size=count, max_size=count))
    starts = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    lives = [(s, s + draw(st.integers(0, 3))) for s in starts]
    return layout(widths, lives, draw(st.integers(0, min(2, count))))


@settings(deadline=None)
@given(layouts(), st.integers(0, 12000), st.integers(0, 12000), st.integers(0, 2**16))
def test_no_buffers_meet(of: Layout, nodes: int, edges: int, seed: int):
    random = np.random.default_rng(seed)
    plans = Plans(of, WORKSPACE)
    for _ in range(4):
        share = random.uniform(0.9, 1.0, 2)
        sizes = {"N": int(nodes * share[0]), "g": int(edges * share[1])}
        counts = [1, *(sizes[domain[0]] for domain in of.domains[1:])]
        found = plans.of(counts, {}, lambda rows, c=counts: rows[3] * c[rows[1]], ())
        check(found, of, counts)


def test_graphs_of_about_one_size_share_a_plan():
    plans = Plans(layout([64, 64], [(0, 1), (1, 2)], 0), WORKSPACE)
    first, second = (plans.of([1, n, n], {}, lambda rows: rows[3] * n, ()) for n in (1000, 995))
    assert first is second
    assert first is not plans.of([1, 800, 800], {}, lambda rows: rows[3] * 800, ())


def test_large_graphs_have_plans_of_their_own():
    of = layout([64, 64], [(0, 1), (1, 2)], 0)
    n = FEW
    exact = of.placed(lambda rows: rows[3] * n, WORKSPACE)
    assert Plans(of, WORKSPACE).of([1, n, n], {}, lambda rows: rows[3] * n, ()) == exact


def test_few_plans_are_kept():
    plans = Plans(layout([1], [(0, 0)], 0), WORKSPACE)
    for n in range(20000, 20000 + 64 * 600, 64):
        plans.of([1, n % FEW], {}, lambda rows, n=n: rows[3] * (n % FEW), ())
    assert len(plans._kept) <= KEPT  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 63, 1000, 12345, 2**15])
def test_a_rounded_number_is_a_little_more(count: int):
    assert count <= about(count) <= count * 17 / 16
