"""Scores of pairs and of triples."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["EdgePredictor", "TransE", "TransR"]


class EdgePredictor(nn.Module):
    """Rows of two ends combined: their product summed ("dot"), its cosine ("cos"), their product
    ("ele"), or both ("cat"); then a linear layer if `out_feats` is given.

    Two (E, D) to (E, 1), (E, D), (E, 2 D) or (E, out). AssertionError for another `op`, and for
    `out_feats` without `in_feats`.
    """

    def __init__(
        self,
        op: str,
        in_feats: int | None = None,
        out_feats: int | None = None,
        bias: bool = False,
    ):
        super().__init__()
        if op not in ("dot", "cos", "ele", "cat"):
            raise AssertionError(f"op is dot, cos, ele or cat, not {op!r}")
        self.op = op
        self.linear = None
        if in_feats is not None and out_feats is not None:
            widths = {"dot": 1, "cos": 1, "ele": in_feats, "cat": 2 * in_feats}
            self.linear = nn.Linear(widths[op], out_feats, bias=bias)

    def reset_parameters(self) -> None:
        if self.linear is not None:
            self.linear.reset_parameters()

    def forward(self, h_src: Tensor, h_dst: Tensor) -> Tensor:
        out = self._combined(h_src, h_dst)
        return out if self.linear is None else self.linear(out)

    def _combined(self, h_src: Tensor, h_dst: Tensor) -> Tensor:
        if self.op == "cat":
            return torch.cat([h_src, h_dst], dim=-1)
        if self.op == "cos":
            return F.cosine_similarity(h_src, h_dst).unsqueeze(-1)
        product = h_src * h_dst
        return product if self.op == "ele" else product.sum(dim=-1, keepdim=True)


class TransE(nn.Module):
    """-|h + r - t|_p (Bordes et al., Translating Embeddings for Modeling Multi-relational Data).

    Heads and tails (E, D), relations (E,) to (E,).
    """

    def __init__(self, num_rels: int, feats: int, p: int = 1):
        super().__init__()
        self.rel_emb = nn.Embedding(num_rels, feats)
        self.p = p

    def reset_parameters(self) -> None:
        self.rel_emb.reset_parameters()

    def forward(self, h_head: Tensor, h_tail: Tensor, rels: Tensor) -> Tensor:
        return -torch.norm(h_head + self.rel_emb(rels) - h_tail, p=self.p, dim=-1)


class TransR(nn.Module):
    """-|h M_r + r - t M_r|_p (Lin et al., Learning Entity and Relation Embeddings for Knowledge
    Graph Completion).

    Heads and tails (E, nfeats), relations (E,) to (E,).
    """

    def __init__(self, num_rels: int, rfeats: int, nfeats: int, p: int = 1):
        super().__init__()
        self.rel_emb = nn.Embedding(num_rels, rfeats)
        self.rel_project = nn.Embedding(num_rels, nfeats * rfeats)
        self.rfeats = rfeats
        self.nfeats = nfeats
        self.p = p

    def reset_parameters(self) -> None:
        self.rel_emb.reset_parameters()
        self.rel_project.reset_parameters()

    def forward(self, h_head: Tensor, h_tail: Tensor, rels: Tensor) -> Tensor:
        projections = self.rel_project(rels).view(-1, self.nfeats, self.rfeats)
        # Both ends have one projection, so their difference is projected.
        offsets = ((h_head - h_tail).unsqueeze(1) @ projections).squeeze(1)
        return -torch.norm(offsets + self.rel_emb(rels), p=self.p, dim=-1)
