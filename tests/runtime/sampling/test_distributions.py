"""What is drawn has the probabilities it should have, by chi-square tests over 50 seeds."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from gnnc.runtime.sampling.in_edges import in_edges
from gnnc.runtime.sampling.sampler import Graph, Key, NeighborSampler, Picks

from .checks import check_frequencies, star, subsets


def check_picks(
    expected: dict[tuple[int, ...], float],
    degree: int,
    k: int,
    draws: int = 2000,
    weights: Sequence[float] | None = None,
    replace: bool = False,
    pick: Picks = "uniform",
) -> None:
    """What `draws` nodes with edges from the sources 0 .. degree - 1 take."""
    sampler = NeighborSampler(star(draws, degree, weights), [k], replace=replace, pick=pick)

    def draw(seed: int) -> dict[tuple[int, ...], int]:
        batch = sampler.sample(np.arange(draws), Key(seed, 1, 2), threads=1)
        sources = batch.nodes[0].ids[batch.edges[0].index[0]]
        return subsets(sources, batch.edges[0].ptr[: draws + 1])

    check_frequencies(expected, draw)


@pytest.mark.parametrize("degree, k", [(2, 1), (3, 1), (5, 2), (6, 5), (4, 3), (7, 3), (4, 4)])
def test_uniform_without_replacement(degree: int, k: int):
    sets = list(itertools.combinations(range(degree), k))
    check_picks({s: 1 / len(sets) for s in sets}, degree, k)


def test_uniform_without_replacement_of_many():
    """More than are compared one by one: which of 50 is left out."""
    sets = [tuple(i for i in range(50) if i != out) for out in range(50)]
    check_picks({s: 1 / len(sets) for s in sets}, 50, 49)


@pytest.mark.parametrize("degree, k", [(1, 3), (2, 1), (2, 2), (3, 2), (4, 3)])
def test_uniform_with_replacement(degree: int, k: int):
    check_picks(multinomial([1 / degree] * degree, k), degree, k, replace=True)


WEIGHTS = (1.0, 2.0, 0.0, 4.0, 0.5)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_weighted_without_replacement(k: int):
    expected: dict[tuple[int, ...], float] = {}
    for order in itertools.permutations(range(5), k):
        p, left = 1.0, sum(WEIGHTS)
        for item in order:
            p *= WEIGHTS[item] / left
            left -= WEIGHTS[item]
        expected[tuple(sorted(order))] = expected.get(tuple(sorted(order)), 0) + p
    check_picks(expected, 5, k, weights=WEIGHTS, pick="weighted")


def test_what_has_no_weight_is_never_taken():
    for k in (4, 5, -1):
        check_picks({(0, 1, 3, 4): 1.0}, 5, k, 20, weights=WEIGHTS, pick="weighted")


@pytest.mark.parametrize("k", [1, 3])
def test_weighted_with_replacement(k: int):
    share = [w / sum(WEIGHTS) for w in WEIGHTS]
    check_picks(multinomial(share, k), 5, k, weights=WEIGHTS, pick="weighted", replace=True)


def multinomial(p: Sequence[float], k: int) -> dict[tuple[int, ...], float]:
    found: dict[tuple[int, ...], float] = {}
    for order in itertools.product(range(len(p)), repeat=k):
        one = tuple(sorted(order))
        found[one] = found.get(one, 0) + math.prod(p[i] for i in order)
    return found


@pytest.mark.parametrize("seed, epoch, step", [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_steps_epochs_and_seeds_are_independent(seed: int, epoch: int, step: int):
    """Neighbours in the key draw pairs as if thrown twice."""
    sampler = NeighborSampler(star(3000, 3), [1])
    pairs = {pair: 1 / 9 for pair in itertools.product(range(3), repeat=2)}

    def draw(run: int) -> dict[tuple[int, ...], int]:
        first = Key(10 * run, 3 * run, 7)
        second = Key(first.seed + seed, first.epoch + epoch, first.step + step)
        a, b = (sampler.sample(np.arange(3000), key, threads=1) for key in (first, second))
        both = [x.nodes[0].ids[x.edges[0].index[0]].tolist() for x in (a, b)]
        return subsets_of_pairs(zip(*both, strict=True))

    check_frequencies(pairs, draw)


def test_hops_are_independent():
    """A node that is expanded at two hops draws each time anew."""
    sampler = NeighborSampler(star(3000, 3), [1, 1], blocks=True)

    def draw(seed: int) -> dict[tuple[int, ...], int]:
        batch = sampler.sample(np.arange(3000), Key(seed), threads=1)
        both = [batch.nodes[0].ids[batch.block(hop).index[0, :3000]].tolist() for hop in (0, 1)]
        return subsets_of_pairs(zip(*both, strict=True))

    check_frequencies({p: 1 / 9 for p in itertools.product(range(3), repeat=2)}, draw)


def test_relations_are_independent():
    relation = star(3000, 3)
    sampler = NeighborSampler(Graph((3000,), (relation, relation), ((0, 0), (0, 0))), [1])

    def draw(seed: int) -> dict[tuple[int, ...], int]:
        batch = sampler.sample(np.arange(3000), Key(seed), threads=1)
        both = [batch.nodes[0].ids[edges.index[0]].tolist() for edges in batch.edges]
        return subsets_of_pairs(zip(*both, strict=True))

    check_frequencies({p: 1 / 9 for p in itertools.product(range(3), repeat=2)}, draw)


@pytest.mark.parametrize("induced", [False, True])
def test_graphs_that_are_kept_apart(induced: bool):
    """Each seed has 2 of 4 around the hub that all lead from: of ShaDow's graphs what is met."""
    targets, hub = 2000, 2000
    src = np.concatenate([np.full(targets, hub), np.arange(4) + hub + 1])
    graph = in_edges(src, np.concatenate([np.arange(targets), np.full(4, hub)]), 2005, 2005)
    sampler = NeighborSampler(graph, [1, 2], disjoint=True, induced=induced)
    pairs = {pair: 1 / 6 for pair in itertools.combinations(range(2001, 2005), 2)}

    def draw(seed: int) -> dict[tuple[int, ...], int]:
        nodes = sampler.sample(np.arange(targets), Key(seed), threads=1).nodes[0]
        outer = nodes.ids > hub
        order = np.argsort(nodes.graphs[outer], kind="stable")
        return subsets(nodes.ids[outer][order], np.arange(0, 2 * targets + 1, 2))

    check_frequencies(pairs, draw)


def subsets_of_pairs(pairs: object) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for pair in pairs:
        found[pair] = found.get(pair, 0) + 1
    return found
