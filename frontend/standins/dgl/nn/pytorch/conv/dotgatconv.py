"""Attention by dot products."""

from __future__ import annotations

import math

from torch import Tensor, nn

from .... import ops
from ..helpers import ChecksInDegrees, aggregate, pair_of


class DotGatConv(ChecksInDegrees, nn.Module):
    """h_i = sum_j a_ij W_j h_j, a_ij = softmax_j(W_i h_i . W_j h_j / sqrt(out)): the layer of
    Velickovic et al., Graph Attention Networks, with the scores of Vaswani et al., Attention Is All
    You Need.

    Features (N, in), or a pair, to (N, heads, out); with `get_attention` also a (E, heads, 1).
    DGLError for nodes without incoming edges unless `allow_zero_in_degree`.
    """

    def __init__(
        self, in_feats, out_feats: int, num_heads: int, allow_zero_in_degree: bool = False
    ):
        super().__init__()
        self._in_src_feats, self._in_dst_feats = pair_of(in_feats)
        self._out_feats = out_feats
        self._allow_zero_in_degree = allow_zero_in_degree
        self._num_heads = num_heads
        width = out_feats * num_heads
        if isinstance(in_feats, tuple):
            self.fc_src = nn.Linear(self._in_src_feats, width, bias=False)
            self.fc_dst = nn.Linear(self._in_dst_feats, width, bias=False)
        else:
            self.fc = nn.Linear(self._in_src_feats, width, bias=False)

    def forward(self, graph, feat, get_attention: bool = False):
        self._check_in_degrees(graph)
        source, destination = self._project(graph, feat)
        scores = ops.u_dot_v(graph, source, destination) / math.sqrt(self._out_feats)
        attention = ops.edge_softmax(graph, scores)
        out = aggregate(graph, source, attention)
        return (out, attention) if get_attention else out

    def _project(self, graph, feat) -> tuple[Tensor, Tensor]:
        if isinstance(feat, tuple):
            return self._heads(self.fc_src(feat[0])), self._heads(self.fc_dst(feat[1]))
        source = destination = self._heads(self.fc(feat))
        return source, destination[: graph.num_dst_nodes()] if graph.is_block else destination

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.view(-1, self._num_heads, self._out_feats)
