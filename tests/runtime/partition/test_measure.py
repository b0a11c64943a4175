"""Work, halo rows and cut edges are what sets and loops count."""

import numpy as np
import pytest
from hypothesis import given, settings

from gnnc.runtime.partition.edges import Edges
from gnnc.runtime.partition.measure import measure, work_of_nodes

from .graphs import joined, partitions, ring, star


@given(partitions())
@settings(max_examples=100, deadline=None)
def test_measures(drawn: tuple[Edges, np.ndarray, int]):
    edges, owner, parts = drawn
    src, dst = (ends.tolist() for ends in joined(edges))
    found = measure(edges, owner, parts, row_cost=3)
    pairs = {(owner[v], u) for u, v in zip(src, dst, strict=True) if owner[u] != owner[v]}
    rows = np.zeros((parts, parts), np.int64)
    for reader, node in pairs:
        rows[reader, owner[node]] += 1
    np.testing.assert_array_equal(found.rows, rows)
    assert found.volume == len(pairs)
    assert found.halo.tolist() == rows.sum(1).tolist()
    assert found.cut == sum(owner[u] != owner[v] for u, v in zip(src, dst, strict=True))
    assert found.peers.tolist() == [
        len({owner[u] for reader, u in pairs if reader == part}) for part in range(parts)
    ]
    work = [3 * sum(owner == p) + sum(owner[v] == p for v in dst) for p in range(parts)]
    assert found.work.tolist() == work
    if edges.nodes:
        assert found.imbalance == pytest.approx(max(work) / np.mean(work))
        np.testing.assert_array_equal(
            np.bincount(owner, weights=work_of_nodes(edges, 3), minlength=parts), work
        )
    else:
        assert found.imbalance == 1


def test_a_row_is_counted_once_a_reader():
    """Node 0 reads all; those that it reads lie in two other parts."""
    owner = np.array([0, 1, 1, 2, 2, 2], np.int32)
    found = measure(star(5), owner, 3)
    assert found.rows.tolist() == [[0, 2, 3], [0, 0, 0], [0, 0, 0]]
    assert found.peers.tolist() == [2, 0, 0]
    assert found.cut == 5


def test_wrong_arguments():
    owner = np.zeros(4, np.int32)
    with pytest.raises(ValueError, match="parts: 0"):
        measure(ring(4), owner, 0)
    with pytest.raises(ValueError, match="row_cost: 0"):
        measure(ring(4), owner, 1, row_cost=0)
    with pytest.raises(ValueError, match="owner: an array of shape"):
        measure(ring(5), owner, 1)
