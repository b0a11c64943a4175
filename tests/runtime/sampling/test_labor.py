"""LABOR-0: sources have one random number for all nodes that they lead to."""

import itertools

import numpy as np

from gnnc.runtime.sampling.in_edges import in_edges
from gnnc.runtime.sampling.sampler import Key, NeighborSampler

from .checks import check_frequencies, equal_batches, random_edges, subsets


def separate(targets: int, degree: int):
    """Each target has sources of its own."""
    n = targets * degree
    return in_edges(np.arange(n), np.arange(n) // degree, n, targets)


def graph_with(targets: int, degree: int):
    from gnnc.runtime.sampling.sampler import Graph

    return Graph((targets * degree, targets), (separate(targets, degree),), ((0, 1),))


def test_a_source_is_taken_with_the_probability_of_the_fan_out():
    """Of four sources any set, each in with probability 3 / 4."""
    from gnnc.runtime.sampling.sampler import Seeds

    targets = 2000
    sampler = NeighborSampler(graph_with(targets, 4), [3], pick="labor")
    expected = {
        s: 0.75 ** len(s) * 0.25 ** (4 - len(s))
        for n in range(5)
        for s in itertools.combinations(range(4), n)
    }

    def draw(seed: int) -> dict[tuple[int, ...], int]:
        seeds = Seeds((np.zeros(0, int), np.arange(targets)))
        batch = sampler.sample(seeds, Key(seed), threads=1)
        return subsets(batch.edges[0].ids % 4, batch.edges[0].ptr)

    check_frequencies(expected, draw)


def test_nodes_of_few_edges_take_all():
    src, dst = random_edges(0, 100, 900)
    graph = in_edges(src, dst, 100, 100)
    batch = NeighborSampler(graph, [12], pick="labor").sample(np.arange(100))
    counts, degrees = np.diff(batch.edges[0].ptr), graph.degrees(np.arange(100))
    few = degrees <= 12
    assert few.any() and not few.all()
    assert np.array_equal(counts[few], degrees[few])
    assert (counts[~few] <= degrees[~few]).all() and abs(counts[~few].mean() - 12) < 2


def test_what_one_node_takes_others_of_its_degree_take():
    targets, degree = 50, 30
    src, dst = np.tile(np.arange(degree), targets), np.repeat(np.arange(targets), degree)
    batch = NeighborSampler(in_edges(src, dst, targets, targets), [5], pick="labor").sample(
        np.arange(targets)
    )
    edges = batch.edges[0]
    rows = [edges.ids[a:b] % degree for a, b in itertools.pairwise(edges.ptr.tolist())]
    assert all(np.array_equal(rows[0], row) for row in rows)
    assert batch.nodes[0].ids.size == targets


def test_layers_may_share_their_numbers(fine: None):
    src, dst = random_edges(0, 100, 3000)
    graph = in_edges(src, dst, 100, 100)
    seeds = np.arange(100)
    for tied in (False, True):
        sampler = NeighborSampler(graph, [4, 4], pick="labor", blocks=True, tied=tied)
        batches = [sampler.sample(seeds, Key(1), threads=t) for t in (1, 2, 4)]
        assert equal_batches(batches[0], batches[1]) and equal_batches(batches[0], batches[2])
        first, second = (batches[0].block(hop).ids for hop in range(2))
        assert np.array_equal(first, second) == tied
