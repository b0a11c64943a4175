"""`gnnc.loader`: batches of large graphs, with the interface of PyG's loaders."""

from .link_loader import LinkNeighborLoader
from .morph_operators import morph_operators
from .neighbor_loader import NeighborLoader
from .subgraph_loaders import ClusterLoader, RandomWalkLoader, ShaDowKHopSampler
from .undone import undone

__all__ = [
    "ClusterLoader",
    "LinkNeighborLoader",
    "NeighborLoader",
    "RandomWalkLoader",
    "ShaDowKHopSampler",
    "morph_operators",
    "undone",
]
