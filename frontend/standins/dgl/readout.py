"""One row a graph of a batch: sums over its nodes and edges, softmax, the highest rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .base import DGLError
from .graph import DGLGraph
from .reduce import reduce_messages
from .segments import segment_ids


def readout_nodes(
    graph: DGLGraph, feat: str, weight: str | None = None, *, op: str = "sum", ntype: Any = None
) -> Tensor:
    """`op` (sum, mean, max or min) of a feature over the nodes of each graph, `(graphs, ..)`.

    Rows are multiplied by the feature `weight` first. A graph without nodes has zeros.
    """
    rows = graph._nodes_of(ntype).rows
    return _readout(graph.nodes[ntype].data, feat, weight, _node_owners(graph, ntype, rows), op)


def readout_edges(
    graph: DGLGraph, feat: str, weight: str | None = None, *, op: str = "sum", etype: Any = None
) -> Tensor:
    """`op` (sum, mean, max or min) of a feature over the edges of each graph, `(graphs, ..)`."""
    return _readout(graph.edges[etype].data, feat, weight, _edge_owners(graph, etype), op)


def _readout(
    data: Any, feat: str, weight: str | None, owners: tuple[Tensor, int], op: str
) -> Tensor:
    value = data[feat] if weight is None else data[feat] * data[weight]
    return reduce_messages(value, *owners, op)


def _node_owners(graph: DGLGraph, ntype: Any, rows: int) -> tuple[Tensor, int]:
    """The graph that each node is of, and how many graphs there are."""
    if graph._batch_nodes is None:
        return torch.zeros(rows, dtype=torch.int64, device=graph.device), 1
    lengths = graph.batch_num_nodes(ntype)
    return segment_ids(lengths, rows), lengths.shape[0]


def _edge_owners(graph: DGLGraph, etype: Any) -> tuple[Tensor, int]:
    rows = graph.num_edges(graph._find_etype(etype))
    if graph._batch_edges is None:
        return torch.zeros(rows, dtype=torch.int64, device=graph.device), 1
    lengths = graph.batch_num_edges(etype)
    return segment_ids(lengths, rows), lengths.shape[0]


def sum_nodes(
    graph: DGLGraph, feat: str, weight: str | None = None, *, ntype: Any = None
) -> Tensor:
    """`readout_nodes` with `sum`."""
    return readout_nodes(graph, feat, weight, op="sum", ntype=ntype)


def mean_nodes(
    graph: DGLGraph, feat: str, weight: str | None = None, *, ntype: Any = None
) -> Tensor:
    """`readout_nodes` with `mean`."""
    return readout_nodes(graph, feat, weight, op="mean", ntype=ntype)


def max_nodes(
    graph: DGLGraph, feat: str, weight: str | None = None, *, ntype: Any = None
) -> Tensor:
    """`readout_nodes` with `max`."""
    return readout_nodes(graph, feat, weight, op="max", ntype=ntype)


def sum_edges(
    graph: DGLGraph, feat: str, weight: str | None = None, *, etype: Any = None
) -> Tensor:
    """`readout_edges` with `sum`."""
    return readout_edges(graph, feat, weight, op="sum", etype=etype)


def mean_edges(
    graph: DGLGraph, feat: str, weight: str | None = None, *, etype: Any = None
) -> Tensor:
    """`readout_edges` with `mean`."""
    return readout_edges(graph, feat, weight, op="mean", etype=etype)


def max_edges(
    graph: DGLGraph, feat: str, weight: str | None = None, *, etype: Any = None
) -> Tensor:
    """`readout_edges` with `max`."""
    return readout_edges(graph, feat, weight, op="max", etype=etype)


def softmax_nodes(graph: DGLGraph, feat: str, *, ntype: Any = None) -> Tensor:
    """Softmax of a feature over the nodes of each graph, `(nodes, ..)`."""
    value = graph.nodes[ntype].data[feat]
    return _softmax(value, *_node_owners(graph, ntype, value.shape[0]))


def softmax_edges(graph: DGLGraph, feat: str, *, etype: Any = None) -> Tensor:
    """Softmax of a feature over the edges of each graph, `(edges, ..)`."""
    return _softmax(graph.edges[etype].data[feat], *_edge_owners(graph, etype))


def _softmax(value: Tensor, owners: Tensor, graphs: int) -> Tensor:
    highest = reduce_messages(value.detach(), owners, graphs, "max")
    powers = (value - highest.index_select(0, owners)).exp()
    return powers / reduce_messages(powers, owners, graphs, "sum").index_select(0, owners)


def broadcast_nodes(graph: DGLGraph, graph_feat: Tensor, *, ntype: Any = None) -> Tensor:
    """The row of each node's graph: `(graphs, ..)` to `(nodes, ..)`."""
    owners, graphs = _node_owners(graph, ntype, graph._nodes_of(ntype).rows)
    return _per_graph(graph_feat, graphs).index_select(0, owners)


