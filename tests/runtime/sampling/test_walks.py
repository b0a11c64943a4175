"""Random walks."""

import itertools

import numpy as np
import pytest

from gnnc.runtime.sampling.in_edges import in_edges
from gnnc.runtime.sampling.sampler import Key
from gnnc.runtime.sampling.walks import walk

from .checks import check_frequencies, random_edges

NODES = 80
SRC, DST = random_edges(0, NODES, 400)
GRAPH = in_edges(SRC, DST, NODES, NODES)
STARTS = np.random.default_rng(2).integers(0, NODES, 300)


@pytest.mark.parametrize("ends", [False, True])
def test_walks_follow_edges(fine: None, ends: bool):
    found = [walk(GRAPH, STARTS, 6, Key(1, 2, 3), ends=ends, threads=t) for t in (1, 2, 4)]
    for other in found[1:]:
        assert np.array_equal(found[0].nodes, other.nodes)
        assert np.array_equal(found[0].ids, other.ids)
    nodes, ids = found[0].nodes, found[0].ids
    assert np.array_equal(nodes[:, 0], STARTS)
    here, there, moved = nodes[:, :-1], nodes[:, 1:], ids >= 0
    assert np.array_equal(DST[ids[moved]], here[moved])
    assert np.array_equal(SRC[ids[moved]], there[moved])
    assert moved.any() and not moved.all()
    assert (there[~moved] == (-1 if ends else here[~moved])).all()
    stuck = here[~moved]
    assert (GRAPH.degrees(stuck[stuck >= 0]) == 0).all()


def test_a_list_of_walks_may_be_cut():
    whole = walk(GRAPH, STARTS, 5)
    parts = [walk(GRAPH, STARTS[:70], 5), walk(GRAPH, STARTS[70:], 5, first=70)]
    assert np.array_equal(whole.nodes, np.concatenate([p.nodes for p in parts]))
    again = walk(GRAPH, STARTS, 5, Key(0, 0, 1))
    assert not np.array_equal(whole.nodes, again.nodes)


def count(rows: np.ndarray) -> dict[tuple[int, ...], int]:
    kinds, found = np.unique(rows, axis=0, return_counts=True)
    return dict(zip(map(tuple, kinds.tolist()), found.tolist(), strict=True))


TRIANGLE = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
"""Each node leads to the two others."""


def test_two_steps_are_drawn_uniformly_and_independently():
    dst, src = np.array(TRIANGLE).T
    graph = in_edges(src, dst, 3, 3)
    paths = [(0, a, b) for a, b in itertools.product(range(3), repeat=2) if a != 0 and b != a]
    check_frequencies(
        {p: 1 / 4 for p in paths},
        lambda seed: count(walk(graph, np.zeros(2000, int), 2, Key(seed), threads=1).nodes),
    )


def test_edges_of_weight():
    dst, src = np.array(TRIANGLE).T
    graph = in_edges(src, dst, 3, 3, weights=np.array([1, 3, 1, 0, 2, 2]))
    expected = {(0, 1, 0): 0.25, (0, 2, 0): 0.375, (0, 2, 1): 0.375}
    check_frequencies(
        expected,
        lambda seed: count(
            walk(graph, np.zeros(2000, int), 2, Key(seed), weighted=True, threads=1).nodes
        ),
    )


def test_walks_return_to_their_start():
    """On a ring each walk is as many steps from its start as it took since it returned."""
    n = 50
    graph = in_edges((np.arange(n) + 1) % n, np.arange(n), n, n)
    expected = {(3,): 0.75**2, (2,): 0.25 * 0.75, (1,): 0.25}

    def draw(seed: int) -> dict[tuple[int, ...], int]:
        found = walk(graph, np.arange(2000) % n, 3, Key(seed), back=0.25, threads=1).nodes
        return count((found[:, 3:] - found[:, :1]) % n)

    check_frequencies(expected, draw)
    always = walk(graph, np.arange(n), 3, back=1.0).nodes
    assert (always[:, 1:] == (always[:, :1] + 1) % n).all()


def test_no_walks_and_no_steps():
    assert walk(GRAPH, np.zeros(0, int), 4).nodes.shape == (0, 5)
    assert np.array_equal(walk(GRAPH, STARTS, 0).nodes[:, 0], STARTS)


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(starts=np.array([NODES])), IndexError, r"starts\[0\] is 80"),
        (dict(length=-1), ValueError, "must not be negative"),
        (dict(back=1.5), ValueError, "must be a probability"),
        (dict(weighted=True), ValueError, "needs weights"),
        (dict(first=2**32), ValueError, "32 bits"),
        (dict(graph=in_edges(SRC, DST, NODES, NODES + 1)), ValueError, "one type"),
    ],
)
def test_bad_walks(change: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        walk(**(dict(graph=GRAPH, starts=STARTS, length=2) | change))
