"""Expected halos against halos of drawn graphs, and their sums against plain ones."""

import numpy as np
import pytest

from gnnc.frontend.plan import halo
from gnnc.frontend.tools.datasets import power_law_edges
from gnnc.runtime.partition import edges, measure

NODES, EDGES = 3000, 24_000


def drawn(index: np.ndarray, ranks: int) -> float:
    """The mean halo of a rank, over several draws of owners."""
    graph = edges.in_memory(index[0], index[1], NODES)
    random = np.random.default_rng(3)
    owners = (random.integers(0, ranks, NODES).astype(np.int32) for _ in range(8))
    return float(np.mean([measure.measure(graph, o, ranks).halo.mean() for o in owners]))


@pytest.mark.parametrize("ranks", [2, 5, 40])
def test_equally_many_out_edges(ranks: int):
    random = np.random.default_rng(0)
    src = np.repeat(np.arange(NODES), EDGES // NODES)
    # no edge twice: an out-edge leads to a node of its own
    dst = np.concatenate(
        [random.choice(NODES, EDGES // NODES, replace=False) for _ in range(NODES)]
    )
    found = drawn(np.stack([src, dst]), ranks)
    assert halo.random_halo(NODES, EDGES, ranks) == pytest.approx(found, rel=0.02)


@pytest.mark.parametrize("exponent", [0.3, 0.6, 1.2])
@pytest.mark.parametrize("ranks", [2, 5, 40])
def test_power_law(ranks: int, exponent: float):
    """Destinations are even: where these have hubs too, a rank reads fewer rows."""
    src = power_law_edges(NODES, EDGES, alpha=exponent)[0]
    dst = np.random.default_rng(1).integers(0, NODES, EDGES)
    found = drawn(np.stack([src, dst]), ranks)
    assert halo.power_law_halo(NODES, EDGES, ranks, exponent) == pytest.approx(found, rel=0.03)


@pytest.mark.parametrize(("across", "border"), [(0.2, 1.0), (0.5, 0.1), (0.01, 0.5)])
def test_planted(across: float, border: float):
    """Sources drawn from the border of all other ranks."""
    ranks, random = 4, np.random.default_rng(0)
    candidates = round(border * NODES * (1 - 1 / ranks))
    crossing = round(across * EDGES / ranks)
    draws = [len(np.unique(random.integers(0, candidates, crossing))) for _ in range(20)]
    found = halo.planted_halo(NODES, EDGES, ranks, across, border)
    assert found == pytest.approx(np.mean(draws), rel=0.02)


def test_nothing_crosses():
    assert halo.random_halo(NODES, EDGES, 1) == halo.power_law_halo(NODES, EDGES, 1, 0.6) == 0
    assert halo.random_halo(NODES, 0, 8) == halo.power_law_halo(NODES, 0, 8, 0.6) == 0
    assert halo.planted_halo(NODES, EDGES, 8, 0.0, 1.0) == 0
    assert halo.planted_halo(NODES, EDGES, 8, 0.5, 0.0) == 0


def test_all_is_read_where_edges_are_many():
    """Every node of the others, and no more."""
    for found in (
        halo.random_halo(100, 1e9, 4),
        halo.power_law_halo(100, 1e9, 4, 0.6),
        halo.planted_halo(100, 1e9, 4, 0.5, 1.0),
    ):
        assert found == pytest.approx(75)


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0, 2.5])
def test_sums_are_those_of_all_terms(exponent: float):
    count = 3_000_000
    every = np.arange(1, count + 1, dtype=np.float64)
    for term in (lambda k: k**-exponent, lambda k: -np.expm1(-1e4 * k**-exponent)):
        assert halo.sum_over_places(term, count) == pytest.approx(term(every).sum(), rel=1e-9)


def test_a_graph_that_fits_nowhere():
    """Halos grow with ranks less than the work of a rank shrinks, and stay below all rows."""
    halos = [halo.power_law_halo(1e9, 1e11, p, 0.6) for p in (2, 16, 128, 1024)]
    assert all(1e7 < h < 1e9 for h in halos)
    volumes = [p * h for p, h in zip((2, 16, 128, 1024), halos, strict=True)]
    assert volumes == sorted(volumes)