def broadcast_edges(graph: DGLGraph, graph_feat: Tensor, *, etype: Any = None) -> Tensor:
    """The row of each edge's graph: `(graphs, ..)` to `(edges, ..)`."""
    owners, graphs = _edge_owners(graph, etype)
    return _per_graph(graph_feat, graphs).index_select(0, owners)


def _per_graph(graph_feat: Tensor, graphs: int) -> Tensor:
    """A feature with a row a graph; of a single graph it may come without that dimension."""
    return graph_feat.unsqueeze(0) if graphs == 1 and graph_feat.shape[0] != 1 else graph_feat


def topk_nodes(
    graph: DGLGraph,
    feat: str,
    k: int,
    *,
    descending: bool = True,
    sortby: int | None = None,
    ntype: Any = None,
) -> tuple[Tensor, Tensor]:
    """The `k` highest rows of each graph, by column `sortby`, or each column by itself.

    `feat` names a feature of shape `(nodes, width)`. Returns values of `(graphs, k, width)`, zeros
    where a graph has fewer nodes, and their rows within the graph, `(graphs, k)`, or
    `(graphs, k, width)` without `sortby`.
    """
    value, lengths = graph.nodes[ntype].data[feat], graph.batch_num_nodes(ntype)
    return _topk(value, lengths, k, descending, sortby, f"nodes feature `{feat}`")


def topk_edges(
    graph: DGLGraph,
    feat: str,
    k: int,
    *,
    descending: bool = True,
    sortby: int | None = None,
    etype: Any = None,
) -> tuple[Tensor, Tensor]:
    """`topk_nodes`, of edges."""
    value, lengths = graph.edges[etype].data[feat], graph.batch_num_edges(etype)
    return _topk(value, lengths, k, descending, sortby, f"edges feature `{feat}`")


def _topk(
    value: Tensor, lengths: Tensor, k: int, descending: bool, sortby: int | None, what: str
) -> tuple[Tensor, Tensor]:
    if value.dim() > 2:
        raise DGLError(f"Only support {what} with dimension less than or equal to 2")
    value = value.unsqueeze(-1) if value.dim() == 1 else value
    longest = max(int(lengths.max()), k)
    owners = segment_ids(lengths, value.shape[0])
    starts = lengths.long().cumsum(0) - lengths
    places = torch.arange(value.shape[0], device=value.device) - starts[owners]
    lowest = float("-inf") if descending else float("inf")
    padded = value.new_full((lengths.shape[0], longest, value.shape[1]), lowest)
    padded = padded.index_put((owners, places), value)
    if sortby is not None:
        rows = padded[..., sortby].topk(k, -1, largest=descending).indices
        chosen = padded.gather(1, rows.unsqueeze(-1).expand(-1, -1, value.shape[1]))
    else:
        rows = padded.argsort(1, descending=descending)[:, :k]
        chosen = padded.gather(1, rows)
    return chosen.masked_fill(chosen.isinf(), 0), rows
