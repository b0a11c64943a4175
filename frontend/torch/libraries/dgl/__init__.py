"""DGL: its graphs are traced as those of `gnnc.dgl` (`graphs`), its functions of graphs as the ones
of the same name there (`substitutes`). Layers of DGL are users' code, and traced as they are."""

from .substitutes import install

__all__ = ["install"]
