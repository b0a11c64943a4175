"""Methods of cutting a graph: each gives every node a part, and measures decide which is taken."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnc.runtime.partition import metis
from gnnc.runtime.partition.assign import METHODS, REFINED, WITHOUT, Task, partition
from gnnc.runtime.partition.edges import Edges, in_memory
from gnnc.runtime.partition.measure import measure
from gnnc.runtime.partition.pack import pack
from gnnc.runtime.partition.refine import refine

from .graphs import blobs, multigraphs, partitions, ring, star

SHAPES = {
    "nothing": in_memory(np.zeros(0, np.int64), np.zeros(0, np.int64), 0),
    "one node": ring(1),
    "no edges": in_memory(np.zeros(0, np.int64), np.zeros(0, np.int64), 50),
    "loops alone": in_memory(np.arange(30), np.arange(30), 30),
    "ring": ring(100),
    "star": star(60),
    "star that is read": in_memory(np.zeros(60, np.int64), np.arange(1, 61), 61),
    "groups apart": blobs(9, 12, 0),
    "groups": blobs(6, 30, 40),
    "one edge, many times": in_memory(np.full(90, 3), np.full(90, 7), 40),
}


def check(task: Task, owner: np.ndarray) -> None:
    assert owner.dtype == np.int32
    assert owner.shape == (task.edges.nodes,)
    assert task.edges.nodes == 0 or 0 <= owner.min() <= owner.max() < task.parts


@pytest.mark.parametrize("parts", [2, 3, 7, 64])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_method_on_every_shape(shape: str, parts: int):
    task = Task(SHAPES[shape], parts)
    found = partition(task, list(METHODS))
    assert [c.method for c in found.candidates][: len(METHODS)] == list(METHODS)
    for candidate in found.candidates:
        assert (candidate.owner is None) == (candidate.why_not is not None)
        if candidate.owner is not None:
            check(task, candidate.owner)
    check(task, found.owner)
    # first what is heaviest: no part has more than the mean and one node
    work = np.bincount(found.owner, weights=task.work, minlength=parts)
    heaviest = task.work.max(initial=0)
    assert work.max() <= max(1.05 * work.mean(), work.mean() + heaviest)


@pytest.mark.parametrize("shape", SHAPES)
def test_one_part(shape: str):
    """There is one assignment: no method is tried, and the graph is not in memory."""
    task = Task(SHAPES[shape], 1)
    found = partition(task)
    check(task, found.owner)
    assert [c.method for c in found.candidates] == [found.method] == ["whole"]
    assert found.measures.imbalance == 1 and found.measures.volume == 0
    assert "graph" not in vars(task)
    with pytest.raises(ValueError, match="methods: there is no 'x'"):
        partition(task, ["x"])


@given(multigraphs(), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_every_method_on_multigraphs(edges: Edges, parts: int):
    task = Task(edges, parts)
    for candidate in partition(task, list(METHODS)).candidates:
        if candidate.owner is not None:
            check(task, candidate.owner)


@given(partitions(), st.floats(1, 2))
@settings(max_examples=150, deadline=None)
def test_moves_lower_the_volume_within_bounds(drawn: tuple[Edges, np.ndarray, int], limit: float):
    edges, owner, parts = drawn
    task = Task(edges, parts, limit)
    bound = task.graph.bound(parts, limit)
    found = refine(task.graph, owner, np.full(parts, bound))
    check(task, found)
    before, after = (measure(edges, o, parts) for o in (owner, found))
    if before.work.max() <= bound:
        assert after.volume <= before.volume
        assert after.work.max() <= bound
    else:
        assert after.work.max() <= before.work.max()


def test_moves_bring_parts_within_bounds():
    edges = blobs(4, 50, 100)
    task = Task(edges, 4)
    found = refine(task.graph, np.zeros(200, np.int32), np.full(4, task.graph.bound(4, 1.05)))
    assert measure(edges, found, 4).imbalance <= 1.05


def test_moves_find_what_belongs_together():
    """Of a ring's two arcs, with a few nodes strewn into the other, nothing stays strewn."""
    owner = (np.arange(400) >= 200).astype(np.int32)
    strewn = owner.copy()
    strewn[[20, 60, 130]] = 1
    strewn[[220, 330, 390]] = 0
    task = Task(ring(400), 2)
    found = refine(task.graph, strewn, np.full(2, task.graph.bound(2, 1.05)))
    assert measure(ring(400), strewn, 2).volume > 8
    assert measure(ring(400), found, 2).volume == 2


