"""GCN, GraphSAGE and ChebNet over a dense adjacency matrix, rows destinations, columns sources."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ....utils import check_eq_shape
from ..helpers import relu_gain


class DenseGraphConv(nn.Module):
    """GraphConv with `adj` (N_out, N_in) for a graph; `norm` "both", "right" or "none"."""

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        norm: str = "both",
        bias: bool = True,
        activation=None,
    ):
        super().__init__()
        self._in_feats = in_feats
        self._out_feats = out_feats
        self._norm = norm
        self.weight = nn.Parameter(torch.empty(in_feats, out_feats))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_feats))
        else:
            self.register_buffer("bias", None)
        self.reset_parameters()
        self._activation = activation

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, adj: Tensor, feat: Tensor) -> Tensor:
        adj = adj.to(feat)
        if self._norm == "both":
            feat = feat * adj.sum(dim=0).clamp(min=1).pow(-0.5).unsqueeze(-1)
        if self._in_feats > self._out_feats:
            out = adj @ (feat @ self.weight)
        else:
            out = (adj @ feat) @ self.weight
        if self._norm != "none":
            exponent = -0.5 if self._norm == "both" else -1.0
            out = out * adj.sum(dim=1).clamp(min=1).pow(exponent).unsqueeze(-1)
        if self.bias is not None:
            out = out + self.bias
        return out if self._activation is None else self._activation(out)


class DenseSAGEConv(nn.Module):
    """SAGEConv with the aggregator "gcn" and `adj` (N_out, N_in) in place of the graph.

    DGLError for ends of different widths.
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        feat_drop: float = 0.0,
        bias: bool = True,
        norm=None,
        activation=None,
    ):
        super().__init__()
        self._in_feats = in_feats
        self._out_feats = out_feats
        self._norm = norm
        self.feat_drop = nn.Dropout(feat_drop)
        self.activation = activation
        self.fc = nn.Linear(in_feats, out_feats, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.fc.weight, gain=relu_gain())

    def forward(self, adj: Tensor, feat) -> Tensor:
        if isinstance(feat, tuple):
            check_eq_shape(feat)
            source, destination = self.feat_drop(feat[0]), self.feat_drop(feat[1])
        else:
            source = destination = self.feat_drop(feat)
        adj = adj.to(source)
        out = self.fc((adj @ source + destination) / (adj.sum(dim=1, keepdim=True) + 1))
        if self.activation is not None:
            out = self.activation(out)
        return out if self._norm is None else self._norm(out)


class DenseChebConv(nn.Module):
    """ChebConv with `adj` (N, N) in place of the graph, and no activation.

    `lambda_max` is a number; without it the largest eigenvalue is computed.
    """

    def __init__(self, in_feats: int, out_feats: int, k: int, bias: bool = True):
        super().__init__()
        self._in_feats = in_feats
        self._out_feats = out_feats
        self._k = k
        self.W = nn.Parameter(torch.empty(k, in_feats, out_feats))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_feats))
        else:
            self.register_buffer("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        for matrix in self.W:
            nn.init.xavier_normal_(matrix, relu_gain())

    def forward(self, adj: Tensor, feat: Tensor, lambda_max: float | None = None) -> Tensor:
        adj = adj.to(feat)
        factor = adj.sum(dim=1).clamp(min=1).pow(-0.5)
        identity = torch.eye(adj.shape[0], dtype=adj.dtype, device=adj.device)
        laplacian = identity - factor.unsqueeze(1) * adj * factor
        if lambda_max is None:
            lambda_max = torch.linalg.eigvals(laplacian).real.max()
        scaled = 2 * laplacian / lambda_max - identity
        terms = [feat, scaled @ feat]
        for _ in range(2, self._k):
            terms.append(2 * (scaled @ terms[-1]) - terms[-2])
        out = sum(term @ matrix for term, matrix in zip(terms[: self._k], self.W, strict=True))
        return out if self.bias is None else out + self.bias
