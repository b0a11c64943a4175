"""APPNP."""

from __future__ import annotations

from torch import Tensor, nn

from ..helpers import aggregate, degree_factor
from .propagation import normalized_weight


class APPNPConv(nn.Module):
    """H <- (1 - alpha) D^-1/2 A D^-1/2 H + alpha H_0, k times (Klicpera et al., Predict then
    Propagate).

    Features (N, *) to the same shape. Weights of edges (E,) are normalised by EdgeWeightNorm;
    `edge_drop` draws edges anew in each iteration. DGLError for weights <= 0.
    """

    def __init__(self, k: int, alpha: float, edge_drop: float = 0.0):
        super().__init__()
        self._k = k
        self._alpha = alpha
        self.edge_drop = nn.Dropout(edge_drop)

    def forward(self, graph, feat: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        weight = normalized_weight(graph, edge_weight)
        first = feat
        for _ in range(self._k):
            hop = self._hop(graph, feat, weight)
            feat = (1 - self._alpha) * hop + self._alpha * first
        return feat

    def _hop(self, graph, feat: Tensor, weight: Tensor | None) -> Tensor:
        if weight is not None:
            return aggregate(graph, feat, self.edge_drop(self._column(weight, feat)))
        source = feat * degree_factor(graph.out_degrees(), feat, -0.5)
        kept = None
        if self.training and self.edge_drop.p > 0:
            kept = self.edge_drop(self._column(feat.new_ones(graph.num_edges()), feat))
        hop = aggregate(graph, source, kept)
        return hop * degree_factor(graph.in_degrees(), feat, -0.5)

    def _column(self, weight: Tensor, feat: Tensor) -> Tensor:
        return weight.reshape(-1, *[1] * (feat.dim() - 1))
