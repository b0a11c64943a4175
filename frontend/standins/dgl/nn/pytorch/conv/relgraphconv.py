"""RGCN."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..helpers import aggregate_edges, relu_gain
from ..linear import TypedLinear


class RelGraphConv(nn.Module):
    """h_i = dropout(act(norm(sum_j e_ji h_j W_r(ji)) + b + h_i W_0)) (Schlichtkrull et al.,
    Modeling Relational Data with Graph Convolutional Networks).

    Features (N, in), types of edges (E,), and optionally the factors e (E, 1) to (N, out).
    `regularizer` and `num_bases` as in TypedLinear, as many bases as relations if none are given.
    """

    def __init__(
        self,
        in_feat: int,
        out_feat: int,
        num_rels: int,
        regularizer: str | None = None,
        num_bases: int | None = None,
        bias: bool = True,
        activation=None,
        self_loop: bool = True,
        dropout: float = 0.0,
        layer_norm: bool = False,
    ):
        super().__init__()
        if regularizer is not None and num_bases is None:
            num_bases = num_rels
        self.linear_r = TypedLinear(in_feat, out_feat, num_rels, regularizer, num_bases)
        self.bias = bias
        self.activation = activation
        self.self_loop = self_loop
        self.layer_norm = layer_norm
        if bias:
            self.h_bias = nn.Parameter(torch.zeros(out_feat))
        if layer_norm:
            self.layer_norm_weight = nn.LayerNorm(out_feat, elementwise_affine=True)
        if self_loop:
            self.loop_weight = nn.Parameter(torch.empty(in_feat, out_feat))
            nn.init.xavier_uniform_(self.loop_weight, gain=relu_gain())
        self.dropout = nn.Dropout(dropout)

    def forward(self, g, feat: Tensor, etypes, norm=None, *, presorted: bool = False) -> Tensor:
        etypes = torch.as_tensor(etypes, device=feat.device)
        messages = self.linear_r(feat[g.edges()[0]], etypes, presorted)
        if norm is not None:
            messages = messages * norm.reshape(-1, 1)
        out = aggregate_edges(g, messages)
        if self.layer_norm:
            out = self.layer_norm_weight(out)
        if self.bias:
            out = out + self.h_bias
        if self.self_loop:
            out = out + feat[: g.num_dst_nodes()] @ self.loop_weight
        if self.activation is not None:
            out = self.activation(out)
        return self.dropout(out)
