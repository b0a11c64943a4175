"""GCNII."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..helpers import ChecksInDegrees
from .propagation import normalized_weight, symmetric_hop


class GCN2Conv(ChecksInDegrees, nn.Module):
    """act(S ((1 - beta) I + beta W) + b), S = (1 - alpha) D^-1/2 A D^-1/2 H + alpha H_0, beta =
    log(lambda / layer + 1) (Chen et al., Simple and Deep Graph Convolutional Networks).

    Without `project_initial_features` H_0 has a W of its own. Features and first features (N, in)
    to (N, in); weights of edges as in APPNPConv. DGLError for nodes without incoming edges unless
    `allow_zero_in_degree`.
    """

    def __init__(
        self,
        in_feats: int,
        layer: int,
        alpha: float = 0.1,
        lambda_: float = 1,
        project_initial_features: bool = True,
        allow_zero_in_degree: bool = False,
        bias: bool = True,
        activation=None,
    ):
        super().__init__()
        self._in_feats = in_feats
        self._project_initial_features = project_initial_features
        self.alpha = alpha
        self.beta = math.log(lambda_ / layer + 1)
        self._bias = bias
        self._activation = activation
        self._allow_zero_in_degree = allow_zero_in_degree
        self.weight1 = nn.Parameter(torch.empty(in_feats, in_feats))
        if project_initial_features:
            self.register_parameter("weight2", None)
        else:
            self.weight2 = nn.Parameter(torch.empty(in_feats, in_feats))
        if bias:
            self.bias = nn.Parameter(torch.empty(in_feats))
        else:
            self.register_buffer("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight1)
        if self.weight2 is not None:
            nn.init.normal_(self.weight2)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, graph, feat: Tensor, feat_0: Tensor, edge_weight=None) -> Tensor:
        self._check_in_degrees(graph)
        weight = normalized_weight(graph, edge_weight)
        smooth = (1 - self.alpha) * symmetric_hop(graph, feat, weight)
        first = self.alpha * feat_0[: smooth.shape[0]]
        total = smooth + first
        if self.weight2 is None:
            projected = total @ self.weight1
        else:
            projected = smooth @ self.weight1 + first @ self.weight2
        out = (1 - self.beta) * total + self.beta * projected
        if self.bias is not None:
            out = out + self.bias
        return out if self._activation is None else self._activation(out)

    def extra_repr(self) -> str:
        return f"in={self._in_feats}, alpha={self.alpha}, beta={self.beta}"
