"""GIN, without and with features of edges."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ....utils import expand_as_pair
from ..helpers import aggregate, aggregate_edges


class _Epsilon(nn.Module):
    """Layers with the weight 1 + eps of a node's own features, learned or fixed."""

    def __init__(self, apply_func, init_eps: float, learn_eps: bool):
        super().__init__()
        self.apply_func = apply_func
        eps = torch.tensor([init_eps], dtype=torch.get_default_dtype())
        if learn_eps:
            self.eps = nn.Parameter(eps)
        else:
            self.register_buffer("eps", eps)

    def _combine(self, destination: Tensor, neighbours: Tensor) -> Tensor:
        out = (1 + self.eps) * destination + neighbours
        return out if self.apply_func is None else self.apply_func(out)


class GINConv(_Epsilon):
    """h_i = act(f((1 + eps) h_i + agg_j(e_ji h_j))) (Xu et al., How Powerful are Graph Neural
    Networks?).

    `aggregator_type` is "sum", "max" or "mean", else KeyError. Features (N, in), or a pair, to what
    `apply_func` makes of them.
    """

    def __init__(
        self,
        apply_func=None,
        aggregator_type: str = "sum",
        init_eps: float = 0,
        learn_eps: bool = False,
        activation=None,
    ):
        if aggregator_type not in ("sum", "max", "mean"):
            raise KeyError(f"aggregator_type is one of sum, max, mean, not {aggregator_type!r}")
        super().__init__(apply_func, init_eps, learn_eps)
        self._aggregator_type = aggregator_type
        self.activation = activation

    def forward(self, graph, feat, edge_weight: Tensor | None = None) -> Tensor:
        source, destination = expand_as_pair(feat, graph)
        neighbours = aggregate(graph, source, edge_weight, self._aggregator_type)
        out = self._combine(destination, neighbours)
        return out if self.activation is None else self.activation(out)


class GINEConv(_Epsilon):
    """h_i = f((1 + eps) h_i + sum_j relu(h_j + e_ji)) (Hu et al., Strategies for Pre-training Graph
    Neural Networks).

    Features of nodes (N, in), or a pair, and of edges (E, in).
    """

    def __init__(self, apply_func=None, init_eps: float = 0, learn_eps: bool = False):
        super().__init__(apply_func, init_eps, learn_eps)

    def forward(self, graph, node_feat, edge_feat: Tensor) -> Tensor:
        source, destination = expand_as_pair(node_feat, graph)
        messages = torch.relu(source[graph.edges()[0]] + edge_feat)
        return self._combine(destination, aggregate_edges(graph, messages))
