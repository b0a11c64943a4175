"""HGT."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .... import ops
from ..helpers import aggregate_edges, ends
from ..linear import TypedLinear


class HGTConv(nn.Module):
    """Attention with projections by type of node (K, Q, V, A) and of edge (W_att, W_msg, mu), a
    gated residual and optionally a layer norm (Hu et al., Heterogeneous Graph Transformer).

    a_ij = softmax_j(K_j W_att Q_i mu / sqrt(d)), h'_i = A sum_j a_ij V_j W_msg, h_i = s h'_i + (1 -
    s) h_i with s = sigmoid(skip) of i's type. Features (N, in), types of nodes (N,) and of edges
    (E,) to (N, heads * head_size).
    """

    def __init__(
        self,
        in_size: int,
        head_size: int,
        num_heads: int,
        num_ntypes: int,
        num_etypes: int,
        dropout: float = 0.2,
        use_norm: bool = False,
    ):
        super().__init__()
        self.in_size = in_size
        self.head_size = head_size
        self.num_heads = num_heads
        self.sqrt_d = math.sqrt(head_size)
        self.use_norm = use_norm
        width = head_size * num_heads
        self.linear_k = TypedLinear(in_size, width, num_ntypes)
        self.linear_q = TypedLinear(in_size, width, num_ntypes)
        self.linear_v = TypedLinear(in_size, width, num_ntypes)
        self.linear_a = TypedLinear(width, width, num_ntypes)
        self.relation_pri = nn.ParameterList(torch.ones(num_etypes) for _ in range(num_heads))
        self.relation_att = self._of_heads(num_etypes)
        self.relation_msg = self._of_heads(num_etypes)
        self.skip = nn.Parameter(torch.ones(num_ntypes))
        self.drop = nn.Dropout(dropout)
        if use_norm:
            self.norm = nn.LayerNorm(width)
        if in_size != width:
            self.residual_w = nn.Parameter(torch.empty(in_size, width))
            nn.init.xavier_uniform_(self.residual_w)

    def _of_heads(self, num_etypes: int) -> nn.ModuleList:
        size = self.head_size
        return nn.ModuleList(TypedLinear(size, size, num_etypes) for _ in range(self.num_heads))

    def forward(self, g, x: Tensor, ntype, etype, *, presorted: bool = False) -> Tensor:
        own, own_type = x, ntype
        if g.is_block:
            own, own_type = x[: g.num_dst_nodes()], ntype[: g.num_dst_nodes()]
        keys = self._heads(self.linear_k(x, ntype, presorted))
        queries = self._heads(self.linear_q(own, own_type, presorted))
        values = self._heads(self.linear_v(x, ntype, presorted))
        keys, queries = ends(g, keys, queries)
        scores = self._scores(keys, queries, etype, presorted)
        values = self._by_relation(self.relation_msg, values[g.edges()[0]], etype, presorted)
        attention = ops.edge_softmax(g, scores).unsqueeze(-1)
        out = aggregate_edges(g, values * attention).flatten(1)
        out = self.drop(self.linear_a(out, own_type, presorted))
        gate = torch.sigmoid(self.skip[own_type]).unsqueeze(-1)
        if self.in_size != self.head_size * self.num_heads:
            own = own @ self.residual_w
        out = out * gate + own * (1 - gate)
        return self.norm(out) if self.use_norm else out

    def _heads(self, rows: Tensor) -> Tensor:
        return rows.view(-1, self.num_heads, self.head_size)

    def _scores(self, keys: Tensor, queries: Tensor, etype, presorted: bool) -> Tensor:
        products = (self._by_relation(self.relation_att, keys, etype, presorted) * queries).sum(-1)
        priors = torch.stack([prior[etype] for prior in self.relation_pri], dim=1)
        return products * priors / self.sqrt_d

    def _by_relation(self, linears: nn.ModuleList, rows: Tensor, etype, presorted: bool) -> Tensor:
        heads = [linear(rows[:, i], etype, presorted) for i, linear in enumerate(linears)]
        return torch.stack(heads, dim=1)
