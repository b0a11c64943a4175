"""Graphs of points by their distance."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .base import DGLError, dgl_warning
from .batch import batch
from .create import graph
from .graph import DGLGraph

ALGORITHMS = (
    "bruteforce-blas",
    "bruteforce",
    "bruteforce-sharemem",
    "kd-tree",
    "nn-descent",
)


def knn_graph(
    x: Tensor,
    k: int,
    algorithm: str = "bruteforce-blas",
    dist: str = "euclidean",
    exclude_self: bool = False,
) -> DGLGraph:
    """Edges to each point from the `k` that are nearest to it, by default itself among them.

    `x` is `(points, width)`, or `(sets, points, width)`, which gives a batch. Every `algorithm` of
    DGL is accepted, and each gives the exact graph. `dist` is `euclidean` or `cosine`.
    """
    sets = x if x.dim() == 3 else x.unsqueeze(0)
    made = [_nearest(points, k, algorithm, dist, exclude_self) for points in sets]
    return batch(made) if x.dim() == 3 else made[0]


def segmented_knn_graph(
    x: Tensor,
    k: int,
    segs: list[int],
    algorithm: str = "bruteforce-blas",
    dist: str = "euclidean",
    exclude_self: bool = False,
) -> DGLGraph:
    """`knn_graph` of each segment of `x`, `(points, width)`, as a batch; `segs` are its lengths."""
    parts = x.split(torch.as_tensor(segs).tolist())
    return batch([_nearest(points, k, algorithm, dist, exclude_self) for points in parts])


def _nearest(points: Tensor, k: int, algorithm: str, dist: str, exclude_self: bool) -> DGLGraph:
    if algorithm not in ALGORITHMS:
        raise DGLError(f"Algorithm {algorithm!r} is not one of {ALGORITHMS}")
    if dist not in ("euclidean", "cosine"):
        raise DGLError(f"Only `euclidean` and `cosine` are supported for `dist`, got {dist!r}")
    count = points.shape[0]
    if count == 0:
        raise DGLError("Find empty point set")
    if k <= 0:
        raise DGLError(f"Invalid k value. expect k > 0, got k = {k}")
    most = count - 1 if exclude_self else count
    if k > most:
        dgl_warning(f"'k' should be at most the number of points, {most}; got {k}, use {most}")
        k = most
    points = points.detach()
    if dist == "cosine":
        points = points / (points.norm(dim=1, keepdim=True) + 1e-5)
    # The formula that needs no difference of all pairs loses the small distances.
    distances = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    if exclude_self:
        distances.fill_diagonal_(float("inf"))
    src = distances.topk(k, 1, largest=False).indices.flatten()
    dst = torch.arange(count, device=points.device).repeat_interleave(k)
    return graph((src, dst), num_nodes=count)


def radius_graph(
    x: Tensor,
    r: float,
    p: float = 2,
    self_loop: bool = False,
    compute_mode: str = "donot_use_mm_for_euclid_dist",
    get_distances: bool = False,
) -> Any:
    """Edges between points, `(points, width)`, whose distance in the `p`-norm is at most `r`.

    With `get_distances` it returns them too, `(edges, 1)`.
    """
    if r <= 0:
        raise DGLError(f"Invalid r value. expect r > 0, got r = {r}")
    if x.shape[0] == 0:
        raise DGLError("Find empty point set")
    distances = torch.cdist(x, x, p=p, compute_mode=compute_mode)
    near = distances <= r
    if not self_loop:
        near = near & ~torch.eye(x.shape[0], dtype=torch.bool, device=x.device)
    src, dst = near.nonzero(as_tuple=True)
    made = graph((src, dst), num_nodes=x.shape[0])
    return (made, distances[src, dst].unsqueeze(-1)) if get_distances else made
