"""Where nodes are in a graph, as numbers: eigenvectors, singular vectors and random walks.

Signs of vectors are drawn from NumPy's generator, as DGL draws them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch import Tensor

from ..base import dgl_warning
from ..batch import unbatch
from ..graph import DGLGraph
from ..matrices import to_scipy


def _laplacian(g: DGLGraph, transpose: bool = False) -> Any:
    """`I - D^-1/2 A D^-1/2`, with in-degrees."""
    adjacency = to_scipy(g, transpose=transpose, scipy_fmt="csr").astype(float)
    scale = scipy.sparse.diags(g.in_degrees().cpu().numpy().clip(1) ** -0.5, dtype=float)
    return scipy.sparse.eye(g.num_nodes()) - scale @ adjacency @ scale


def laplacian_lambda_max(g: DGLGraph) -> list[float]:
    """The largest eigenvalue of the normalised Laplacian of each graph of a batch."""
    found: list[float] = []
    for part in unbatch(g):
        values = scipy.sparse.linalg.eigs(
            _laplacian(part, transpose=True), 1, which="LM", return_eigenvectors=False
        )
        found.append(float(values[0].real))
    return found


def lap_pe(g: DGLGraph, k: int, padding: bool = False, return_eigval: bool = False) -> Any:
    """The `k` eigenvectors of the normalised Laplacian with the smallest eigenvalues but the first,
    `(nodes, k)`, each of either sign; with `return_eigval` the eigenvalues too, `(k,)`.

    Where there are no more than `k` nodes, zeros (and nan) are put behind with `padding`. (Dwivedi
    and Bresson, A Generalization of Transformer Networks to Graphs, 2020.)
    """
    n = g.num_nodes()
    if not padding and n <= k:
        raise AssertionError(
            f"the number of eigenvectors k must be smaller than the number of nodes n, {k} and "
            f"{n} detected."
        )
    laplacian = _laplacian(g)
    if k + 1 < n - 1:
        values, vectors = scipy.sparse.linalg.eigs(
            laplacian, k=k + 1, which="SR", ncv=min(4 * k, n), tol=1e-2
        )
    else:
        values, vectors = np.linalg.eig(laplacian.toarray())
    count = min(n - 1, k)
    order = values.real.argsort()[1 : count + 1]
    signs = 2 * (np.random.rand(count) > 0.5) - 1.0
    found = torch.from_numpy(signs * vectors[:, order].real).float()
    eigenvalues = torch.from_numpy(values[order].real.copy()).float()
    found = torch.cat([found, found.new_zeros(n, k - count)], 1).to(g.device)
    if not return_eigval:
        return found
    return found, torch.cat([eigenvalues, eigenvalues.new_full((k - count,), np.nan)])


def laplacian_pe(g: DGLGraph, k: int, padding: bool = False, return_eigval: bool = False) -> Any:
    """The old name of `lap_pe`."""
    dgl_warning("dgl.laplacian_pe will be deprecated. Use dgl.lap_pe please.")
    return lap_pe(g, k, padding, return_eigval)


def random_walk_pe(g: DGLGraph, k: int, eweight_name: str | None = None) -> Tensor:
    """How likely a random walk of 1 .. k edges comes back to where it began, `(nodes, k)`.

    Edges are taken by the feature `eweight_name`, of one number each, if it is given. (Dwivedi et
    al., Graph Neural Networks with Learnable Structural and Positional Representations, 2022.)
    """
    n, r = g.num_nodes(), g._topology.relations[g._find_etype(None)]
    src, dst = r.src, r.dst
    weights = torch.ones(src.shape[0], dtype=torch.float64)
    if eweight_name is not None:
        weights = g.edata[eweight_name].detach().reshape(-1).double().cpu()
    steps = weights.new_zeros(n, n).index_put((src.cpu(), dst.cpu()), weights, accumulate=True)
    steps = steps / (steps.sum(1, keepdim=True) + 1e-30)
    power, found = steps, [steps.diagonal()]
    for _ in range(k - 1):
        power = power @ steps
        found.append(power.diagonal())
    return torch.stack(found, -1).float().to(g.device)


def svd_pe(g: DGLGraph, k: int, padding: bool = False, random_flip: bool = True) -> Tensor:
    """Left and right singular vectors of the adjacency to its `k` largest singular values, each
    times the root of these, `(nodes, 2 k)`. Rows are of either sign with `random_flip`.

    (Hussain et al., Global Self-Attention as a Replacement for Graph Convolution, 2022.)
    """
    n = g.num_nodes()
    if not padding and n < k:
        raise ValueError(
            "The number of singular values k must be no greater than the number of nodes n, but "
            f"got {k} and {n} respectively."
        )
    left, values, right = scipy.linalg.svd(to_scipy(g).toarray())
    count = min(n, k)
    scale = np.sqrt(values[:count])
    found = np.concatenate([left[:, :count] * scale, right.T[:, :count] * scale], 1)
    if random_flip:
        found = (2 * (np.random.rand(n) > 0.5) - 1)[:, np.newaxis] * found
    padded = np.concatenate([found, np.zeros((n, 2 * (k - count)))], 1)
    return torch.from_numpy(padded).float().to(g.device)
