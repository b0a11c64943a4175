"""Pairs that no edge joins."""

import numpy as np
import pytest

from gnnc.runtime.sampling.non_edges import NonEdges
from gnnc.runtime.sampling.sampler import Key

from .checks import check_frequencies, random_edges

SRC, DST = np.array([0, 0, 1, 3, 0, 2, 1, 1]), np.array([0, 1, 1, 2, 1, 2, 2, 0])
"""Of 4 sources and 3 targets, one pair twice: 7 of 12 pairs."""


def free(sources: int, targets: int, src: np.ndarray, dst: np.ndarray) -> set[tuple[int, int]]:
    edges = set(zip(src.tolist(), dst.tolist(), strict=True))
    return {(s, d) for s in range(sources) for d in range(targets)} - edges


def count(columns: np.ndarray) -> dict[tuple[int, ...], int]:
    kinds, found = np.unique(columns, axis=1, return_counts=True)
    return dict(zip(map(tuple, kinds.T.tolist()), found.tolist(), strict=True))


def test_each_pair_is_as_frequent():
    pairs = free(4, 3, SRC, DST)
    non_edges = NonEdges(SRC, DST, 4, 3)
    assert non_edges.count == len(pairs) == 5
    check_frequencies(
        {p: 1 / len(pairs) for p in pairs},
        lambda seed: count(non_edges.pairs(2000, Key(seed), threads=1)),
    )


def test_every_pair():
    found = NonEdges(SRC, DST, 4, 3).every()
    assert found.dtype == np.int32 and set(count(found).values()) == {1}
    assert count(found).keys() == free(4, 3, SRC, DST)
    none = NonEdges(np.array([0, 1]), np.array([1, 0]), 2, 2, loops=False).every()
    assert none.shape == (2, 0)


def test_one_pair_of_two():
    non_edges = NonEdges(np.zeros(0, int), np.zeros(0, int), 2, 1)
    check_frequencies(
        {(0, 0): 0.5, (1, 0): 0.5},
        lambda seed: count(non_edges.pairs(2000, Key(seed), threads=1)),
    )


def test_sources_for_targets():
    non_edges = NonEdges(SRC, DST, 4, 3)
    check_frequencies(
        {(a, b): 1 / 4 for a in (2, 3) for b in (2, 3)},
        lambda seed: count(
            non_edges.sources_for(np.zeros(1000, int), 2, Key(seed), threads=1).transpose()
        ),
    )
    assert (non_edges.sources_for(np.array([2]), 5) == 0).all()


def test_against_all_edges(fine: None):
    src, dst = random_edges(0, 70, 3000)
    for loops in (True, False):
        non_edges = NonEdges(src, dst, 70, 70, loops=loops)
        everything = free(70, 70, src, dst)
        if not loops:
            everything = {(s, d) for s, d in everything if s != d}
        assert non_edges.count == len(everything)
        found = [non_edges.pairs(60_000, Key(1, 2, 3), threads=t) for t in (1, 2, 4)]
        assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
        assert set(zip(*found[0].tolist(), strict=True)) == everything
        some = [non_edges.sources_for(np.arange(70), 9, threads=t) for t in (1, 2, 4)]
        assert np.array_equal(some[0], some[1]) and np.array_equal(some[0], some[2])
        for target, sources in enumerate(some[0].tolist()):
            full = not any((s, target) in everything for s in range(70))
            assert all((s == -1) if full else (s, target) in everything for s in sources)


def test_a_list_may_be_cut():
    non_edges = NonEdges(SRC, DST, 4, 3)
    whole = non_edges.pairs(100)
    assert np.array_equal(whole[:, 40:], non_edges.pairs(60, first=40))
    assert not np.array_equal(whole, non_edges.pairs(100, Key(0, 1)))
    each = non_edges.sources_for(np.arange(3), 5)
    assert np.array_equal(each[1:], non_edges.sources_for(np.arange(1, 3), 5, first=1))


def test_complete_graphs():
    src, dst = np.divmod(np.arange(12), 3)
    non_edges = NonEdges(src, dst, 4, 3)
    assert non_edges.count == 0 and non_edges.pairs(0).shape == (2, 0)
    with pytest.raises(ValueError, match="every pair of nodes has an edge"):
        non_edges.pairs(1)
    assert (non_edges.sources_for(np.arange(3), 2) == -1).all()


def test_bad_arguments():
    with pytest.raises(IndexError, match="the source of an edge"):
        NonEdges(np.array([4]), np.array([0]), 4, 3)
    with pytest.raises(ValueError, match="src has 1 entries and dst has 2"):
        NonEdges(np.array([0]), np.array([0, 1]), 4, 3)
    with pytest.raises(ValueError, match="two types"):
        NonEdges(SRC, DST, 4, 3, loops=False)
    non_edges = NonEdges(SRC, DST, 4, 3)
    with pytest.raises(ValueError, match="must not be negative"):
        non_edges.pairs(-1)
    with pytest.raises(IndexError, match=r"targets\[0\] is 3"):
        non_edges.sources_for(np.array([3]), 1)
