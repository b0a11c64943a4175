"""EGNN."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..helpers import aggregate_edges, ends

# Nodes at one place would otherwise divide 0 by 0.
_TINY = 1e-30


class EGNNConv(nn.Module):
    """m_ij = phi_e(h_j, h_i, |x_j - x_i|^2, a_ji), x_i <- x_i + mean_j((x_j - x_i) / |x_j - x_i|
    phi_x(m_ij)), h_i <- phi_h(h_i, sum_j m_ij) (Satorras et al., E(n) Equivariant Graph Neural
    Networks).

    Features of nodes (N, in), coordinates (N, d) and features of edges (E, edge_feat_size) to (N,
    out) and (N, d). AssertionError for features of edges that are missing.
    """

    def __init__(self, in_size: int, hidden_size: int, out_size: int, edge_feat_size: int = 0):
        super().__init__()
        self.in_size = in_size
        self.hidden_size = hidden_size
        self.out_size = out_size
        self.edge_feat_size = edge_feat_size
        self.edge_mlp = nn.Sequential(
            nn.Linear(in_size * 2 + edge_feat_size + 1, hidden_size),
            nn.SiLU(),
            nn.Linear(hidden_size, hidden_size),
            nn.SiLU(),
        )
        self.node_mlp = nn.Sequential(
            nn.Linear(in_size + hidden_size, hidden_size),
            nn.SiLU(),
            nn.Linear(hidden_size, out_size),
        )
        self.coord_mlp = nn.Sequential(
            nn.Linear(hidden_size, hidden_size),
            nn.SiLU(),
            nn.Linear(hidden_size, 1, bias=False),
        )

    def forward(self, graph, node_feat: Tensor, coord_feat: Tensor, edge_feat=None):
        if self.edge_feat_size > 0 and edge_feat is None:
            raise AssertionError(f"the layer needs features of edges (E, {self.edge_feat_size})")
        source, destination = ends(graph, coord_feat, coord_feat)
        offset = source - destination
        square = offset.square().sum(dim=1, keepdim=True)
        parts = [*ends(graph, node_feat, node_feat), square]
        if self.edge_feat_size > 0:
            parts.append(edge_feat)
        messages = self.edge_mlp(torch.cat(parts, dim=-1))
        steps = self.coord_mlp(messages) * (offset / (square.sqrt() + _TINY))
        total = aggregate_edges(graph, messages)
        nodes = self.node_mlp(torch.cat([node_feat, total], dim=-1))
        return nodes, coord_feat + aggregate_edges(graph, steps, "mean")
