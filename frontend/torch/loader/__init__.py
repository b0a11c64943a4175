"""`gnnc.loader`: batches of large graphs, with the interface of PyG's loaders."""

from .link_loader import LinkNeighborLoader
from .neighbor_loader import NeighborLoader
from .subgraph_loaders import ClusterLoader, RandomWalkLoader, ShaDowKHopSampler

__all__ = [
    "ClusterLoader",
    "LinkNeighborLoader",
    "NeighborLoader",
    "RandomWalkLoader",
    "ShaDowKHopSampler",
]
