"""Transforms that weigh edges, spread features along them, or make edges of what is spread."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import function as fn
from ..base import DGLError
from ..graph import DGLGraph
from ..topology import EType
from .module import BaseTransform, with_edges

__all__ = ["GCNNorm", "GDC", "HeatKernel", "PPR", "SIGNDiffusion"]


class GCNNorm(BaseTransform):
    """Feature `eweight_name` of edges between nodes of one type: the old one, or 1, over the roots
    of the in-degrees (in old weights) of both ends."""

    def __init__(self, eweight_name: str = "w"):
        self.eweight_name = eweight_name

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """The same graph with the feature."""
        for etype in g.canonical_etypes:
            if etype[0] == etype[2]:
                g._edge_frames[etype][self.eweight_name] = self._weights(g, etype)
        return g

    def _weights(self, g: DGLGraph, etype: EType) -> Tensor:
        r, rows = g._topology.relations[etype], g.num_nodes(etype[0])
        weights = g._edge_frames[etype].get(self.eweight_name)
        if weights is None:
            weights = torch.ones(r.src.shape[0], device=g.device)
        degrees = weights.new_zeros((rows, *weights.shape[1:])).index_add(0, r.dst, weights)
        scale = degrees.rsqrt()
        scale = scale.masked_fill(scale.isinf(), 0)
        return scale[r.src] * weights * scale[r.dst]


class SIGNDiffusion(BaseTransform):
    """Features `out_feat_name_1` .. `_k`: a feature spread over 1 .. k edges.

    `diffuse_op` is a sum (`raw`), a mean (`rw`), a sum with the weights of `GCNNorm` (`gcn`), or
    that with `alpha` of the feature kept at each step (`ppr`). (Frasca et al., SIGN: Scalable
    Inception Graph Neural Networks, 2020.)
    """

    def __init__(
        self,
        k: int,
        in_feat_name: str = "feat",
        out_feat_name: str = "out_feat",
        eweight_name: str | None = None,
        diffuse_op: str = "raw",
        alpha: float = 0.2,
    ):
        if diffuse_op not in ("raw", "rw", "gcn", "ppr"):
            raise DGLError(
                f"Expect diffuse_op to be from ['raw', 'rw', 'gcn', 'ppr'], got {diffuse_op}"
            )
        self.k, self.in_feat_name, self.out_feat_name = k, in_feat_name, out_feat_name
        self.eweight_name, self.diffuse_op, self.alpha = eweight_name, diffuse_op, alpha

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """The same graph with the features."""
        made: list[Tensor] = []
        with g.local_scope():
            weighted = self._weigh(g)
            first = x = g.ndata[self.in_feat_name]
            for _ in range(self.k):
                x = self._spread(g, x, weighted)
                if self.diffuse_op == "ppr":
                    x = (1 - self.alpha) * x + self.alpha * first
                made.append(x)
        for k, x in enumerate(made, 1):
            g.ndata[f"{self.out_feat_name}_{k}"] = x
        return g

    def _weigh(self, g: DGLGraph) -> bool:
        """Sets weights of edges, if there are any."""
        if self.diffuse_op in ("raw", "rw"):
            if self.eweight_name is None or self.eweight_name not in g.edata:
                return False
            g.edata["_w"] = g.edata[self.eweight_name]
            return True
        if self.eweight_name is not None and self.eweight_name in g.edata:
            g.edata["_w"] = g.edata[self.eweight_name]
        GCNNorm("_w")(g)
        return True

    def _spread(self, g: DGLGraph, x: Tensor, weighted: bool) -> Tensor:
        g.ndata["_x"] = x
        message = fn.u_mul_e("_x", "_w", "_m") if weighted else fn.copy_u("_x", "_m")
        mean = self.diffuse_op == "rw"
        g.update_all(message, fn.mean("_m", "_y") if mean and not weighted else fn.sum("_m", "_y"))
        if not (mean and weighted):
            return g.ndata["_y"]
        g.update_all(fn.copy_e("_w", "_m"), fn.sum("_m", "_total"))
        return g.ndata["_y"] / g.ndata["_total"].reshape(-1, 1)


class _Diffusion(BaseTransform):
    """Edges of a dense matrix of what is spread: its entries of at least `eps`, or without it the
    `avg_degree * nodes` largest. Their numbers are feature `eweight_name`."""

    def __init__(self, eweight_name: str = "w", eps: float | None = None, avg_degree: int = 5):
        self.eweight_name, self.eps, self.avg_degree = eweight_name, eps, avg_degree

    def _diffused(self, adjacency: Tensor) -> Tensor:
        """What is made of the adjacency with a row a target, `(nodes, nodes)`."""
        raise NotImplementedError

    def __call__(self, g: DGLGraph) -> DGLGraph:
        """A graph with the nodes of `g`."""
        n, r = g.num_nodes(), g._topology.relations[g._find_etype(None)]
        weights = g.edata.get(self.eweight_name)
        if weights is None:
            weights = torch.ones(r.src.shape[0], device=g.device)
        adjacency = torch.zeros(n, n, device=g.device).index_put((r.dst, r.src), weights)
        made = self._diffused(adjacency)
        rows, columns = (made >= self._least(made)).nonzero(as_tuple=True)
        result = with_edges(g, {g.canonical_etypes[0]: g._typed(columns, rows)}, False)
        result.edata[self.eweight_name] = made[rows, columns]
        return result

    def _least(self, made: Tensor) -> float | Tensor:
        n = made.shape[0]
        if self.eps is not None:
            return self.eps
        if self.avg_degree > n:
            return float("-inf")
        return made.flatten().sort(descending=True).values[self.avg_degree * n - 1]


class PPR(_Diffusion):
    """Personalised PageRank, `alpha (I - (1 - alpha) A)^-1`. (Klicpera et al., Predict then
    Propagate, 2018.)"""

    def __init__(
        self,
        alpha: float = 0.15,
        eweight_name: str = "w",
        eps: float | None = None,
        avg_degree: int = 5,
    ):
        super().__init__(eweight_name, eps, avg_degree)
        self.alpha = alpha

    def _diffused(self, adjacency: Tensor) -> Tensor:
        one = torch.eye(adjacency.shape[0], device=adjacency.device)
        return self.alpha * torch.inverse(one + (self.alpha - 1) * adjacency)


class HeatKernel(_Diffusion):
    """The heat kernel, `exp(t (A - I))`. (Klicpera et al., Diffusion Improves Graph Learning,
    2019.)"""

    def __init__(
        self,
        t: float = 2.0,
        eweight_name: str = "w",
        eps: float | None = None,
        avg_degree: int = 5,
    ):
        super().__init__(eweight_name, eps, avg_degree)
        self.t = t

    def _diffused(self, adjacency: Tensor) -> Tensor:
        one = torch.eye(adjacency.shape[0], device=adjacency.device)
        return torch.linalg.matrix_exp(self.t * (adjacency - one))


class GDC(_Diffusion):
    """A sum of powers of the adjacency with these coefficients. (Klicpera et al., Diffusion
    Improves Graph Learning, 2019.)"""

    def __init__(
        self,
        coefs: Sequence[float],
        eweight_name: str = "w",
        eps: float | None = None,
        avg_degree: int = 5,
    ):
        super().__init__(eweight_name, eps, avg_degree)
        self.coefs = coefs

    def _diffused(self, adjacency: Tensor) -> Tensor:
        power = torch.eye(adjacency.shape[0], device=adjacency.device)
        total = self.coefs[0] * power
        for coefficient in self.coefs[1:]:
            power = power @ adjacency
            total = total + coefficient * power
        return total
