"""What the layers share: pairs of features, aggregation, degrees, and the checks of a graph."""

from __future__ import annotations

import torch
from torch import Tensor

from ... import function as fn
from ... import ops
from ...base import DGLError

_ZERO_IN_DEGREES = (
    "the graph has nodes without incoming edges, whose outputs would mean nothing; add self-loops "
    "(dgl.add_self_loop), or make the layer with allow_zero_in_degree=True"
)


def refuse_if(bad: Tensor, message: str) -> None:
    """
    Raises:
        DGLError: a value of `bad` is true. To a tracer a graph's degrees have the answer; at other
            data it stops here.
    """
    if bad.any():
        raise DGLError(message)


def refuse_values(bad: Tensor, message: str) -> None:
    """`refuse_if` of what the graph does not tell, which a tracer of ours leaves to be asked when
    the call runs."""
    refuse_if(bad, message)


class ChecksInDegrees:
    """For layers that have no output for a node without incoming edges."""

    _allow_zero_in_degree = False

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        self._allow_zero_in_degree = set_value

    def _check_in_degrees(self, graph) -> None:
        if not self._allow_zero_in_degree:
            refuse_if(graph.in_degrees() == 0, _ZERO_IN_DEGREES)


def aggregate(graph, source: Tensor, weight: Tensor | None = None, reduce: str = "sum") -> Tensor:
    """Reduces the features of a node's sources, each times the weight of its edge if there is one.

    Nodes without incoming edges get 0. AssertionError for another number of weights than of edges.
    """
    if weight is not None and weight.shape[0] != graph.num_edges():
        raise AssertionError(f"{weight.shape[0]} weights for {graph.num_edges()} edges")
    with graph.local_scope():
        graph.srcdata["h"] = source
        message = fn.copy_u("h", "m")
        if weight is not None:
            graph.edata["w"] = weight
            message = fn.u_mul_e("h", "w", "m")
        graph.update_all(message, getattr(fn, reduce)("m", "h"))
        return graph.dstdata["h"]


def aggregate_edges(graph, edge: Tensor, reduce: str = "sum") -> Tensor:
    """Reduces the features of a node's incoming edges; nodes without any get 0."""
    with graph.local_scope():
        graph.edata["m"] = edge
        graph.update_all(fn.copy_e("m", "m"), getattr(fn, reduce)("m", "h"))
        return graph.dstdata["h"]


def ends(graph, source: Tensor, destination: Tensor) -> tuple[Tensor, Tensor]:
    """For each edge the row of its source and the row of its destination."""
    sources, destinations = graph.edges()
    return source[sources], destination[destinations]


def attend(graph, scores: Tensor, edge_weight: Tensor | None, dropout) -> Tensor:
    """Softmax over the edges into a node (dim 0 of scores: edges, dim -2: heads), then weighted."""
    attention = dropout(ops.edge_softmax(graph, scores))
    if edge_weight is None:
        return attention
    return attention * edge_weight.reshape(-1, *[1] * (attention.dim() - 1))


def degree_factor(degrees: Tensor, feat: Tensor, exponent: float) -> Tensor:
    """degree^exponent, with 1 for degree 0, in a shape that multiplies rows of `feat`."""
    factor = degrees.to(feat).clamp(min=1).pow(exponent)
    return factor.reshape(-1, *[1] * (feat.dim() - 1))


def pair_of(sizes) -> tuple[int, int]:
    """Input sizes of sources and destinations, from one size or a pair."""
    return sizes if isinstance(sizes, tuple) else (sizes, sizes)


def relu_gain() -> float:
    return torch.nn.init.calculate_gain("relu")
