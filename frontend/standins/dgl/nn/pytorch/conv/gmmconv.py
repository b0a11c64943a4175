"""MoNet."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ....utils import expand_as_pair
from ..helpers import ChecksInDegrees, aggregate, pair_of, relu_gain


class GMMConv(ChecksInDegrees, nn.Module):
    """h_i = sum_k agg_j(exp(-|(u_ji - mu_k) / sigma_k|^2 / 2) W_k h_j) + residual + b (Monti et
    al., Geometric Deep Learning on Graphs and Manifolds using Mixture Model CNNs).

    Features (N, in), or a pair, and pseudo-coordinates (E, dim) to (N, out). KeyError for an
    aggregator that is not "sum", "mean" or "max"; DGLError for nodes without incoming edges unless
    `allow_zero_in_degree`.
    """

    def __init__(
        self,
        in_feats,
        out_feats: int,
        dim: int,
        n_kernels: int,
        aggregator_type: str = "sum",
        residual: bool = False,
        bias: bool = True,
        allow_zero_in_degree: bool = False,
    ):
        super().__init__()
        if aggregator_type not in ("sum", "mean", "max"):
            raise KeyError(f"aggregator_type is one of sum, mean, max, not {aggregator_type!r}")
        self._in_src_feats, self._in_dst_feats = pair_of(in_feats)
        self._out_feats = out_feats
        self._dim = dim
        self._n_kernels = n_kernels
        self._allow_zero_in_degree = allow_zero_in_degree
        self._aggre_type = aggregator_type
        self.mu = nn.Parameter(torch.empty(n_kernels, dim))
        self.inv_sigma = nn.Parameter(torch.empty(n_kernels, dim))
        self.fc = nn.Linear(self._in_src_feats, n_kernels * out_feats, bias=False)
        if residual and self._in_dst_feats != out_feats:
            self.res_fc = nn.Linear(self._in_dst_feats, out_feats, bias=False)
        elif residual:
            self.res_fc = nn.Identity()
        else:
            self.register_buffer("res_fc", None)
        if bias:
            self.bias = nn.Parameter(torch.empty(out_feats))
        else:
            self.register_buffer("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_normal_(self.fc.weight, gain=relu_gain())
        if isinstance(self.res_fc, nn.Linear):
            nn.init.xavier_normal_(self.res_fc.weight, gain=relu_gain())
        nn.init.normal_(self.mu, 0, 0.1)
        nn.init.ones_(self.inv_sigma)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, graph, feat, pseudo: Tensor) -> Tensor:
        self._check_in_degrees(graph)
        source, destination = expand_as_pair(feat, graph)
        kernels = self.fc(source).view(-1, self._n_kernels, self._out_feats)
        offsets = (pseudo.unsqueeze(1) - self.mu) * self.inv_sigma
        weights = torch.exp(-0.5 * offsets.square().sum(dim=-1, keepdim=True))
        out = aggregate(graph, kernels, weights, self._aggre_type).sum(dim=1)
        if self.res_fc is not None:
            out = out + self.res_fc(destination)
        return out if self.bias is None else out + self.bias
