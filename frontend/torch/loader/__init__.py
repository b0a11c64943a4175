"""`gnnc.loader`: batches of large graphs, with the interface of PyG's loaders."""

from .neighbor_loader import NeighborLoader

__all__ = ["NeighborLoader"]
