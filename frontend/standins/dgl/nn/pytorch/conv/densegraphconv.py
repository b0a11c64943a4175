"""DenseGraphConv, under the module's name in DGL."""

from .dense import DenseGraphConv

__all__ = ["DenseGraphConv"]
