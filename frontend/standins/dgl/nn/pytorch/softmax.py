"""edge_softmax, under the module's name in DGL."""

from ...ops import edge_softmax

__all__ = ["edge_softmax"]
