"""Assignments from blocks of edges: as good whatever the blocks, and in bounded memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from gnnc.runtime.partition.edges import in_file
from gnnc.runtime.partition.measure import measure
from gnnc.runtime.partition.moves import admitted
from gnnc.runtime.partition.stream import stream

from .graphs import blobs, joined


def test_blocks_do_not_matter(tmp_path: Path):
    edges = blobs(4, 60, 50)
    np.save(tmp_path / "edges.npy", np.stack(joined(edges)))
    wanted = stream(edges, 4, 1.05, 0, sample=500)
    for block in (19, 10**6):
        found = stream(in_file(tmp_path / "edges.npy", block=block), 4, 1.05, 0, sample=500)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("passes", [0, 20])
def test_a_part_of_the_edges_tells_much(passes: int):
    edges = blobs(4, 100, 50)
    owner = stream(edges, 4, 1.2, 0, passes=passes, sample=1500)  # of 4900
    found = measure(edges, owner, 4)
    assert found.imbalance <= 1.2
    assert found.cut < 0.2 * 4900


def test_moves_after_the_sample_help():
    edges = blobs(4, 100, 50)
    cuts = [measure(edges, stream(edges, 4, 1.2, 0, passes=n, sample=400), 4).cut for n in (0, 20)]
    assert cuts[1] < 0.7 * cuts[0]


def test_memory_does_not_grow_with_edges(tmp_path: Path):
    random = np.random.default_rng(0)
    np.save(tmp_path / "edges.npy", random.integers(0, 1000, (2, 400_000), dtype=np.int32))
    edges = in_file(tmp_path / "edges.npy", nodes=1000, block=2000)
    tracemalloc.start()
    owner = stream(edges, 4, 1.05, 0, sample=3000)
    found = measure(edges, owner, 4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.imbalance <= 1.05
    assert peak < 1_000_000  # the edges are 3.2 MB


def test_parts_that_are_full_exchange_nodes():
    source, target = np.array([0, 1, 0]), np.array([1, 0, 1])
    work = np.array([5, 5, 5])
    assert admitted(source, target, work, np.array([5.0, 0.0])).tolist() == [True, True, False]
    assert admitted(source, target, work, np.array([4.0, 4.0])).tolist() == [False] * 3
    work = np.array([9, 2, 3])  # one that finds no room does not keep others out
    assert admitted(source, target, work, np.array([0.0, 4.0])).tolist() == [False, True, True]


def test_wrong_arguments():
    with pytest.raises(ValueError, match="parts: 0"):
        stream(blobs(2, 2, 0), 0, 1.05, 0)
    with pytest.raises(ValueError, match="sample: 0"):
        stream(blobs(2, 2, 0), 1, 1.05, 0, sample=0)
    with pytest.raises(ValueError, match="row_cost: -1"):
        stream(blobs(2, 2, 0), 1, 1.05, 0, row_cost=-1)
