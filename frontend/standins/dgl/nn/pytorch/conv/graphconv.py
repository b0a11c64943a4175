"""GCN and the normalisation of its edge weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ....base import DGLError
from ....utils import expand_as_pair
from ..helpers import ChecksInDegrees, aggregate, degree_factor, refuse_values

_NORMS = ("none", "both", "right", "left")

NOT_POSITIVE = (
    'Non-positive edge weight detected with `norm="both"`. '
    "This leads to square root of zero or negative values."
)
"""What DGL says."""


class EdgeWeightNorm(nn.Module):
    """e_ji / sqrt(sum_k e_jk * sum_k e_ki), or e_ji / sum_k e_ki with norm="right" (Kipf and
    Welling, Semi-Supervised Classification with Graph Convolutional Networks).

    Weights (E,) to weights (E,); `eps` is added to the sums. DGLError for weights of more than one
    number an edge, and for weights <= 0 with norm="both".
    """

    def __init__(self, norm: str = "both", eps: float = 0.0):
        super().__init__()
        self._norm = norm
        self._eps = eps

    def forward(self, graph, edge_weight: Tensor) -> Tensor:
        if edge_weight.dim() > 1:
            raise DGLError(f"edge weights are one number an edge, not {tuple(edge_weight.shape)}")
        if self._norm == "none":
            return edge_weight
        if self._norm == "both":
            refuse_values(edge_weight <= 0, NOT_POSITIVE)
        return normalized(graph, edge_weight, self._norm, self._eps)


def normalized(graph, edge_weight: Tensor, norm: str, eps: float) -> Tensor:
    """What EdgeWeightNorm gives of weights (E,) with a `norm` but "none"."""
    source, destination = graph.edges()
    incoming = _sums(graph.num_dst_nodes(), destination, edge_weight, eps)
    if norm != "both":
        return edge_weight / incoming[destination]
    outgoing = _sums(graph.num_src_nodes(), source, edge_weight, eps)
    return outgoing.pow(-0.5)[source] * incoming.pow(-0.5)[destination] * edge_weight


def _sums(nodes: int, ends: Tensor, edge_weight: Tensor, eps: float) -> Tensor:
    return edge_weight.new_zeros(nodes).index_add(0, ends, edge_weight) + eps


class GraphConv(ChecksInDegrees, nn.Module):
    """h_i = act(b + sum_j e_ji / c_ji h_j W), the GCN layer of Kipf and Welling (Semi-Supervised
    Classification with Graph Convolutional Networks).

    c_ji by `norm`: "both" sqrt(d_j d_i), "right" d_i, "left" d_j, "none" 1. Features (N, in), or a
    pair, to (N, out). DGLError for nodes without incoming edges unless `allow_zero_in_degree`, for
    an unknown `norm`, and for a weight in the call when the layer has its own.
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        norm: str = "both",
        weight: bool = True,
        bias: bool = True,
        activation=None,
        allow_zero_in_degree: bool = False,
    ):
        super().__init__()
        if norm not in _NORMS:
            raise DGLError(f"norm is one of {', '.join(_NORMS)}, not {norm!r}")
        self._in_feats = in_feats
        self._out_feats = out_feats
        self._norm = norm
        self._allow_zero_in_degree = allow_zero_in_degree
        self.weight = nn.Parameter(torch.empty(in_feats, out_feats)) if weight else None
        self.bias = nn.Parameter(torch.empty(out_feats)) if bias else None
        self.reset_parameters()
        self._activation = activation

    def reset_parameters(self) -> None:
        if self.weight is not None:
            nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, graph, feat, weight: Tensor | None = None, edge_weight=None) -> Tensor:
        self._check_in_degrees(graph)
        weight = self._chosen_weight(weight)
        source, _ = expand_as_pair(feat, graph)
        if self._norm in ("left", "both"):
            exponent = -0.5 if self._norm == "both" else -1.0
            source = source * degree_factor(graph.out_degrees(), source, exponent)
        # The narrower side is aggregated.
        multiply_first = self._in_feats > self._out_feats
        if weight is not None and multiply_first:
            source = source @ weight
        out = aggregate(graph, source, edge_weight)
        if weight is not None and not multiply_first:
            out = out @ weight
        if self._norm in ("right", "both"):
            exponent = -0.5 if self._norm == "both" else -1.0
            out = out * degree_factor(graph.in_degrees(), out, exponent)
        if self.bias is not None:
            out = out + self.bias
        return out if self._activation is None else self._activation(out)

    def _chosen_weight(self, weight: Tensor | None) -> Tensor | None:
        if weight is not None and self.weight is not None:
            raise DGLError("the layer has a weight of its own; make it with weight=False")
        return self.weight if weight is None else weight

    def extra_repr(self) -> str:
        sizes = f"in={self._in_feats}, out={self._out_feats}"
        return f"{sizes}, normalization={self._norm}, activation={self._activation}"
