"""GatedGCN."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .... import ops
from ..helpers import aggregate, aggregate_edges


class GatedGCNConv(nn.Module):
    """e' = C e + D h_j + E h_i, h' = A h_i + sum_j s(e') B h_j / (sum_j s(e') + 1e-6), s the
    sigmoid, each with batch norm, activation and residual (Dwivedi et al., Benchmarking Graph
    Neural Networks).

    Features of nodes (N, in) and of edges (E, edge_feats) to (N, out) and (E, out); a residual asks
    for equal widths.
    """

    def __init__(
        self,
        input_feats: int,
        edge_feats: int,
        output_feats: int,
        dropout: float = 0,
        batch_norm: bool = True,
        residual: bool = True,
        activation=F.relu,
    ):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.batch_norm = batch_norm
        self.residual = residual
        if input_feats != output_feats or edge_feats != output_feats:
            self.residual = False
        self.A = nn.Linear(input_feats, output_feats, bias=True)
        self.B = nn.Linear(input_feats, output_feats, bias=True)
        self.D = nn.Linear(input_feats, output_feats, bias=True)
        self.E = nn.Linear(input_feats, output_feats, bias=True)
        self.C = nn.Linear(edge_feats, output_feats, bias=True)
        self.bn_node = nn.BatchNorm1d(output_feats)
        self.bn_edge = nn.BatchNorm1d(output_feats)
        self.activation = activation

    def forward(self, graph, feat: Tensor, edge_feat: Tensor) -> tuple[Tensor, Tensor]:
        edges = ops.u_add_v(graph, self.D(feat), self.E(feat)) + self.C(edge_feat)
        gates = torch.sigmoid(edges)
        gated = aggregate(graph, self.B(feat), gates)
        nodes = self.A(feat) + gated / (aggregate_edges(graph, gates) + 1e-6)
        return self._finish(nodes, feat, self.bn_node), self._finish(edges, edge_feat, self.bn_edge)

    def _finish(self, out: Tensor, before: Tensor, norm: nn.Module) -> Tensor:
        if self.batch_norm:
            out = norm(out)
        if self.activation is not None:
            out = self.activation(out)
        return self.dropout(before + out if self.residual else out)
