"""Functions of `dgl.nn`."""

from ..ops import edge_softmax

__all__ = ["edge_softmax"]
