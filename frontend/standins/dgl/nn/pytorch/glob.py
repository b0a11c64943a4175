"""Readouts: from the features of nodes to those of the graphs of a batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...readout import broadcast_nodes, readout_nodes, softmax_nodes, topk_nodes
from .recurrent import LSTM, State

__all__ = [
    "AvgPooling",
    "GlobalAttentionPooling",
    "MaxPooling",
    "Set2Set",
    "SortPooling",
    "SumPooling",
    "WeightAndSum",
]


def _readout(graph, feat: Tensor, op: str) -> Tensor:
    with graph.local_scope():
        graph.ndata["h"] = feat
        return readout_nodes(graph, "h", op=op)


def _softmax(graph, feat: Tensor) -> Tensor:
    with graph.local_scope():
        graph.ndata["h"] = feat
        return softmax_nodes(graph, "h")


class SumPooling(nn.Module):
    """The sum over the nodes of each graph: (N, *) to (B, *)."""

    def forward(self, graph, feat: Tensor) -> Tensor:
        return _readout(graph, feat, "sum")


class AvgPooling(nn.Module):
    """The mean over the nodes of each graph: (N, *) to (B, *)."""

    def forward(self, graph, feat: Tensor) -> Tensor:
        return _readout(graph, feat, "mean")


class MaxPooling(nn.Module):
    """The maximum over the nodes of each graph: (N, *) to (B, *)."""

    def forward(self, graph, feat: Tensor) -> Tensor:
        return _readout(graph, feat, "max")


class SortPooling(nn.Module):
    """The k nodes of each graph with the largest features, each node's sorted, in descending order
    of the largest, 0 where a graph has fewer (Zhang et al., An End-to-End Deep Learning
    Architecture for Graph Classification): (N, D) to (B, k * D).
    """

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, graph, feat: Tensor) -> Tensor:
        with graph.local_scope():
            graph.ndata["h"] = feat.sort(dim=-1).values
            nodes, _ = topk_nodes(graph, "h", self.k, sortby=-1)
        return nodes.reshape(-1, self.k * feat.shape[-1])


class WeightAndSum(nn.Module):
    """sum_i sigmoid(w h_i + b) h_i: (N, in) to (B, in)."""

    def __init__(self, in_feats: int):
        super().__init__()
        self.in_feats = in_feats
        self.atom_weighting = nn.Sequential(nn.Linear(in_feats, 1), nn.Sigmoid())

    def forward(self, g, feats: Tensor) -> Tensor:
        return _readout(g, feats * self.atom_weighting(feats), "sum")


class GlobalAttentionPooling(nn.Module):
    """sum_i softmax_i(gate(h_i)) f(h_i) (Li et al., Gated Graph Sequence Neural Networks): (N, D)
    to (B, D), with `get_attention` also the softmax (N, 1). AssertionError for a gate of another
    width than 1.
    """

    def __init__(self, gate_nn: nn.Module, feat_nn: nn.Module | None = None):
        super().__init__()
        self.gate_nn = gate_nn
        self.feat_nn = feat_nn

    def forward(self, graph, feat: Tensor, get_attention: bool = False):
        gate = self.gate_nn(feat)
        if gate.shape[-1] != 1:
            raise AssertionError(f"gate_nn gives {gate.shape[-1]} numbers a node, and 1 is needed")
        feat = feat if self.feat_nn is None else self.feat_nn(feat)
        attention = _softmax(graph, gate)
        out = _readout(graph, feat * attention, "sum")
        return (out, attention) if get_attention else out


class Set2Set(nn.Module):
    """q = LSTM(q*), a_i = softmax_i(h_i . q), q* = [q | sum_i a_i h_i], n_iters times from 0
    (Vinyals et al., Order Matters: Sequence to sequence for sets): (N, D) to (B, 2 D).
    """

    def __init__(self, input_dim: int, n_iters: int, n_layers: int):
        super().__init__()
        self.input_dim = input_dim
        self.output_dim = 2 * input_dim
        self.n_iters = n_iters
        self.n_layers = n_layers
        self.lstm = LSTM(self.output_dim, input_dim, n_layers)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lstm.reset_parameters()

    def forward(self, graph, feat: Tensor) -> Tensor:
        out = feat.new_zeros(graph.batch_size, self.output_dim)
        states = [self.lstm.start(out)] * self.n_layers
        for _ in range(self.n_iters):
            query, states = self._query(out, states)
            scores = (feat * broadcast_nodes(graph, query)).sum(dim=-1, keepdim=True)
            read = _readout(graph, feat * _softmax(graph, scores), "sum")
            out = torch.cat([query, read], dim=-1)
        return out

    def _query(self, rows: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
        after = []
        for layer, state in enumerate(states):
            after.append(self.lstm.step(f"l{layer}", rows, state))
            rows = after[-1][0]
        return rows, after

    def extra_repr(self) -> str:
        return f"n_iters={self.n_iters}"
