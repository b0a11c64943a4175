"""DenseChebConv, under the module's name in DGL."""

from .dense import DenseChebConv

__all__ = ["DenseChebConv"]
