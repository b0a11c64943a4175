"""`gnnc.loader`: batches of large graphs, in the place of `torch_geometric.loader`
(frontend/torch/loader)."""

from gnnc.frontend.torch.loader import (
    ClusterLoader,
    LinkNeighborLoader,
    NeighborLoader,
    RandomWalkLoader,
    ShaDowKHopSampler,
    morph_operators,
    undone,
)

__all__ = [
    "ClusterLoader",
    "LinkNeighborLoader",
    "NeighborLoader",
    "RandomWalkLoader",
    "ShaDowKHopSampler",
    "morph_operators",
    "undone",
]
