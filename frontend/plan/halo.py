"""How many rows a rank receives of a graph of which only numbers are known: expectations in closed
form, for graphs of any size.

A rank reads a node of another where at least one of the node's out-edges leads to it, so the
expected halo is a sum over nodes of 1 - (the probability that none does).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TERMS = 1 << 16
"""Terms of a sum over nodes that are added one by one; an integral has the rest."""
_POINTS = 200
"""Of the quadrature, over the logarithm of the node's place."""


def random_halo(nodes: float, edges: float, ranks: int) -> float:
    """Rows that a rank receives where nodes have equally many out-edges, and their owners are drawn
    evenly: with d = edges / nodes and P ranks, N (1 - 1/P) (1 - (1 - 1/P)^d)."""
    if ranks == 1 or nodes == 0:
        return 0.0
    elsewhere = np.log1p(-1 / ranks)
    return float(nodes * (1 - 1 / ranks) * -np.expm1(edges / nodes * elsewhere))


def power_law_halo(nodes: float, edges: float, ranks: int, exponent: float) -> float:
    """The same where the k-th most frequent source has a frequency like k ** -exponent: N (1 - 1/P)
    times the mean of 1 - exp(-d_k / P), as out-edges are drawn one by one (Poisson) and lead
    anywhere evenly."""
    if ranks == 1 or nodes == 0:
        return 0.0
    share = edges / sum_over_places(lambda k: k**-exponent, nodes) / ranks
    read = sum_over_places(lambda k: -np.expm1(-share * k**-exponent), nodes)
    return (1 - 1 / ranks) * read


def planted_halo(nodes: float, edges: float, ranks: int, across: float, border: float) -> float:
    """The same where a share `across` of the edges comes from other ranks, of which a share
    `border` of the nodes is read, evenly: M (1 - (1 - 1/M)^D) with M nodes at the border of others
    and D edges of the rank that cross."""
    candidates = border * nodes * (1 - 1 / ranks)
    crossing = across * edges / ranks
    if candidates <= 1:
        return min(candidates, crossing)
    return float(-candidates * np.expm1(crossing * np.log1p(-1 / candidates)))


def sum_over_places(term: Callable[[Floats], Floats], count: float) -> float:
    """The sum of a smooth positive function of 1, 2, .., count.

    The first terms are added; of the rest the midpoint rule makes an integral, which is taken by
    Gauss and Legendre over the logarithm.
    """
    most = int(min(count, _TERMS))
    head = float(term(np.arange(1, most + 1, dtype=np.float64)).sum())
    if count <= most:
        return head
    low, high = np.log(most + 0.5), np.log(count + 0.5)
    points, weights = np.polynomial.legendre.leggauss(_POINTS)
    places = np.exp(low + (points + 1) * (high - low) / 2)
    return head + float((weights * places * term(places)).sum() * (high - low) / 2)
