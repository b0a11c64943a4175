"""GAT, with and without features of edges."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .... import ops
from ..helpers import ChecksInDegrees, aggregate, aggregate_edges, attend, pair_of, relu_gain


class _AdditiveAttention(ChecksInDegrees, nn.Module):
    """What GATConv and EdgeGATConv share: projections, and scores a_l W h_j + a_r W h_i."""

    def __init__(self, in_feats, out_feats: int, num_heads: int, slope: float, drops, allow: bool):
        super().__init__()
        self._num_heads = num_heads
        self._in_src_feats, self._in_dst_feats = pair_of(in_feats)
        self._out_feats = out_feats
        self._allow_zero_in_degree = allow
        if isinstance(in_feats, tuple):
            self.fc_src = nn.Linear(self._in_src_feats, out_feats * num_heads, bias=False)
            self.fc_dst = nn.Linear(self._in_dst_feats, out_feats * num_heads, bias=False)
        else:
            self.fc = nn.Linear(self._in_src_feats, out_feats * num_heads, bias=False)
        self.attn_l = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.attn_r = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.feat_drop = nn.Dropout(drops[0])
        self.attn_drop = nn.Dropout(drops[1])
        self.leaky_relu = nn.LeakyReLU(slope)

    def _reset_attention(self) -> None:
        gain = relu_gain()
        for name in ("fc", "fc_src", "fc_dst"):
            if hasattr(self, name):
                nn.init.xavier_normal_(getattr(self, name).weight, gain=gain)
        nn.init.xavier_normal_(self.attn_l, gain=gain)
        nn.init.xavier_normal_(self.attn_r, gain=gain)

    def _project(self, graph, feat) -> tuple[Tensor, Tensor, Tensor]:
        """Sources and destinations in heads, and the destinations as they came in."""
        if not isinstance(feat, tuple):
            feat = self.feat_drop(feat)
            heads = self._heads(self.fc(feat))
            rows = graph.num_dst_nodes() if graph.is_block else None
            return heads, heads[:rows], feat[:rows]
        source, destination = self.feat_drop(feat[0]), self.feat_drop(feat[1])
        two = hasattr(self, "fc_src")
        of_source, of_destination = (self.fc_src, self.fc_dst) if two else (self.fc, self.fc)
        heads = self._heads(of_source(source)), self._heads(of_destination(destination))
        return *heads, destination

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.view(*projected.shape[:-1], self._num_heads, self._out_feats)

    def _scores(self, graph, source: Tensor, destination: Tensor) -> Tensor:
        left = (source * self.attn_l).sum(-1, keepdim=True)
        right = (destination * self.attn_r).sum(-1, keepdim=True)
        return ops.u_add_v(graph, left, right)

    def _finish(self, out: Tensor, residual) -> Tensor:
        if self.res_fc is not None:
            out = out + self._heads(self.res_fc(residual))
        if self.bias is not None:
            out = out + self.bias.view(self._num_heads, self._out_feats)
        return out if self.activation is None else self.activation(out)


class GATConv(_AdditiveAttention):
    """h_i = act(sum_j a_ij W h_j + b), a_ij = softmax_j(LeakyReLU(a_l W h_j + a_r W h_i))
    (Velickovic et al., Graph Attention Networks).

    Features (N, *, in), or a pair, to (N, *, heads, out); with `get_attention` also a (E, *, heads,
    1), after the weights of edges (E,) if there are any. With `residual` W_res h_i is added, h_i
    itself where the widths agree; W_res then carries the bias. DGLError for nodes without incoming
    edges unless `allow_zero_in_degree`.
    """

    def __init__(
        self,
        in_feats,
        out_feats: int,
        num_heads: int,
        feat_drop: float = 0.0,
        attn_drop: float = 0.0,
        negative_slope: float = 0.2,
        residual: bool = False,
        activation=None,
        allow_zero_in_degree: bool = False,
        bias: bool = True,
    ):
        drops = (feat_drop, attn_drop)
        super().__init__(
            in_feats, out_feats, num_heads, negative_slope, drops, allow_zero_in_degree
        )
        width = out_feats * num_heads
        self.has_linear_res = residual and self._in_dst_feats != width
        self.has_explicit_bias = bias and not self.has_linear_res
        if self.has_linear_res:
            self.res_fc = nn.Linear(self._in_dst_feats, width, bias=bias)
        elif residual:
            self.res_fc = nn.Identity()
        else:
            self.register_buffer("res_fc", None)
        if self.has_explicit_bias:
            self.bias = nn.Parameter(torch.empty(width))
        else:
            self.register_buffer("bias", None)
        self.reset_parameters()
        self.activation = activation

    def reset_parameters(self) -> None:
        self._reset_attention()
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.has_linear_res:
            nn.init.xavier_normal_(self.res_fc.weight, gain=relu_gain())
            if self.res_fc.bias is not None:
                nn.init.zeros_(self.res_fc.bias)

    def forward(self, graph, feat, edge_weight: Tensor | None = None, get_attention: bool = False):
        self._check_in_degrees(graph)
        source, destination, residual = self._project(graph, feat)
        scores = self.leaky_relu(self._scores(graph, source, destination))
        attention = attend(graph, scores, edge_weight, self.attn_drop)
        out = self._finish(aggregate(graph, source, attention), residual)
        return (out, attention) if get_attention else out


class EdgeGATConv(_AdditiveAttention):
    """h_i = act(W_res h_i + sum_j a_ij (W h_j + W_e e_ji) + b), a_ij = softmax_j(LeakyReLU(a_l W
    h_j + a_r W h_i + a_e W_e e_ji)) (SCENE, arXiv 2301.03512).

    Features of nodes (N, *, in), or a pair, and of edges (E, edge_feats) to (N, *, heads, out);
    with `get_attention` also a (E, *, heads, 1). DGLError as in GATConv.
    """

    def __init__(
        self,
        in_feats,
        edge_feats: int,
        out_feats: int,
        num_heads: int,
        feat_drop: float = 0.0,
        attn_drop: float = 0.0,
        negative_slope: float = 0.2,
        residual: bool = True,
        activation=None,
        allow_zero_in_degree: bool = False,
        bias: bool = True,
    ):
        drops = (feat_drop, attn_drop)
        super().__init__(
            in_feats, out_feats, num_heads, negative_slope, drops, allow_zero_in_degree
        )
        width = out_feats * num_heads
        if bias:
            self.bias = nn.Parameter(torch.empty(width))
        else:
            self.register_buffer("bias", None)
        if residual:
            self.res_fc = nn.Linear(self._in_dst_feats, width, bias=False)
        else:
            self.register_buffer("res_fc", None)
        self._edge_feats = edge_feats
        self.fc_edge = nn.Linear(edge_feats, width, bias=False)
        self.attn_edge = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.reset_parameters()
        self.activation = activation

    def reset_parameters(self) -> None:
        self._reset_attention()
        gain = relu_gain()
        nn.init.xavier_normal_(self.fc_edge.weight, gain=gain)
        nn.init.xavier_normal_(self.attn_edge, gain=gain)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.res_fc is not None:
            nn.init.xavier_normal_(self.res_fc.weight, gain=gain)

    def forward(self, graph, feat, edge_feat: Tensor, get_attention: bool = False):
        self._check_in_degrees(graph)
        source, destination, residual = self._project(graph, feat)
        edges = self._heads(self.fc_edge(edge_feat))
        of_edges = (edges * self.attn_edge).sum(-1, keepdim=True)
        scores = self.leaky_relu(self._scores(graph, source, destination) + of_edges)
        attention = attend(graph, scores, None, self.attn_drop)
        messages = aggregate(graph, source, attention) + aggregate_edges(graph, edges * attention)
        out = self._finish(messages, residual)
        return (out, attention) if get_attention else out
