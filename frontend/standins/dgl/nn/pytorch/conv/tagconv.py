"""TAGCN."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..helpers import relu_gain
from .propagation import normalized_weight, symmetric_hop


class TAGConv(nn.Module):
    """act(sum_{p <= k} (D^-1/2 A D^-1/2)^p X W_p + b) (Du et al., Topology Adaptive Graph
    Convolutional Networks).

    Features (N, in) to (N, out); weights of edges as in APPNPConv. The W_p are one matrix `lin`.
    """

    def __init__(
        self, in_feats: int, out_feats: int, k: int = 2, bias: bool = True, activation=None
    ):
        super().__init__()
        self._in_feats = in_feats
        self._out_feats = out_feats
        self._k = k
        self._activation = activation
        self.lin = nn.Linear(in_feats * (k + 1), out_feats, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_normal_(self.lin.weight, gain=relu_gain())

    def forward(self, graph, feat: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        weight = normalized_weight(graph, edge_weight)
        powers = [feat]
        for _ in range(self._k):
            powers.append(symmetric_hop(graph, powers[-1], weight))
        out = self.lin(torch.cat(powers, dim=-1))
        return out if self._activation is None else self._activation(out)
