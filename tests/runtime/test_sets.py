import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings

from gnnc.runtime.cpu import toolchain
from gnnc.runtime.sets.sets import MapData, SetData

from .multigraphs import Multigraph, multigraphs


def edges_of(graph: Multigraph) -> SetData:
    return SetData(
        graph.edges,
        {
            "src": MapData.of(graph.src, graph.nodes),
            "dst": MapData.of(graph.dst, graph.nodes),
            "rel": MapData.of(graph.rel, graph.relations),
        },
    )


@settings(max_examples=40, deadline=None)
@given(graph=multigraphs())
def test_groups_and_pairs(graph: Multigraph):
    edges = edges_of(graph)
    csc = edges.group("dst")
    np.testing.assert_array_equal(csc.rows, np.argsort(graph.dst, kind="stable"))
    assert edges.group("dst") is csc

    pairs = edges.pairs(("rel", "src"))
    rel, src = (pairs.set.map(k).array for k in ("rel", "src"))
    listed = list(zip(rel.tolist(), src.tolist(), strict=True))
    assert listed == sorted(set(zip(graph.rel.tolist(), graph.src.tolist(), strict=True)))
    np.testing.assert_array_equal(src[pairs.row_map.array], graph.src)
    first = [np.flatnonzero(pairs.row_map.array == j)[0] for j in range(pairs.count)]
    np.testing.assert_array_equal(pairs.first, first)
    for j in range(min(pairs.count, 20)):
        rows = pairs.rows[pairs.ptr[j] : pairs.ptr[j + 1]]
        np.testing.assert_array_equal(rows, np.flatnonzero(pairs.row_map.array == j))
    by_source = pairs.set.group("src")
    np.testing.assert_array_equal(np.diff(by_source.ptr), np.bincount(src, minlength=graph.nodes))


def test_nothing_is_compiled_for_a_new_graph():
    def use(count: int):
        edges = SetData(count, {"dst": MapData.of(np.zeros(count, np.int64), count)})
        return edges.group("dst")

    use(3)
    before = toolchain.stats().compiled
    use(5)
    assert toolchain.stats().compiled == before


def test_maps_are_checked_when_first_read():
    edges = SetData(2, {"src": MapData.of(np.array([0, 7]), 3, what="edge_index[0]")})
    for read in (lambda: edges.group("src"), lambda: edges.map("src").array, edges.check):
        with pytest.raises(IndexError, match=r"edge_index\[0\]\[1\] is 7"):
            read()


def test_identity_needs_no_array():
    identity = MapData.identity(4)
    group = SetData(4, {"dst": identity}).group("dst")
    assert group.ptr.tolist() == [0, 1, 2, 3, 4]
    assert group.rows.tolist() == [0, 1, 2, 3]
    other = MapData.of(np.array([2, 0, 0, 1]), 3)
    assert identity.then(other) is other
    assert other.then(MapData.identity(3)) is other
    assert identity.of_rows(np.array([3, 1], np.int32)).array.tolist() == [3, 1]


def test_composition():
    first = MapData.of(np.array([1, -1, 0]), 2, partial=True)
    second = MapData.of(np.array([5, 6]), 7)
    both = first.then(second)
    assert both.array.tolist() == [6, -1, 5]
    assert both.partial
    assert both.codomain == 7
    assert both.of_rows(np.array([2, 2], np.int32)).array.tolist() == [5, 5]
    with pytest.raises(ValueError, match="into 7 rows cannot be followed by a map of 3 rows"):
        second.then(first)
    with pytest.raises(IndexError, match=r"\[0\] is -2"):
        _ = MapData.of(np.array([-2]), 2, partial=True).array


def test_partial_groups():
    group = SetData(4, {"old": MapData.of(np.array([1, -1, 0, 1]), 2, partial=True)}).group("old")
    assert group.rows.tolist() == [2, 0, 3]
    assert group.ptr.tolist() == [0, 1, 3]


def test_sizes_must_agree():
    with pytest.raises(ValueError, match="'src' has 2 entries, but the set has 3 rows"):
        SetData(3, {"src": MapData.identity(2)})
    with pytest.raises(ValueError, match="parts"):
        SetData(3, parts=(1, 1))
    with pytest.raises(ValueError, match="between 0 and"):
        SetData(2**31)
    with pytest.raises(KeyError, match="no map 'rel'; it has dst, src"):
        SetData(1, {"src": MapData.identity(1), "dst": MapData.identity(1)}).group("rel")


def test_a_set_is_freed_at_once():
    values = np.zeros(1000, np.int64)
    edges = SetData(1000, {"dst": MapData.of(values, 1), "src": MapData.of(values, 1)})
    edges.group("src")
    edges.pairs(("dst", "src"))
    gone = weakref.ref(edges.group("dst").rows)
    borrowed = weakref.ref(values)
    del values
    assert borrowed() is None, "the checked maps keep the user's array"
    gc.disable()
    try:
        del edges
        assert gone() is None
    finally:
        gc.enable()


def test_threads_share_one_group():
    edges = SetData(1000, {"dst": MapData.of(np.arange(1000) % 7, 7)})
    start, found = threading.Barrier(4), []

    def work():
        start.wait()
        found.append(edges.group("dst"))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(map(id, found))) == 1


def test_maps_counted_from_elsewhere():
    found = MapData.of(np.array([5, 7, 6]), 3, what="ends", first=5)
    assert found.array.tolist() == [0, 2, 1]
    with pytest.raises(IndexError, match=r"ends\[1\] is 4, but it must be between 5 and 7"):
        _ = MapData.of(np.array([5, 4]), 3, what="ends", first=5).array


def test_values_are_written_without_being_kept():
    asked: list[int] = []

    def fill(out: np.ndarray) -> None:
        asked.append(len(out))
        out[:] = [2, 0, 1]

    found = MapData(3, 3, fill)
    for times in (1, 2):
        out = np.zeros(3, np.int32)
        found.write(out)
        assert out.tolist() == [2, 0, 1] and len(asked) == times
    assert found.array.tolist() == [2, 0, 1] and len(asked) == 3
    found.write(out)
    assert len(asked) == 3
    rows = np.array([1, 1], np.int32)
    assert found.over(rows) is rows and rows.tolist() == [0, 0]
    assert MapData.identity(3).over(rows) is rows and rows.tolist() == [0, 0]


@settings(max_examples=20, deadline=None)
@given(graph=multigraphs())
def test_outlines(graph: Multigraph):
    """Sizes and where groups begin stay, what is said of each row goes."""
    edges = edges_of(graph)
    ptr, first = edges.group("dst").ptr, edges.pairs(("rel", "src")).ptr
    gone = weakref.ref(edges.group("dst").rows)
    found = edges.outline()
    del edges
    assert gone() is None
    assert found.size == graph.edges and found.map("src").codomain == graph.nodes
    np.testing.assert_array_equal(found.group("dst").ptr, ptr)
    np.testing.assert_array_equal(found.pairs(("rel", "src")).ptr, first)
    pairs = found.pairs(("rel", "src"))
    for read in (
        lambda: found.map("src").array,
        lambda: found.group("dst").rows,
        lambda: found.group("src"),
        lambda: pairs.row_map.array,
        lambda: pairs.rows,
        lambda: pairs.set.map("rel").array,
    ):
        with pytest.raises(RuntimeError, match="was given up when the tables"):
            read()


def test_the_outline_of_the_identity_is_itself():
    identity = MapData.identity(3)
    _ = identity.array
    assert identity.outline().array.tolist() == [0, 1, 2]
