"""The continuous-filter convolution of SchNet."""

from __future__ import annotations

import math

from torch import Tensor, nn

from ..helpers import aggregate


class ShiftedSoftplus(nn.Module):
    """log(1 + exp(beta x)) / beta - log(shift)."""

    def __init__(self, beta: int = 1, shift: int = 2, threshold: int = 20):
        super().__init__()
        self.shift = shift
        self.softplus = nn.Softplus(beta=beta, threshold=threshold)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.softplus(inputs) - math.log(self.shift)


class CFConv(nn.Module):
    """h_i = ssp(W sum_j (W_n h_j) * ssp(W_2 ssp(W_1 e_ji))) (Schuett et al., SchNet).

    Features of nodes (N, node_in), or a pair, and of edges (E, edge_in) to (N, out).
    """

    def __init__(self, node_in_feats: int, edge_in_feats: int, hidden_feats: int, out_feats: int):
        super().__init__()
        self.project_edge = nn.Sequential(
            nn.Linear(edge_in_feats, hidden_feats),
            ShiftedSoftplus(),
            nn.Linear(hidden_feats, hidden_feats),
            ShiftedSoftplus(),
        )
        self.project_node = nn.Linear(node_in_feats, hidden_feats)
        self.project_out = nn.Sequential(nn.Linear(hidden_feats, out_feats), ShiftedSoftplus())

    def forward(self, g, node_feats, edge_feats: Tensor) -> Tensor:
        source = node_feats[0] if isinstance(node_feats, tuple) else node_feats
        filters = self.project_edge(edge_feats)
        return self.project_out(aggregate(g, self.project_node(source), filters))
