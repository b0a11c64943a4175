"""What holds of every batch, and the statistics of draws."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from gnnc.runtime.sampling.batch import Batch
from gnnc.runtime.sampling.in_edges import InEdges, in_edges
from gnnc.runtime.sampling.sampler import Graph

SEEDS = 50
LEAST_P = 0.001
"""A right sampler fails a test with this probability; what is drawn is fixed, so it fails always or
never."""


def random_edges(
    seed: int, nodes: int, edges: int, sources: int | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Edges with hubs, loops, equal edges and nodes without any."""
    rng = np.random.default_rng(seed)
    dst = (nodes * rng.random(edges) ** 2).astype(np.int64)
    return rng.integers(0, sources or nodes, edges), dst


def star(targets: int, degree: int, weights: Sequence[float] | None = None) -> InEdges:
    """Each target has edges from the sources 0 .. degree - 1, in this order."""
    src, dst = np.tile(np.arange(degree), targets), np.repeat(np.arange(targets), degree)
    heavy = None if weights is None else np.tile(np.asarray(weights, float), targets)
    return in_edges(src, dst, max(targets, degree), max(targets, degree), weights=heavy)


def subsets(items: NDArray[Any], ptr: NDArray[Any]) -> dict[tuple[int, ...], int]:
    """How often each sorted tuple of items occurs among the runs that `ptr` cuts."""
    found: dict[tuple[int, ...], int] = {}
    for low, high in itertools.pairwise(ptr.tolist()):
        one = tuple(sorted(items[low:high].tolist()))
        found[one] = found.get(one, 0) + 1
    return found


def check_frequencies(
    expected: dict[tuple[int, ...], float],
    draw: Callable[[int], dict[tuple[int, ...], int]],
) -> None:
    """What 50 seeds draw has these probabilities: the p-values of a chi-square test are uniform by
    the test of Kolmogorov and Smirnov, and the least is above Bonferroni's bound."""
    assert abs(sum(expected.values()) - 1) < 1e-9
    p_values: list[float] = []
    for seed in range(SEEDS):
        found = draw(seed)
        assert set(found) <= {k for k, p in expected.items() if p > 0}
        total = sum(found.values())
        wanted = np.array([total * p for p in expected.values() if p > 0])
        counts = np.array([found.get(k, 0) for k, p in expected.items() if p > 0])
        if len(wanted) > 1:
            p_values.append(float(stats.chisquare(counts, wanted).pvalue))
    assert not p_values or min(p_values) > LEAST_P / SEEDS
    assert not p_values or stats.kstest(p_values, "uniform").pvalue > LEAST_P


def equal_batches(a: Batch, b: Batch) -> bool:
    def same(x: Any, y: Any) -> bool:
        return (x is None and y is None) or np.array_equal(x, y)

    nodes = all(
        same(x.ids, y.ids) and same(x.graphs, y.graphs) and same(x.met, y.met)
        for x, y in zip(a.nodes, b.nodes, strict=True)
    )
    return nodes and all(
        same(x.index, y.index)
        and same(x.ids, y.ids)
        and same(x.ptr, y.ptr)
        and same(x.found, y.found)
        for x, y in zip(a.edges, b.edges, strict=True)
    )


def check_batch(
    batch: Batch,
    graph: Graph,
    ends: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    fanouts: Sequence[Sequence[int]],
    *,
    replace: bool = False,
    blocks: bool = False,
) -> None:
    """What holds of a batch without times, whatever was drawn; `ends` are the edges by id."""
    for r, (source, target) in enumerate(graph.ends):
        edges, src, dst = batch.edges[r], batch.nodes[source], batch.nodes[target]
        index = edges.index
        assert np.array_equal(ends[r][0][edges.ids], src.ids[index[0]])
        assert np.array_equal(ends[r][1][edges.ids], dst.ids[index[1]])
        if src.graphs is not None and dst.graphs is not None:
            assert np.array_equal(src.graphs[index[0]], dst.graphs[index[1]])
        for hop in range(batch.hops):
            low, high = edges.found[hop : hop + 2].tolist()
            first = 0 if blocks or hop == 0 else int(dst.met[hop - 1])
            k, degrees = fanouts[hop][r], graph.relations[r].degrees(dst.ids)
            wanted = np.zeros(dst.ids.size, np.int64)
            expanded = slice(first, int(dst.met[hop]))
            full = k < 0 or np.array(replace) * (degrees == 0)
            wanted[expanded] = np.where(full, degrees, k if replace else np.minimum(degrees, k))[
                expanded
            ]
            got = np.bincount(index[1, low:high], minlength=dst.ids.size)
            assert np.array_equal(got, wanted)
            assert (np.diff(index[1, low:high]) >= 0).all()
            if not replace:
                pairs = np.stack([index[1, low:high], edges.ids[low:high]])
                assert np.unique(pairs, axis=1).shape[1] == high - low
        check_pointers(batch, r, blocks)
    check_order(batch, graph)


def check_pointers(batch: Batch, relation: int, blocks: bool) -> None:
    edges, target = batch.edges[relation], batch.nodes[batch.ends[relation][1]]
    if not blocks:
        counts = np.bincount(edges.index[1], minlength=target.ids.size)
        assert np.array_equal(edges.ptr, np.concatenate([[0], np.cumsum(counts)]))
        return
    for hop in range(batch.hops):
        block = batch.block(hop, relation)
        counts = np.bincount(block.index[1], minlength=block.targets)
        assert counts.size == block.targets == target.met[hop]
        assert np.array_equal(block.ptr, np.concatenate([[0], np.cumsum(counts)]))
        assert block.index[0].max(initial=-1) < block.sources


def check_order(batch: Batch, graph: Graph) -> None:
    """Nodes are numbered by first occurrence in the order of hops, relations and edges; but for
    repeated seeds each occurs once in its graph."""
    for t, nodes in enumerate(batch.nodes):
        seeds = int(nodes.met[0])
        later = [np.arange(seeds)]
        for hop in range(batch.hops):
            for r, (source, _) in enumerate(graph.ends):
                if source == t:
                    low, high = batch.edges[r].found[hop : hop + 2].tolist()
                    later.append(batch.edges[r].index[0, low:high])
        order = np.concatenate(later)
        _, first = np.unique(order, return_index=True)
        assert np.array_equal(order[np.sort(first)], np.arange(nodes.ids.size))
        names = nodes.ids if nodes.graphs is None else nodes.ids + nodes.graphs * graph.counts[t]
        new = names[seeds:]
        assert np.unique(new).size == new.size and not np.isin(new, names[:seeds]).any()
