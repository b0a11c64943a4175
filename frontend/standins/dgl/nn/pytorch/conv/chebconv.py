"""ChebNet."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ....readout import broadcast_nodes
from .propagation import symmetric_hop


class ChebConv(nn.Module):
    """act(sum_{p < k} T_p(L) X W_p + b), L = 2 (I - D^-1/2 A D^-1/2) / lambda_max - I (Defferrard
    et al., Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering).

    Features (N, in) to (N, out). `lambda_max`, the largest eigenvalue of each graph of the batch,
    is a list or a tensor (B,), and 2 if it is not given.
    """

    def __init__(self, in_feats: int, out_feats: int, k: int, activation=F.relu, bias: bool = True):
        super().__init__()
        self._k = k
        self._in_feats = in_feats
        self._out_feats = out_feats
        self.activation = activation
        self.linear = nn.Linear(k * in_feats, out_feats, bias)

    def forward(self, graph, feat: Tensor, lambda_max=None) -> Tensor:
        scale = self._scale(graph, feat, lambda_max)

        def laplacian(rows: Tensor) -> Tensor:
            return rows * (scale - 1) - scale * symmetric_hop(graph, rows)

        terms = [feat]
        if self._k > 1:
            terms.append(laplacian(feat))
        for _ in range(2, self._k):
            terms.append(2 * laplacian(terms[-1]) - terms[-2])
        out = self.linear(torch.cat(terms, dim=1))
        return out if self.activation is None else self.activation(out)

    def _scale(self, graph, feat: Tensor, lambda_max):
        """2 / lambda_max, of each node's graph."""
        if lambda_max is None:
            return 1.0
        by_graph = torch.as_tensor(lambda_max).to(feat).reshape(-1, 1)
        return 2.0 / broadcast_nodes(graph, by_graph)