@pytest.mark.parametrize("method", [None, "bisection", "metis-k-way"])
def test_groups_are_found(method: str | None):
    edges = blobs(8, 40, 12)
    found = partition(Task(edges, 8), method and [method])
    assert found.measures.imbalance <= 1.05
    assert found.measures.volume <= 4 * 24


@pytest.mark.parametrize("count", [4, 8])
def test_components_are_whole_where_they_fit(count: int):
    found = partition(Task(blobs(8, 20, 0), count), ["components"])
    assert found.measures.volume <= 8
    assert found.measures.imbalance <= 1.05


def test_a_component_above_the_mean_is_split():
    ring_ = np.arange(300)
    edges = in_memory(ring_, (ring_ + 1) % 300, 400)
    found = partition(Task(edges, 4, limit=1.1), ["components"])
    assert found.measures.imbalance <= 1.1
    assert found.measures.volume <= 8


def test_without_pymetis(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    monkeypatch.setattr(metis, "find_spec", lambda name: None)
    found = partition(Task(blobs(8, 40, 12), 4))
    assert [c.method for c in found.candidates] == [*WITHOUT, "bisection" + REFINED]
    assert found.measures.imbalance <= 1.05
    assert found.measures.volume <= 100
    with pytest.raises(ValueError, match=r"none can be used \(metis: pymetis is not installed"):
        partition(Task(ring(9), 2), ["metis"])


def test_the_choice():
    """The least volume among those within the limit; the best balanced where none is."""
    task = Task(blobs(6, 30, 60), 3)
    found = partition(task, list(METHODS))
    tried = [c.measures for c in found.candidates if c.measures is not None]
    within = [m.volume for m in tried if m.imbalance <= 1.05]
    assert found.measures.imbalance <= 1.05
    assert found.measures.volume == min(within)
    found = partition(Task(task.edges, 3, limit=1), ["metis", "greedy"])
    assert found.measures.imbalance == min(
        c.measures.imbalance for c in found.candidates if c.measures is not None
    )


def test_the_same_for_the_same_seed():
    task, same = (Task(blobs(6, 30, 60), 4, seed=3) for _ in range(2))
    for name in METHODS:
        if METHODS[name].why_not(task) is None:
            np.testing.assert_array_equal(
                partition(task, [name]).owner, partition(same, [name]).owner, name
            )


def test_pack():
    part = pack(np.array([5, 9, 1, 4, 4, 3]), 2)
    assert sorted(np.bincount(part, weights=[5, 9, 1, 4, 4, 3])) == [13, 13]


def test_wrong_arguments():
    edges = ring(4)
    for arguments, text in (
        ({"parts": 0}, "parts: 0"),
        ({"parts": 2, "limit": 0.9}, "limit: 0.9"),
        ({"parts": 2, "limit": float("nan")}, "limit: nan"),
        ({"parts": 2, "row_cost": 0}, "row_cost: 0"),
        ({"parts": 2, "seed": -1}, "seed: -1"),
    ):
        with pytest.raises(ValueError, match=text):
            Task(edges, **arguments)
    with pytest.raises(ValueError, match="methods: there is no 'mets', only metis, "):
        partition(Task(edges, 2), ["mets"])
    with pytest.raises(ValueError, match="methods: none can be used"):
        partition(Task(edges, 2), [])
