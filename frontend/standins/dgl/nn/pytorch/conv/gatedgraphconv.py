"""The layer of gated graph neural networks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..helpers import ChecksInDegrees, aggregate, aggregate_edges, relu_gain


class GatedGraphConv(ChecksInDegrees, nn.Module):
    """h <- GRU(sum_j W_e(ji) h_j + b_e(ji), h), n_steps times, from h = [x | 0] (Li et al., Gated
    Graph Sequence Neural Networks).

    Features (N, in) with in <= out and types of edges (E,) to (N, out); the types may be left out
    where there is one. Nodes without incoming edges are allowed whatever is set. AssertionError for
    types that the layer does not have.
    """

    def __init__(
        self, in_feats: int, out_feats: int, n_steps: int, n_etypes: int, bias: bool = True
    ):
        super().__init__()
        self._in_feats = in_feats
        self._out_feats = out_feats
        self._n_steps = n_steps
        self._n_etypes = n_etypes
        self.linears = nn.ModuleList(nn.Linear(out_feats, out_feats) for _ in range(n_etypes))
        self.gru = nn.GRUCell(out_feats, out_feats, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.gru.reset_parameters()
        for linear in self.linears:
            nn.init.xavier_normal_(linear.weight, gain=relu_gain())
            nn.init.zeros_(linear.bias)

    def forward(self, graph, feat: Tensor, etypes: Tensor | None = None) -> Tensor:
        self._check_types(etypes)
        if self._in_feats < self._out_feats:
            rest = feat.new_zeros(feat.shape[0], self._out_feats - self._in_feats)
            feat = torch.cat([feat, rest], dim=-1)
        for _ in range(self._n_steps):
            feat = self.gru(self._messages(graph, feat, etypes), feat)
        return feat

    def _check_types(self, etypes: Tensor | None) -> None:
        if etypes is None and self._n_etypes != 1:
            raise AssertionError(f"the layer has {self._n_etypes} types of edges: give `etypes`")
        # A negative type would count from the end; in a traced program it does.
        if etypes is not None and not torch.compiler.is_dynamo_compiling():
            if ((etypes < 0) | (etypes >= self._n_etypes)).any():
                raise AssertionError(f"types of edges are from 0 to {self._n_etypes - 1}")

    def _messages(self, graph, feat: Tensor, etypes: Tensor | None) -> Tensor:
        if self._n_etypes == 1:
            return aggregate(graph, self.linears[0](feat))
        # One row for each type and node; an edge takes that of its type and source.
        rows = torch.stack([linear(feat) for linear in self.linears])
        return aggregate_edges(graph, rows[etypes, graph.edges()[0]])
