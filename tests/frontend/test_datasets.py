"""The generated graphs are what their descriptions say, and the same for the same seed."""

import numpy as np
import pytest

from gnnc.frontend.tools.datasets import NodeTask, citation, power_law, power_law_edges, split


def check(task: NodeTask, nodes: int, features: int, classes: int) -> None:
    assert task.x.shape == (nodes, features)
    assert task.x.dtype == np.float32
    assert task.edge_index.dtype == task.y.dtype == np.int64
    assert task.edge_index.min() >= 0
    assert task.edge_index.max() < nodes
    assert task.classes == classes
    assert set(np.unique(task.y)) <= set(range(classes))
    for mask in (task.train, task.validation, task.test):
        assert mask.shape == (nodes,)
        assert mask.any()


def test_citation_graph():
    task = citation()
    check(task, 2708, 1433, 7)
    assert not (task.train & task.validation | task.train & task.test).any()
    assert not (task.validation & task.test).any()
    assert [m.sum() for m in (task.train, task.validation, task.test)] == [140, 500, 1000]
    source, destination = task.edge_index
    assert 0.75 < (task.y[source] == task.y[destination]).mean() < 0.9
    assert (source != destination).all()
    forward = set(zip(source.tolist(), destination.tolist(), strict=True))
    assert forward == {(b, a) for a, b in forward}
    np.testing.assert_allclose(task.x.sum(1), 1, rtol=1e-5)


def test_seeds():
    one, same, other = (
        citation(100, 200, 50),
        citation(100, 200, 50),
        citation(100, 200, 50, seed=1),
    )
    assert (one.edge_index == same.edge_index).all()
    assert (one.x == same.x).all()
    assert (one.x != other.x).any()


def test_split_of_a_small_graph():
    masks = split(np.arange(12) % 3, 3)
    assert [m.sum() for m in masks] == [6, 2, 4]
    assert (masks[0] ^ masks[1] ^ masks[2]).all()


@pytest.mark.parametrize("edges", [0, 1, 3000])
def test_power_law_edges(edges: int):
    found = power_law_edges(500, edges)
    assert found.shape == (2, edges)
    simple = power_law_edges(500, edges, simple=True)
    assert simple.shape == (2, edges)
    assert (simple[0] != simple[1]).all()
    assert len(np.unique(simple, axis=1).T) == edges


def test_power_law_has_hubs():
    degrees = np.bincount(power_law_edges(1000, 10_000)[1], minlength=1000)
    assert degrees.max() > 8 * degrees.mean()
    assert np.median(degrees) < degrees.mean()


def test_power_law_task():
    check(power_law("x", 100, 300, 8, 5), 100, 8, 5)
