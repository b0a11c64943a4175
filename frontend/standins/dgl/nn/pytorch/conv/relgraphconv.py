"""RGCN."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ....utils import expand_as_pair
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
        norm = None if norm is None else norm.reshape(-1, 1)
        if self._relations_are_few(g, feat):
            out = self._by_relation(g, feat, etypes, norm)
        else:
            messages = self.linear_r(feat[g.edges()[0]], etypes, presorted)
            out = aggregate_edges(g, messages if norm is None else messages * norm)
        if self.layer_norm:
            out = self.layer_norm_weight(out)
        if self.bias:
            out = out + self.h_bias
        if self.self_loop:
            out = out + expand_as_pair(feat, g)[1] @ self.loop_weight
        if self.activation is not None:
            out = self.activation(out)
        return self.dropout(out)

    def _relations_are_few(self, g, feat: Tensor) -> bool:
        """Whether sums at all nodes for each relation are less work than the edges' messages. A
        compiler is given the messages, and finds out itself."""
        if torch.compiler.is_dynamo_compiling() or self.linear_r.regularizer == "bdd":
            return False
        return self.linear_r.num_types * g.num_dst_nodes() <= 2 * g.num_edges()

    def _by_relation(self, g, feat: Tensor, etypes: Tensor, norm: Tensor | None) -> Tensor:
        """sum_r (sum_j e_ji h_j) W_r."""
        source, destination = g.edges()
        parts = []
        for etype, matrix in enumerate(self.linear_r.get_weight()):
            edges = (etypes == etype).nonzero().squeeze(1)
            rows = feat.index_select(0, source[edges])
            rows = rows if norm is None else rows * norm[edges]
            sums = feat.new_zeros(g.num_dst_nodes(), feat.shape[1])
            parts.append(sums.index_add_(0, destination[edges], rows) @ matrix)
        return sum(parts)
