"""No seed sees what came after its time."""

import itertools

import numpy as np
import pytest

from gnnc.runtime.sampling.in_edges import InEdges, in_edges
from gnnc.runtime.sampling.sampler import Graph, Key, NeighborSampler, Seeds

from .checks import check_frequencies, equal_batches, random_edges, subsets

NODES, EDGES = 100, 3000


def temporal(weighted: bool = False) -> tuple[InEdges, np.ndarray, np.ndarray, np.ndarray]:
    src, dst = random_edges(0, NODES, EDGES)
    times = np.random.default_rng(1).integers(0, 50, EDGES)
    weights = np.ones(EDGES) if weighted else None
    return in_edges(src, dst, NODES, NODES, times=times, weights=weights), src, dst, times


SEEDS = np.array([4, 30, 4, 99, 0])
LIMITS = np.array([25, 60, 3, -1, 49])


@pytest.mark.parametrize("pick", ["uniform", "weighted", "last"])
@pytest.mark.parametrize("replace", [False, True])
def test_edges_are_not_later_than_the_seed(fine: None, pick: str, replace: bool):
    if pick == "last" and replace:
        return
    graph, src, dst, times = temporal(pick == "weighted")
    for fanouts in ([3, 2, 2], [-1, -1]):
        sampler = NeighborSampler(graph, fanouts, pick=pick, replace=replace, disjoint=True)
        batches = [sampler.sample(Seeds((SEEDS,), times=LIMITS), Key(3), threads=t) for t in (1, 4)]
        assert equal_batches(*batches)
        nodes, edges = batches[0].nodes[0], batches[0].edges[0]
        graphs = nodes.graphs[edges.index[1]]
        assert (times[edges.ids] <= LIMITS[graphs]).all()
        assert np.array_equal(src[edges.ids], nodes.ids[edges.index[0]])
        assert np.array_equal(dst[edges.ids], nodes.ids[edges.index[1]])
        allowed = np.array(
            [
                ((dst == v) & (times <= LIMITS[g])).sum()
                for v, g in zip(nodes.ids, nodes.graphs, strict=True)
            ]
        )
        for hop, k in enumerate(fanouts):
            first = 0 if hop == 0 else int(nodes.met[hop - 1])
            here = slice(first, int(nodes.met[hop]))
            full = allowed if k < 0 else np.where(allowed == 0, 0, k)
            wanted = full if replace or k < 0 else np.minimum(allowed, full)
            assert np.array_equal(np.diff(edges.ptr)[here], wanted[here])
        if pick == "last" and fanouts[0] > 0:
            for i in range(int(nodes.met[1])):
                mine = (dst == nodes.ids[i]) & (times <= LIMITS[nodes.graphs[i]])
                got = np.sort(times[edges.ids[edges.ptr[i] : edges.ptr[i + 1]]])
                assert np.array_equal(got, np.sort(times[mine])[::-1][: got.size][::-1])


def test_relations_with_and_without_times():
    graph, *_ = temporal()
    plain = in_edges(*random_edges(5, NODES, 300), NODES, NODES)
    both = Graph((NODES,), (graph, plain), ((0, 0), (0, 0)))
    batch = NeighborSampler(both, [-1], disjoint=True).sample(Seeds((SEEDS,), times=LIMITS - 100))
    assert batch.edges[0].ids.size == 0
    assert batch.edges[1].ids.size == plain.degrees(SEEDS).sum()


def test_what_is_allowed_is_drawn_uniformly():
    """Of six sources of each node the four first are early enough."""
    targets = 2000
    src, dst = np.tile(np.arange(6), targets), np.repeat(np.arange(targets), 6)
    graph = in_edges(src, dst, targets, targets, times=np.tile(np.arange(6), targets))
    sampler = NeighborSampler(graph, [2], disjoint=True)
    seeds = Seeds((np.arange(targets),), times=np.full(targets, 3))
    expected = {pair: 1 / 6 for pair in itertools.combinations(range(4), 2)}

    def draw(seed: int) -> dict[tuple[int, ...], int]:
        batch = sampler.sample(seeds, Key(seed), threads=1)
        sources = batch.nodes[0].ids[batch.edges[0].index[0]]
        return subsets(sources, batch.edges[0].ptr[: targets + 1])

    check_frequencies(expected, draw)


def test_seeds_of_one_graph():
    """Two seeds may share a graph, which then has the time of both."""
    graph, *_ = temporal()
    seeds = Seeds((np.array([1, 2, 3]),), (np.array([0, 1, 0]),), np.array([50, 50]))
    batch = NeighborSampler(graph, [2], disjoint=True).sample(seeds)
    assert batch.nodes[0].graphs[:3].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "seeds, message",
    [
        (Seeds((SEEDS,)), "the graph has times"),
        (Seeds((SEEDS,), times=LIMITS[:2]), r"times must have shape \(5,\), one a graph"),
        (Seeds((SEEDS,), times=LIMITS * 1.0), "times must hold integers, got float64"),
        (Seeds((SEEDS,), (SEEDS[:2],), LIMITS), "graphs must have a number for each seed"),
        (Seeds((SEEDS,), (np.array([0, 1, 3, 3, 4]),), LIMITS), "graph 2 has no seed"),
        (Seeds((SEEDS,), (np.array([0, 1, 2, 3, 1 << 40]),), LIMITS), "there are 5 seeds"),
    ],
)
def test_bad_seeds(seeds: Seeds, message: str):
    sampler = NeighborSampler(temporal()[0], [2], disjoint=True)
    with pytest.raises((TypeError, ValueError), match=message):
        sampler.sample(seeds)


def test_times_need_graphs_that_are_kept_apart():
    with pytest.raises(ValueError, match="need disjoint=True"):
        NeighborSampler(temporal()[0], [2])
