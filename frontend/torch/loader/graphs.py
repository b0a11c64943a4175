"""PyG's graphs as samplers read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from ....runtime.sampling.in_edges import InEdges, in_edges
from ....runtime.sampling.sampler import Graph

NodeType = str | None
EdgeType = tuple[str, str, str] | None


@dataclass(frozen=True, eq=False)
class NamedGraph:
    """A graph, and the names of its types in the data; None for the only one of a `Data`.

    Attributes:
        times: of each type of nodes when its nodes came to be, int64, where the data says so.
    """

    graph: Graph
    node_types: tuple[NodeType, ...]
    edge_types: tuple[EdgeType, ...]
    times: tuple[NDArray[Any] | None, ...]


def graph_of(data: Any, weight: str | None = None, time: str | None = None) -> NamedGraph:
    """The graph of a `Data` or `HeteroData`.

    Args:
        weight: the name of the weights of edges, of all relations.
        time: the name of the times of nodes, or of edges, of at least one type.

    Raises:
        AttributeError: a relation without weights; times that neither nodes nor edges have.
        TypeError: data of another kind; a relation whose edges are no `edge_index`; edges or times
            that are not integers.
        IndexError, ValueError: edges, weights or times that are none.
    """
    if isinstance(data, HeteroData):
        node_types, edge_types = tuple(data.node_types), tuple(data.edge_types)
    elif isinstance(data, Data):
        node_types, edge_types = (None,), (None,)
    else:
        raise TypeError(
            f"gnnc.loader reads graphs of torch_geometric's Data and HeteroData, not of "
            f"{type(data).__name__} (feature and graph stores are not supported)"
        )
    counts = tuple(int(store(data, t).num_nodes) for t in node_types)
    times = tuple(_node_times(store(data, t), time, n) for t, n in zip(node_types, counts))
    ends = tuple(
        (0, 0) if t is None else (node_types.index(t[0]), node_types.index(t[2]))
        for t in edge_types
    )
    relations = tuple(
        _in_edges(store(data, t), t, (counts[a], counts[b]), times[a], weight, time)
        for t, (a, b) in zip(edge_types, ends)
    )
    if time is not None and all(r.times is None for r in relations):
        raise AttributeError(f"time_attr={time!r} is an attribute of neither nodes nor edges")
    return NamedGraph(Graph(counts, relations, ends), node_types, edge_types, times)


def store(data: Any, name: Any) -> Any:
    """The part of the data about one type; all of a `Data`."""
    return data._store if name is None else data[name]


def array(x: Tensor) -> NDArray[Any]:
    """A tensor as an array on the host, its memory shared where it can be."""
    return x.detach().cpu().numpy()


def _in_edges(
    edges: Any,
    name: EdgeType,
    counts: tuple[int, int],
    node_times: NDArray[Any] | None,
    weight: str | None,
    time: str | None,
) -> InEdges:
    where = "the data" if name is None else f"relation {name}"
    if "edge_index" not in edges:
        raise TypeError(f"{where} has no edge_index; adj_t is not supported by gnnc.loader")
    index = edges["edge_index"]
    if not isinstance(index, Tensor) or index.dim() != 2 or index.size(0) != 2:
        raise TypeError(f"the edge_index of {where} must be a tensor of shape [2, edges]")
    if weight is not None and weight not in edges:
        raise AttributeError(f"{where} has no {weight!r}, which weight_attr asks for")
    src, dst = array(index)
    times = None
    if node_times is not None:
        times = node_times[src] if src.size else np.zeros(0, np.int64)
    elif time is not None and time in edges and edges.is_edge_attr(time):
        times = _integers(edges[time], time, index.size(1))
    weights = None if weight is None else array(edges[weight].reshape(-1))
    return in_edges(src, dst, *counts, weights=weights, times=times)


def _node_times(nodes: Any, time: str | None, count: int) -> NDArray[Any] | None:
    if time is None or time not in nodes or not nodes.is_node_attr(time):
        return None
    return _integers(nodes[time], time, count)


def _integers(x: Any, name: str, count: int) -> NDArray[Any]:
    if not isinstance(x, Tensor) or x.is_floating_point() or x.dtype == torch.bool:
        raise TypeError(f"{name!r} must be a tensor of integers")
    if x.numel() != count:
        raise ValueError(f"{name!r} must have one number each, {count}, got shape {list(x.shape)}")
    return array(x.reshape(-1).to(torch.int64))
