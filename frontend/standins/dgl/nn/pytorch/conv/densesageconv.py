"""DenseSAGEConv, under the module's name in DGL."""

from .dense import DenseSAGEConv

__all__ = ["DenseSAGEConv"]
