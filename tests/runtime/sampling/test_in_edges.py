"""Edges by the node they lead to."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from gnnc.runtime import mapped
from gnnc.runtime.sampling.in_edges import InEdges, checked, in_edges
from gnnc.runtime.sampling.sampler import NeighborSampler

from .checks import equal_batches, random_edges


@pytest.mark.parametrize("nodes, edges", [(1, 0), (1, 5), (300, 4000)])
def test_against_scipy(nodes: int, edges: int):
    src, dst = random_edges(0, nodes, edges)
    found = in_edges(src, dst, nodes, nodes)
    order = np.argsort(dst, kind="stable")
    assert np.array_equal(found.indices, src[order])
    ids = np.arange(edges) if found.ids is None else found.ids
    assert np.array_equal(ids, order)
    matrix = sparse.coo_array((np.ones(edges), (src, dst)), (nodes, nodes)).tocsc()
    counts = np.diff(found.indptr)
    assert np.array_equal(counts, np.bincount(dst, minlength=nodes))
    assert (matrix.sum(0) == counts).all()
    assert np.array_equal(found.degrees(np.array([0])), counts[:1])


def test_sorted_edges_need_no_ids():
    src, dst = random_edges(1, 50, 200)
    assert in_edges(src, np.sort(dst), 50, 50).ids is None
    assert in_edges(src, dst, 50, 50).ids is not None


def test_times_ascend_within_a_node_and_weights_go_with_their_edges():
    src, dst = random_edges(2, 40, 600)
    rng = np.random.default_rng(3)
    times, weights = rng.integers(-5, 5, 600), rng.random(600).astype(np.float32)
    weights[::7] = 0
    found = in_edges(src, dst, 40, 40, weights=weights, times=times)
    kept = np.flatnonzero(weights)
    order = kept[np.lexsort((kept, times[kept], dst[kept]))]
    assert np.array_equal(found.ids, order)
    assert np.array_equal(found.indices, src[order])
    assert np.array_equal(found.times, times[order])
    assert np.array_equal(found.weights, weights[order].astype(np.float64))
    for v in range(40):
        edges = slice(found.indptr[v], found.indptr[v + 1])
        assert np.array_equal(found.sums[edges], np.cumsum(found.weights[edges]))


SRC, DST = np.array([0, 1, 2]), np.array([1, 1, 0])


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(src=np.array([0, 1, 3])), IndexError, r"the source of an edge\[2\] is 3"),
        (dict(dst=np.array([0, -1, 1])), IndexError, r"the target of an edge\[1\] is -1"),
        (dict(src=np.array([0.0, 1, 2])), TypeError, "must hold integers"),
        (dict(src=np.array([0, 1])), ValueError, "src has 2 entries and dst has 3"),
        (dict(weights=np.array([1.0, -1, 1])), ValueError, r"weights\[1\] is -1.0"),
        (dict(weights=np.array([1.0, 1, np.nan])), ValueError, r"weights\[2\] is nan"),
        (dict(weights=np.array([1e308, 1e308, 1])), ValueError, "not finite"),
        (dict(weights=np.ones(2)), ValueError, r"weights must have shape \(3,\)"),
        (dict(weights=np.array(["a", "b", "c"])), TypeError, "weights must hold numbers"),
        (dict(times=np.ones(3)), TypeError, "times must hold integers"),
        (dict(times=np.uint64([1, 2**63, 3])), ValueError, r"times\[1\] is 9223372036854775808"),
        (dict(times=np.ones((3, 1), int)), ValueError, r"times must have shape \(3,\)"),
        (dict(sources=-1), ValueError, "the number of source nodes is -1"),
    ],
)
def test_bad_edges(change: dict, error: type, message: str):
    given = dict(src=SRC, dst=DST, sources=3, targets=2) | change
    with pytest.raises(error, match=message):
        in_edges(**given)


INDPTR, INDICES = np.array([0, 2, 3]), np.array([0, 2, 1], np.int32)


def test_given_edges_are_not_copied():
    found = checked(INDPTR, INDICES, 3, times=np.array([1, 2, 0]))
    assert found.indptr is INDPTR and found.indices is INDICES
    assert found.targets == 2 and found.sources == 3


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(indptr=INDPTR.astype(np.int32)), TypeError, "indptr must be int64"),
        (dict(indptr=np.array([0, 9, 2, 9, 3])[::2]), ValueError, "indptr must .* be contiguous"),
        (dict(indptr=np.array([0, 2, 2])), ValueError, "from 0 to the number of edges, 3"),
        (dict(indptr=np.zeros(0, np.int64)), ValueError, "from 0 to the number of edges, 3"),
        (dict(indptr=np.array([0, 4, 3])), ValueError, "indptr descends at 1"),
        (dict(indices=np.array([0, 2, 1])), TypeError, "indices must be int32"),
        (dict(indices=np.array([0, 3, 1], np.int32)), IndexError, "indices holds 3"),
        (dict(indices=np.array([0, -2, 1], np.int32)), IndexError, "indices holds -2"),
        (dict(ids=np.array([0, 1], np.int32)), ValueError, "ids has 2 entries"),
        (dict(weights=np.array([1.0, 0, 1])), ValueError, r"weights\[1\] is 0"),
        (dict(times=np.array([2, 1, 0])), ValueError, r"times\[1\] is before"),
    ],
)
def test_bad_given_edges(change: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        checked(**(dict(indptr=INDPTR, indices=INDICES, sources=3) | change))


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(indptr=INDPTR.astype(np.int32)), TypeError, "indptr must be int64"),
        (dict(indptr=np.array([0, 9, 2, 9, 3])[::2]), ValueError, "indptr must .* be contiguous"),
        (dict(indptr=INDPTR[:2]), ValueError, "indptr has 2 entries for 2 targets"),
        (dict(indices=INDICES.astype(np.int64)), TypeError, "indices must be int32"),
        (dict(ids=INDICES[:1]), ValueError, "ids has 1 entries"),
        (dict(times=INDICES), TypeError, "times must be int64"),
        (dict(weights=np.ones(3)), ValueError, "weights and their sums, or neither"),
    ],
)
def test_arrays_that_c_could_not_read(change: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        InEdges(**(dict(sources=3, targets=2, indptr=INDPTR, indices=INDICES) | change))


def test_edges_in_files(tmp_path: Path):
    """A graph that is mapped, not read, gives the same batches."""
    src, dst = random_edges(4, 60, 800)
    made = in_edges(src, dst, 60, 60)
    for name in ("indptr", "indices", "ids"):
        np.save(tmp_path / f"{name}.npy", getattr(made, name))
    indptr, indices, ids = (
        mapped.load(tmp_path / f"{n}.npy") for n in ("indptr", "indices", "ids")
    )
    filed = checked(indptr, indices, 60, ids=ids)
    assert filed.indices is indices
    a, b = (NeighborSampler(g, [3, 3]).sample(np.arange(9)) for g in (made, filed))
    assert equal_batches(a, b)
