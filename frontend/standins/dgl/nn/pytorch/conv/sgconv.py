"""SGC."""

from __future__ import annotations

from torch import Tensor, nn

from ..helpers import ChecksInDegrees
from .propagation import normalized_weight, symmetric_hop


class SGConv(ChecksInDegrees, nn.Module):
    """norm((D^-1/2 A D^-1/2)^k X) W + b (Wu et al., Simplifying Graph Convolutional Networks).

    Features (N, in) to (N, out); weights of edges as in APPNPConv. With `cached` the hops of the
    first call are kept for all that follow, whatever these are given. DGLError for nodes without
    incoming edges unless `allow_zero_in_degree`.
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        k: int = 1,
        cached: bool = False,
        bias: bool = True,
        norm=None,
        allow_zero_in_degree: bool = False,
    ):
        super().__init__()
        self.fc = nn.Linear(in_feats, out_feats, bias=bias)
        self._cached = cached
        self._cached_h = None
        self._k = k
        self.norm = norm
        self._allow_zero_in_degree = allow_zero_in_degree
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.fc.weight)
        if self.fc.bias is not None:
            nn.init.zeros_(self.fc.bias)

    def forward(self, graph, feat: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        self._check_in_degrees(graph)
        if self._cached_h is not None:
            return self.fc(self._cached_h)
        weight = normalized_weight(graph, edge_weight)
        for _ in range(self._k):
            feat = symmetric_hop(graph, feat, weight)
        if self.norm is not None:
            feat = self.norm(feat)
        if self._cached:
            self._cached_h = feat
        return self.fc(feat)
