"""What the structure kernels must give, in NumPy; also run on its own under the sanitizers."""

from __future__ import annotations

import numpy as np

from gnnc.runtime.sets.arrangement import Arranged, Arrangement, Order
from gnnc.runtime.sets.sets import kernels

from .multigraphs import Multigraph


def check_group(keys: np.ndarray, count: int) -> None:
    ptr, rows = kernels.group(keys, count)
    assert ptr.dtype == np.int64
    assert rows.dtype == np.int32
    np.testing.assert_array_equal(rows, np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(np.diff(ptr), np.bincount(keys, minlength=count))
    assert ptr[0] == 0


def check_partial_group(keys: np.ndarray, count: int, dropped: np.ndarray) -> None:
    keys = np.where(dropped, -1, keys)
    ptr, rows = kernels.group(keys, count, partial=True)
    order = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(rows, order[keys[order] >= 0])
    np.testing.assert_array_equal(np.diff(ptr), np.bincount(keys[keys >= 0], minlength=count))


def check_group_in_order(keys: np.ndarray, count: int, order: np.ndarray) -> None:
    _, rows = kernels.group(keys, count, order.astype(np.int32))
    np.testing.assert_array_equal(rows, order[np.argsort(keys[order], kind="stable")])


def check_runs(columns: list[np.ndarray], counts: list[int]) -> None:
    narrow = [kernels.narrow(key, count) for key, count in zip(columns, counts, strict=True)]
    found = kernels.runs(narrow, counts)
    tuples = np.stack(columns, 1)
    distinct, first, run = np.unique(tuples, axis=0, return_index=True, return_inverse=True)
    assert found.found == len(distinct)
    np.testing.assert_array_equal(found.first, first)
    np.testing.assert_array_equal(found.run, run.reshape(-1))
    np.testing.assert_array_equal(found.order, np.lexsort(columns[::-1]))
    np.testing.assert_array_equal(np.diff(found.start), np.bincount(run.reshape(-1)))
    assert found.start[0] == 0


def check_filters(src: np.ndarray, dst: np.ndarray, nodes: int) -> None:
    a, b = kernels.narrow(src, nodes), kernels.narrow(dst, nodes)
    np.testing.assert_array_equal(kernels.where(src < dst), np.flatnonzero(src < dst))
    np.testing.assert_array_equal(kernels.where_different(a, b), np.flatnonzero(src != dst))
    last = np.full(nodes, -1)
    for edge in np.flatnonzero(src == dst):
        last[src[edge]] = edge
    np.testing.assert_array_equal(kernels.last_loop(a, b, nodes), last)


def check_arrangement(src: np.ndarray, dst: np.ndarray, nodes: int, rows: bool) -> None:
    """By one map with the rows as well, by another in whose order one map or none is read."""
    orders = (Order(1, True, (0, 1)), Order(0, rows, () if rows else (1,)))
    made = Arrangement(("src", "dst"), orders).arranged([src, dst.astype(np.int32)], [nodes] * 2)
    assert isinstance(made, Arranged)
    for x, checked in zip((src, dst), made.maps, strict=True):
        np.testing.assert_array_equal(checked, x.astype(np.int32), strict=True)
    for o, (ptr, found, taken) in zip(orders, made.orders, strict=True):
        narrow = made.maps[o.by]
        starts, order = kernels.group(narrow, nodes)
        np.testing.assert_array_equal(ptr, starts, strict=True)
        assert (found is not None) == o.rows
        if found is not None:
            np.testing.assert_array_equal(found, order, strict=True)
        for k, x in zip(o.taken, taken, strict=True):
            np.testing.assert_array_equal(x, made.maps[k][order], strict=True)


def check_all(graph: Multigraph, rng: np.random.Generator) -> None:
    check_group(graph.dst, graph.nodes)
    check_group(graph.rel, graph.relations)
    check_group(np.sort(graph.dst), graph.nodes)
    check_partial_group(graph.dst, graph.nodes, rng.random(graph.edges) < 0.3)
    check_group_in_order(graph.dst, graph.nodes, rng.permutation(graph.edges))
    check_runs([graph.rel, graph.src], [graph.relations, graph.nodes])
    check_runs([graph.dst], [graph.nodes])
    check_filters(graph.src, graph.dst, graph.nodes)
    check_arrangement(graph.src, graph.dst, graph.nodes, rows=True)
    by_target = np.argsort(graph.dst, kind="stable")
    check_arrangement(graph.src[by_target], graph.dst[by_target], graph.nodes, rows=False)
    table = rng.integers(0, 100, graph.nodes).astype(np.int32)
    rows = np.where(rng.random(graph.edges) < 0.2, -1, graph.src).astype(np.int32)
    taken = kernels.take(table, rows)
    np.testing.assert_array_equal(taken, np.where(rows < 0, -1, table[rows]))
