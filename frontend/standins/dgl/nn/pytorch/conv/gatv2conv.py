"""GATv2."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .... import ops
from ..helpers import ChecksInDegrees, aggregate, attend, pair_of, relu_gain


class GATv2Conv(ChecksInDegrees, nn.Module):
    """h_i = act(sum_j a_ij W_r h_j), a_ij = softmax_j(a LeakyReLU(W_l h_i + W_r h_j)) (Brody et
    al., How Attentive are Graph Attention Networks?).

    Features (N, in), or a pair, to (N, heads, out); with `get_attention` also a (E, heads, 1). The
    biases are those of W_l and W_r (in DGL's names fc_dst and fc_src). DGLError for nodes without
    incoming edges unless `allow_zero_in_degree`.
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
        share_weights: bool = False,
    ):
        super().__init__()
        self._num_heads = num_heads
        self._in_src_feats, self._in_dst_feats = pair_of(in_feats)
        self._out_feats = out_feats
        self._allow_zero_in_degree = allow_zero_in_degree
        width = out_feats * num_heads
        self.fc_src = nn.Linear(self._in_src_feats, width, bias=bias)
        # A pair of sizes has two matrices whatever `share_weights` says.
        shares = share_weights and not isinstance(in_feats, tuple)
        self.fc_dst = self.fc_src if shares else nn.Linear(self._in_dst_feats, width, bias=bias)
        self.attn = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.feat_drop = nn.Dropout(feat_drop)
        self.attn_drop = nn.Dropout(attn_drop)
        self.leaky_relu = nn.LeakyReLU(negative_slope)
        if residual and self._in_dst_feats != width:
            self.res_fc = nn.Linear(self._in_dst_feats, width, bias=bias)
        elif residual:
            self.res_fc = nn.Identity()
        else:
            self.register_buffer("res_fc", None)
        self.activation = activation
        self.share_weights = share_weights
        self.bias = bias
        self.reset_parameters()

    def reset_parameters(self) -> None:
        linears = [self.fc_src] if self.share_weights else [self.fc_src, self.fc_dst]
        for linear in linears:
            self._reset(linear)
        nn.init.xavier_normal_(self.attn, gain=relu_gain())
        if isinstance(self.res_fc, nn.Linear):
            self._reset(self.res_fc)

    def _reset(self, linear: nn.Linear) -> None:
        nn.init.xavier_normal_(linear.weight, gain=relu_gain())
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)

    def forward(self, graph, feat, get_attention: bool = False):
        self._check_in_degrees(graph)
        source, destination, residual = self._project(graph, feat)
        mixed = self.leaky_relu(ops.u_add_v(graph, source, destination))
        scores = (mixed * self.attn).sum(-1, keepdim=True)
        attention = attend(graph, scores, None, self.attn_drop)
        out = aggregate(graph, source, attention)
        if self.res_fc is not None:
            out = out + self._heads(self.res_fc(residual))
        if self.activation is not None:
            out = self.activation(out)
        return (out, attention) if get_attention else out

    def _project(self, graph, feat) -> tuple[Tensor, Tensor, Tensor]:
        if isinstance(feat, tuple):
            source, destination = self.feat_drop(feat[0]), self.feat_drop(feat[1])
        else:
            source = destination = self.feat_drop(feat)
            if graph.is_block:
                destination = destination[: graph.num_dst_nodes()]
        heads_of_source = self._heads(self.fc_src(source))
        if source is destination and self.share_weights:
            return heads_of_source, heads_of_source, destination
        return heads_of_source, self._heads(self.fc_dst(destination)), destination

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.view(-1, self._num_heads, self._out_feats)
