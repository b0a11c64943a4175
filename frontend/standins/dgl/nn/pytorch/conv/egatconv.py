"""EGAT."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .... import ops
from ..helpers import ChecksInDegrees, aggregate, attend, pair_of, relu_gain


class EGATConv(ChecksInDegrees, nn.Module):
    """f'_ij = LeakyReLU(A [h_i | f_ij | h_j] + b), h_i = sum_j softmax_j(F f'_ij) W h_j
    (Kaminski et al., Rossmann-toolbox).

    Features of nodes (N, in), or a pair, and of edges (E, in_edge_feats) to those of nodes (N,
    heads, out) and of edges (E, heads, out_edge_feats); with `get_attention` also the softmax (E,
    heads, 1), after the weights of edges (E,) if there are any. DGLError for nodes without incoming
    edges.
    """

    def __init__(
        self,
        in_node_feats,
        in_edge_feats: int,
        out_node_feats: int,
        out_edge_feats: int,
        num_heads: int,
        bias: bool = True,
    ):
        super().__init__()
        self._num_heads = num_heads
        self._in_src_node_feats, self._in_dst_node_feats = pair_of(in_node_feats)
        self._out_node_feats = out_node_feats
        self._out_edge_feats = out_edge_feats
        width = out_edge_feats * num_heads
        self.fc_node_src = nn.Linear(
            self._in_src_node_feats, out_node_feats * num_heads, bias=False
        )
        self.fc_ni = nn.Linear(self._in_src_node_feats, width, bias=False)
        self.fc_nj = nn.Linear(self._in_dst_node_feats, width, bias=False)
        self.fc_fij = nn.Linear(in_edge_feats, width, bias=False)
        self.attn = nn.Parameter(torch.empty(1, num_heads, out_edge_feats))
        if bias:
            self.bias = nn.Parameter(torch.empty(width))
        else:
            self.register_buffer("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        gain = relu_gain()
        for linear in (self.fc_node_src, self.fc_ni, self.fc_fij, self.fc_nj):
            nn.init.xavier_normal_(linear.weight, gain=gain)
        nn.init.xavier_normal_(self.attn, gain=gain)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        graph,
        nfeats,
        efeats: Tensor,
        edge_weight: Tensor | None = None,
        get_attention: bool = False,
    ):
        self._check_in_degrees(graph)
        source, destination = nfeats if isinstance(nfeats, tuple) else (nfeats, nfeats)
        mixed = ops.u_add_v(graph, self.fc_ni(source), self.fc_nj(destination))
        mixed = mixed + self.fc_fij(efeats)
        if self.bias is not None:
            mixed = mixed + self.bias
        edges = nn.functional.leaky_relu(mixed).view(-1, self._num_heads, self._out_edge_feats)
        scores = (edges * self.attn).sum(-1, keepdim=True)
        attention = attend(graph, scores, edge_weight, nn.Identity())
        projected = self.fc_node_src(source).view(-1, self._num_heads, self._out_node_feats)
        out = aggregate(graph, projected, attention)
        return (out, edges, attention) if get_attention else (out, edges)
