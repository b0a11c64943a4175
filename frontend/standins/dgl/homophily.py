"""How alike the classes of neighbours are: measures of a homogeneous graph and `y`, `int64` of
`(nodes,)`, each a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .reduce import reduce_messages

if TYPE_CHECKING:
    from .graph import DGLGraph

__all__ = ["adjusted_homophily", "edge_homophily", "linkx_homophily", "node_homophily"]


def _alike(graph: DGLGraph, y: Tensor) -> tuple[Tensor, Tensor]:
    """Whether the ends of each edge are of one class, as 0 or 1, and its targets."""
    src, dst = (ends.long() for ends in graph.edges())
    return (y[src] == y[dst]).float(), dst


def node_homophily(graph: DGLGraph, y: Tensor) -> float:
    """The mean over nodes of the share of edges to them that come from their class (Pei et al.,
    Geom-GCN, 2020)."""
    alike, dst = _alike(graph, y)
    return reduce_messages(alike, dst, graph.num_nodes(), "mean").mean(0).item()


def edge_homophily(graph: DGLGraph, y: Tensor) -> float:
    """The share of edges whose ends are of one class (Zhu et al., H2GCN, 2020)."""
    return _alike(graph, y)[0].mean(0).item()


def linkx_homophily(graph: DGLGraph, y: Tensor) -> float:
    """By how much the share of edges within a class is above the class's share of nodes, summed
    over classes where it is, and divided by the number of classes but one (Lim et al., LINKX,
    2021)."""
    alike, dst = _alike(graph, y)
    within = reduce_messages(alike, dst, graph.num_nodes(), "sum")
    degrees = graph.in_degrees().float()
    classes = int(y.max()) + 1
    total = torch.zeros((), device=graph.device)
    for k in range(classes):
        mask = y == k
        total += max(0, within[mask].sum() / degrees[mask].sum() - mask.sum() / graph.num_nodes())
    return total.item() / (classes - 1)


def adjusted_homophily(graph: DGLGraph, y: Tensor) -> float:
    """`edge_homophily` of the undirected graph, adjusted for what degrees of classes let expect
    (Platonov et al., Characterizing graph datasets for node classification, 2022)."""
    from .transforms import to_bidirected  # it makes graphs, so it is loaded late

    both = to_bidirected(graph.cpu()).to(y.device)
    found = edge_homophily(both, y)
    degrees = torch.zeros(int(y.max()) + 1, device=y.device)
    degrees.index_add_(0, y, both.in_degrees().float())
    expected = (degrees**2).sum() / both.num_edges() ** 2
    return ((found - expected) / (1 - expected)).item()
