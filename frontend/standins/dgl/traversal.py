"""Nodes and edges in the order of a walk over the graph, and message passing in that order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from .base import DGLError
from .graph import DGLGraph
from .lookup import grouped
from .subgraphs import first_seen
from .topology import Relation


def bfs_nodes_generator(graph: DGLGraph, source: Any, reverse: bool = False) -> list[Tensor]:
    """The nodes `source`, those one edge away, those two edges away, .. as a tensor of ids each."""
    return [graph._typed(nodes)[0] for nodes, _ in _levels(graph, source, reverse)]


def bfs_edges_generator(graph: DGLGraph, source: Any, reverse: bool = False) -> list[Tensor]:
    """The edges by which breadth-first search reaches each new node, a tensor of ids a level."""
    return [graph._typed(edges)[0] for _, edges in _levels(graph, source, reverse)[1:]]


def topological_nodes_generator(graph: DGLGraph, reverse: bool = False) -> list[Tensor]:
    """The nodes that no edge leads to, those that then no other leads to, .., as ids.

    Raises `DGLError` if there is a cycle.
    """
    src, dst, rows = _ends(graph, reverse)
    waiting = torch.bincount(dst, minlength=rows)
    ready = (waiting == 0).nonzero().flatten()
    levels: list[Tensor] = []
    left = rows
    while ready.shape[0]:
        levels.append(graph._typed(ready)[0])
        left -= ready.shape[0]
        reached = dst[grouped(src, rows, ready)]
        waiting -= torch.bincount(reached, minlength=rows)
        ready = reached.unique()
        ready = ready[waiting[ready] == 0]
    if left:
        raise DGLError("Error in topological traversal: loop detected in the given graph.")
    return levels


def _levels(graph: DGLGraph, source: Any, reverse: bool) -> list[tuple[Tensor, Tensor]]:
    """For each level of breadth-first search its nodes, and the edges that found them."""
    src, dst, rows = _ends(graph, reverse)
    nodes = graph._ids(source, "source", rows)
    seen = torch.zeros(rows, dtype=torch.bool, device=graph.device)
    seen[nodes] = True
    levels = [(nodes, nodes[:0])]
    while True:
        edges = grouped(src, rows, nodes)
        edges = edges[~seen[dst[edges]]]
        if not edges.shape[0]:
            return levels
        nodes = first_seen(dst[edges])
        seen[nodes] = True
        levels.append((nodes, _first_edges(edges, dst)))


def _first_edges(edges: Tensor, dst: Tensor) -> Tensor:
    """Of edges with the same target, the first."""
    ordered, places = dst[edges].sort(stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return edges[places[first].sort().values]


def _ends(graph: DGLGraph, reverse: bool) -> tuple[Tensor, Tensor, int]:
    if not graph.is_homogeneous:
        raise DGLError("walks over a graph need one node type and one edge type")
    relation: Relation = next(iter(graph._topology.relations.values()))
    rows = graph.num_nodes()
    return (relation.dst, relation.src, rows) if reverse else (relation.src, relation.dst, rows)


def prop_nodes(
    graph: DGLGraph,
    nodes_generator: Iterable[Any],
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Any = None,
) -> None:
    """As `DGLGraph.prop_nodes`."""
    graph.prop_nodes(nodes_generator, message_func, reduce_func, apply_node_func)


def prop_edges(
    graph: DGLGraph,
    edges_generator: Iterable[Any],
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Any = None,
) -> None:
    """As `DGLGraph.prop_edges`."""
    graph.prop_edges(edges_generator, message_func, reduce_func, apply_node_func)


def prop_nodes_bfs(
    graph: DGLGraph,
    source: Any,
    message_func: Any,
    reduce_func: Any,
    reverse: bool = False,
    apply_node_func: Any = None,
) -> None:
    """`DGLGraph.prop_nodes` in the order of `bfs_nodes_generator`."""
    levels = bfs_nodes_generator(graph, source, reverse)
    graph.prop_nodes(levels, message_func, reduce_func, apply_node_func)


def prop_nodes_topo(
    graph: DGLGraph,
    message_func: Any,
    reduce_func: Any,
    reverse: bool = False,
    apply_node_func: Any = None,
) -> None:
    """`DGLGraph.prop_nodes` in the order of `topological_nodes_generator`."""
    levels = topological_nodes_generator(graph, reverse)
    graph.prop_nodes(levels, message_func, reduce_func, apply_node_func)
