"""What is used between and around the layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...graph import DGLGraph
from .helpers import aggregate, degree_factor, relu_gain
from .recurrent import LSTM

__all__ = [
    "JumpingKnowledge",
    "LabelPropagation",
    "Sequential",
    "WeightBasis",
]

Identity = nn.Identity


def matmul_maybe_select(A: Tensor, B: Tensor) -> Tensor:
    """A B, where integers A (N,) stand for rows of 0 with one 1."""
    return B[A] if A.dim() == 1 and A.dtype == torch.int64 else A @ B


def bmm_maybe_select(A: Tensor, B: Tensor, index: Tensor) -> Tensor:
    """Row n: A[n] B[index[n]], where integers A (N,) stand for rows of 0 with one 1."""
    if A.dim() == 1 and A.dtype == torch.int64:
        return B[index, A]
    return torch.bmm(A.unsqueeze(1), B[index]).squeeze(1)


class Sequential(nn.Sequential):
    """Modules one after the other, all on one graph or each on its own of a list of graphs.

    A module's results are the features that the next one is called with. ValueError for a list of
    another length, TypeError for what is no graph.
    """

    def forward(self, graph, *feats):
        if isinstance(graph, list) and len(graph) != len(self):
            raise ValueError(f"{len(graph)} graphs for {len(self)} modules")
        graphs = graph if isinstance(graph, list) else [graph] * len(self)
        for module, own in zip(self, graphs, strict=True):
            if not isinstance(own, DGLGraph):
                raise TypeError(f"the first argument is a graph or a list of them, not {own!r}")
            feats = feats if isinstance(feats, tuple) else (feats,)
            feats = module(own, *feats)
        return feats


class WeightBasis(nn.Module):
    """W_r = sum_b w_comp_rb V_b (Schlichtkrull et al., Modeling Relational Data with Graph
    Convolutional Networks): a call gives all of them, (num_outputs, *shape).
    """

    def __init__(self, shape: tuple[int, ...], num_bases: int, num_outputs: int):
        super().__init__()
        self.shape = shape
        self.num_bases = num_bases
        self.num_outputs = num_outputs
        self.weight = nn.Parameter(torch.empty(num_bases, *shape))
        nn.init.xavier_uniform_(self.weight, gain=relu_gain())
        self.w_comp = nn.Parameter(torch.empty(num_outputs, num_bases))
        nn.init.xavier_uniform_(self.w_comp, gain=relu_gain())

    def forward(self) -> Tensor:
        weight = self.w_comp @ self.weight.view(self.num_bases, -1)
        return weight.view(self.num_outputs, *self.shape)


class JumpingKnowledge(nn.Module):
    """The outputs of all layers, concatenated, their maximum, or their sum with the softmax of
    scores from an LSTM in both directions (Xu et al., Representation Learning on Graphs with
    Jumping Knowledge Networks).

    `mode` is "cat", "max" or "lstm", the last with `in_feats` and `num_layers`, else
    AssertionError. A list of (N, D) to (N, D), or (N, layers * D) with "cat".
    """

    def __init__(
        self, mode: str = "cat", in_feats: int | None = None, num_layers: int | None = None
    ):
        super().__init__()
        if mode not in ("cat", "max", "lstm"):
            raise AssertionError(f"mode is cat, max or lstm, not {mode!r}")
        self.mode = mode
        if mode == "lstm":
            if in_feats is None or num_layers is None:
                raise AssertionError('mode="lstm" needs in_feats and num_layers')
            hidden = num_layers * in_feats // 2
            self.lstm = LSTM(in_feats, hidden, bidirectional=True)
            self.att = nn.Linear(2 * hidden, 1)

    def reset_parameters(self) -> None:
        if self.mode == "lstm":
            self.lstm.reset_parameters()
            self.att.reset_parameters()

    def forward(self, feat_list: list[Tensor]) -> Tensor:
        if self.mode == "cat":
            return torch.cat(feat_list, dim=-1)
        stacked = torch.stack(feat_list, dim=1)
        if self.mode == "max":
            return stacked.max(dim=1).values
        scores = torch.softmax(self.att(self._both_ways(feat_list)), dim=1)
        return (stacked * scores).sum(dim=1)

    def _both_ways(self, feat_list: list[Tensor]) -> Tensor:
        """The LSTM's states after each layer, from the first on and from the last on."""
        ahead = self._states(feat_list, "l0")
        back = self._states(feat_list[::-1], "l0_reverse")[::-1]
        return torch.stack([torch.cat(ends, dim=-1) for ends in zip(ahead, back)], dim=1)

    def _states(self, feat_list: list[Tensor], cell: str) -> list[Tensor]:
        states = [self.lstm.start(feat_list[0])]
        for rows in feat_list:
            states.append(self.lstm.step(cell, rows, states[-1]))
        return [shown for shown, _ in states[1:]]


class LabelPropagation(nn.Module):
    """Y <- alpha A Y + (1 - alpha) Y_0, k times, A normalised by rows ("row") or on both sides
    ("sym") (Zhu and Ghahramani, Learning from Labeled and Unlabeled Data with Label Propagation).

    Labels (N,) or (N, 1) of classes, or (N, C) of 0 and 1, of which `mask` (N,) tells the known
    ones, to (N, C). After each step: `clamp` to [0, 1], `normalize` rows to sum 1, `reset` the
    known labels. ValueError for another `norm_type`.
    """

    def __init__(
        self,
        k: int,
        alpha: float,
        norm_type: str = "sym",
        clamp: bool = True,
        normalize: bool = False,
        reset: bool = False,
    ):
        super().__init__()
        if norm_type not in ("sym", "row"):
            raise ValueError(f"norm_type is sym or row, not {norm_type!r}")
        self.k = k
        self.alpha = alpha
        self.norm_type = norm_type
        self.clamp = clamp
        self.normalize = normalize
        self.reset = reset

    def forward(self, g, labels: Tensor, mask: Tensor | None = None) -> Tensor:
        if labels.dim() > 1 and labels.shape[1] > 1:
            known = labels.float()
        else:
            known = F.one_hot(labels.view(-1)).float()
        rows = known if mask is None else torch.where(mask.unsqueeze(-1), known, 0.0)
        first = (1 - self.alpha) * rows
        for _ in range(self.k):
            rows = first + self.alpha * self._hop(g, rows)
            if self.clamp:
                rows = rows.clamp(0.0, 1.0)
            if self.normalize:
                rows = F.normalize(rows, p=1)
            if self.reset:
                rows = known if mask is None else torch.where(mask.unsqueeze(-1), known, rows)
        return rows

    def _hop(self, g, rows: Tensor) -> Tensor:
        if self.norm_type == "row":
            return aggregate(g, rows) * degree_factor(g.in_degrees(), rows, -1.0)
        total = aggregate(g, rows * degree_factor(g.out_degrees(), rows, -0.5))
        return total * degree_factor(g.in_degrees(), rows, -0.5)
