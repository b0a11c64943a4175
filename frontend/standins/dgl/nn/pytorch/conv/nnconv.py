"""NNConv, the layer of message passing with a network of the edges."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ....utils import expand_as_pair
from ..helpers import aggregate_edges, pair_of, relu_gain


class NNConv(nn.Module):
    """h_i = agg_j(h_j Theta(e_ji)) + residual + b, Theta an in x out matrix (Gilmer et al., Neural
    Message Passing for Quantum Chemistry).

    Features of nodes (N, in), or a pair, and of edges for `edge_func` to (N, out). "max" is taken
    over the products of single numbers, and their sum after it. KeyError for an aggregator that is
    not "sum", "mean" or "max".
    """

    def __init__(
        self,
        in_feats,
        out_feats: int,
        edge_func,
        aggregator_type: str = "mean",
        residual: bool = False,
        bias: bool = True,
    ):
        super().__init__()
        if aggregator_type not in ("sum", "mean", "max"):
            raise KeyError(f"aggregator_type is one of sum, mean, max, not {aggregator_type!r}")
        self._in_src_feats, self._in_dst_feats = pair_of(in_feats)
        self._out_feats = out_feats
        self.edge_func = edge_func
        self._aggre_type = aggregator_type
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
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if isinstance(self.res_fc, nn.Linear):
            nn.init.xavier_normal_(self.res_fc.weight, gain=relu_gain())

    def forward(self, graph, feat, efeat: Tensor) -> Tensor:
        source, destination = expand_as_pair(feat, graph)
        matrices = self.edge_func(efeat).view(-1, self._in_src_feats, self._out_feats)
        rows = source[graph.edges()[0]].unsqueeze(-1)
        if self._aggre_type == "max":
            out = aggregate_edges(graph, rows * matrices, "max").sum(dim=1)
        else:
            out = aggregate_edges(graph, (rows * matrices).sum(dim=1), self._aggre_type)
        if self.res_fc is not None:
            out = out + self.res_fc(destination)
        return out if self.bias is None else out + self.bias
