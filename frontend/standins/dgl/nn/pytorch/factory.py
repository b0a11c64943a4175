"""Graphs of points, as modules."""

from __future__ import annotations

from torch import Tensor, nn

from ...geometry import knn_graph, radius_graph, segmented_knn_graph

__all__ = ["KNNGraph", "RadiusGraph", "SegmentedKNNGraph"]


class KNNGraph(nn.Module):
    """The graph of `dgl.knn_graph`: points (N, D) or (B, N, D)."""

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(
        self,
        x: Tensor,
        algorithm: str = "bruteforce-blas",
        dist: str = "euclidean",
        exclude_self: bool = False,
    ):
        return knn_graph(x, self.k, algorithm=algorithm, dist=dist, exclude_self=exclude_self)


class SegmentedKNNGraph(nn.Module):
    """The graph of `dgl.segmented_knn_graph`: points (N, D) in segments of the lengths `segs`."""

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(
        self,
        x: Tensor,
        segs,
        algorithm: str = "bruteforce-blas",
        dist: str = "euclidean",
        exclude_self: bool = False,
    ):
        options = {"algorithm": algorithm, "dist": dist, "exclude_self": exclude_self}
        return segmented_knn_graph(x, self.k, segs, **options)


class RadiusGraph(nn.Module):
    """The graph of `dgl.radius_graph`: points (N, D); with `get_distances` distances (E, 1) too."""

    def __init__(
        self,
        r: float,
        p: float = 2,
        self_loop: bool = False,
        compute_mode: str = "donot_use_mm_for_euclid_dist",
    ):
        super().__init__()
        self.r = r
        self.p = p
        self.self_loop = self_loop
        self.compute_mode = compute_mode

    def forward(self, x: Tensor, get_distances: bool = False):
        return radius_graph(x, self.r, self.p, self.self_loop, self.compute_mode, get_distances)
