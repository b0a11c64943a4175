import numpy as np
import pytest

from gnnc.frontend.morph.cache import DegreeCache


@pytest.fixture
def graph():
    draw = np.random.default_rng(3)
    degrees = draw.zipf(1.6, 300).clip(0, 80) - 1
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    indices = draw.integers(0, 300, indptr[-1]).astype(np.int32)
    return indptr, indices, draw.random((300, 6), dtype=np.float32)


@pytest.mark.parametrize("size", [0, 1000, 5000, 10**6])
def test_reads_are_those_of_the_graph(graph, size):
    indptr, indices, features = graph
    cache = DegreeCache(*graph, size)
    ids = np.random.default_rng(0).integers(0, 300, 500)
    assert (cache.rows(ids) == features[ids]).all()
    starts, lists = cache.neighbours(ids)
    for i, node in enumerate(ids):
        expected = indices[indptr[node] : indptr[node + 1]]
        assert (lists[starts[i] : starts[i + 1]] == expected).all()
    assert starts[-1] == len(lists)
    for hits in (cache.features, cache.adjacency):
        assert hits.hits + hits.misses == 500
        assert (hits.rate == 0) == (size == 0)
    assert (cache.features.rate == 1) == (size == 10**6)


def test_hottest_nodes_come_first_and_fit(graph):
    indptr, indices, _ = graph
    cache = DegreeCache(*graph, 4000, adjacency_share=0.25)
    lists, rows = cache.nodes
    assert rows == 3000 // 24
    hot = np.argsort(-np.diff(indptr), kind="stable")
    size = np.diff(indptr)[hot] * 4 + 8
    assert size[:lists].sum() <= 1000 < size[: lists + 1].sum()
    cache.rows(hot[:rows])
    assert (cache.features.hits, cache.features.misses) == (rows, 0)
    cache.rows(hot[rows:])
    assert cache.features.misses == 300 - rows
    assert cache.features.bytes_moved == 24 * (300 - rows)
    assert cache.features.bytes_saved == 24 * rows


def test_reads_by_degree_hit_more_than_the_share_of_nodes(graph):
    _, indices, _ = graph
    popular = np.bincount(indices, minlength=300)
    cache = DegreeCache(*graph, 60 * 24, adjacency_share=0, degrees=popular)
    cache.rows(indices.astype(np.int64))
    assert cache.features.rate > 60 / 300
    assert cache.features.hits == np.sort(popular)[::-1][:60].sum()


def test_only_misses_go_over_the_link(graph):
    moved = []
    cache = DegreeCache(*graph, 2000, over_link=lambda a: (moved.append(a.nbytes), a)[1])
    cache.rows(np.arange(300))
    cache.neighbours(np.arange(300))
    assert sum(moved) == cache.features.bytes_moved + cache.adjacency.bytes_moved
    empty = np.zeros(0, dtype=np.int64)
    assert cache.rows(empty).shape == (0, 6)
    assert cache.neighbours(empty)[1].shape == (0,)


def test_wrong_arguments_are_named(graph):
    indptr, indices, features = graph
    with pytest.raises(ValueError, match="not of one graph"):
        DegreeCache(indptr, indices[1:], features, 10)
    with pytest.raises(ValueError, match="size"):
        DegreeCache(*graph, -1)
    with pytest.raises(ValueError, match="adjacency_share"):
        DegreeCache(*graph, 1, adjacency_share=1.5)
    with pytest.raises(ValueError, match="degrees"):
        DegreeCache(*graph, 1, degrees=indptr)
