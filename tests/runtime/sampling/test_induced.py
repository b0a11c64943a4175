"""Subgraphs of all edges between the nodes that were met: ShaDow's, and those of given nodes."""

import itertools

import numpy as np
import pytest

from gnnc.runtime.sampling.in_edges import in_edges
from gnnc.runtime.sampling.sampler import Graph, Key, NeighborSampler, Seeds

from .checks import check_pointers, equal_batches, random_edges

NODES = 150
SRC, DST = random_edges(0, NODES, 1200)
GRAPH = in_edges(SRC, DST, NODES, NODES)
SEEDS = np.array([8, 100, 3, 149])


def edges_between(nodes: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.isin(SRC, nodes) & np.isin(DST, nodes))


@pytest.mark.parametrize("fanouts", [[], [3, 2], [-1], [0]])
def test_union(fine: None, fanouts: list[int]):
    sampler = NeighborSampler(GRAPH, fanouts, induced=True)
    batches = [sampler.sample(SEEDS, Key(4), threads=t) for t in (1, 2, 4)]
    assert equal_batches(batches[0], batches[1]) and equal_batches(batches[0], batches[2])
    nodes, edges = batches[0].nodes[0], batches[0].edges[0]
    by_hops = NeighborSampler(GRAPH, fanouts).sample(SEEDS, Key(4))
    assert np.array_equal(nodes.ids, by_hops.nodes[0].ids)
    assert np.array_equal(np.sort(edges.ids), edges_between(nodes.ids))
    assert np.array_equal(nodes.ids[edges.index], np.stack([SRC, DST])[:, edges.ids])
    check_pointers(batches[0], 0, blocks=False)
    assert edges.found[-1] == edges.ids.size


@pytest.mark.parametrize("fanouts", [[], [3, 2], [-1, 2]])
def test_disjoint(fine: None, fanouts: list[int]):
    seeds = np.array([8, 100, 8, 3])
    sampler = NeighborSampler(GRAPH, fanouts, induced=True, disjoint=True)
    batches = [sampler.sample(seeds, Key(4), threads=t) for t in (1, 2, 4)]
    assert equal_batches(batches[0], batches[1]) and equal_batches(batches[0], batches[2])
    nodes, edges = batches[0].nodes[0], batches[0].edges[0]
    assert (np.diff(nodes.graphs) >= 0).all()
    starts = np.searchsorted(nodes.graphs, np.arange(4))
    assert np.array_equal(nodes.ids[starts], seeds)
    assert np.array_equal(nodes.graphs[edges.index[0]], nodes.graphs[edges.index[1]])
    assert np.array_equal(nodes.ids[edges.index], np.stack([SRC, DST])[:, edges.ids])
    for g in range(4):
        mine = nodes.ids[nodes.graphs == g]
        assert np.unique(mine).size == mine.size
        got = np.sort(edges.ids[nodes.graphs[edges.index[1]] == g])
        assert np.array_equal(got, edges_between(mine))
    check_pointers(batches[0], 0, blocks=False)


def test_a_split_batch_has_the_same_graphs():
    """What the processes of a job draw together is what one draws."""
    sampler = NeighborSampler(GRAPH, [3, 3], induced=True, disjoint=True)
    whole = sampler.sample(SEEDS, Key(7))
    parts = [sampler.sample(SEEDS[i : i + 2], Key(7)) for i in (0, 2)]
    nodes = np.concatenate([p.nodes[0].ids for p in parts])
    edges = np.concatenate([p.edges[0].ids for p in parts])
    assert np.array_equal(nodes, whole.nodes[0].ids)
    assert np.array_equal(edges, whole.edges[0].ids)


def test_a_split_batch_has_the_same_blocks():
    sampler = NeighborSampler(GRAPH, [3, 3], blocks=True)
    whole = sampler.sample(SEEDS, Key(7))
    parts = [sampler.sample(SEEDS[i : i + 2], Key(7)) for i in (0, 2)]
    for hop in range(2):
        ids = np.concatenate([p.block(hop).ids for p in parts])
        assert np.array_equal(np.unique(ids), np.unique(whole.block(hop).ids))


def test_types():
    ends, counts = ((0, 1), (1, 0)), (60, 40)
    pairs = [random_edges(i, counts[b], 500, counts[a]) for i, (a, b) in enumerate(ends)]
    relations = tuple(
        in_edges(s, d, counts[a], counts[b]) for (s, d), (a, b) in zip(pairs, ends, strict=True)
    )
    graph = Graph(counts, relations, ends)
    for disjoint in (False, True):
        sampler = NeighborSampler(graph, [2, 2], induced=True, disjoint=disjoint)
        batch = sampler.sample(Seeds((np.array([1, 2]), np.zeros(0, int))))
        for (src, dst), (source, target), edges in zip(pairs, ends, batch.edges, strict=True):
            sources, targets = batch.nodes[source], batch.nodes[target]
            groups = (0, 1) if disjoint else (0,)
            wanted = 0
            for g in groups:
                here = [
                    n.ids if n.graphs is None else n.ids[n.graphs == g] for n in (sources, targets)
                ]
                wanted += (np.isin(src, here[0]) & np.isin(dst, here[1])).sum()
            assert edges.ids.size == wanted
            assert np.array_equal(src[edges.ids], sources.ids[edges.index[0]])
            assert np.array_equal(dst[edges.ids], targets.ids[edges.index[1]])


def test_no_edges_at_all():
    empty = in_edges(np.zeros(0, int), np.zeros(0, int), 5, 5)
    for disjoint in (False, True):
        sampler = NeighborSampler(empty, [2], induced=True, disjoint=disjoint)
        assert sampler.sample(np.array([1, 2])).nodes[0].ids.tolist() == [1, 2]
        assert sampler.sample(np.zeros(0, int)).nodes[0].ids.size == 0


def test_blocks_are_not_induced():
    with pytest.raises(ValueError, match="not both"):
        NeighborSampler(GRAPH, [1], blocks=True, induced=True)


def test_nodes_of_parts():
    """Two parts of four, and the edges within and between them."""
    parts = np.arange(NODES) % 4
    nodes = np.flatnonzero(parts < 2)
    batch = NeighborSampler(GRAPH, [], induced=True).sample(nodes)
    assert np.array_equal(batch.nodes[0].ids, nodes)
    assert np.array_equal(np.sort(batch.edges[0].ids), edges_between(nodes))
    assert all(a <= b for a, b in itertools.pairwise(batch.edges[0].ptr))
