"""GINEConv, under the module's name in DGL."""

from .ginconv import GINEConv

__all__ = ["GINEConv"]
