"""Hops over the normalised adjacency matrix, which several layers repeat."""

from __future__ import annotations

from torch import Tensor

from ..helpers import aggregate, degree_factor
from .graphconv import EdgeWeightNorm


def normalized_weight(graph, edge_weight: Tensor | None) -> Tensor | None:
    return None if edge_weight is None else EdgeWeightNorm("both")(graph, edge_weight)


def symmetric_hop(graph, feat: Tensor, weight: Tensor | None = None) -> Tensor:
    """D^-1/2 A D^-1/2 H, D of in-degrees at both ends; with weights already normalised, A H."""
    if weight is not None:
        return aggregate(graph, feat, weight)
    factor = degree_factor(graph.in_degrees(), feat, -0.5)
    return aggregate(graph, feat * factor) * factor
