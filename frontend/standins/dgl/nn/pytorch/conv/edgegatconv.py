"""EdgeGATConv, under the module's name in DGL."""

from .gatconv import EdgeGATConv

__all__ = ["EdgeGATConv"]
