"""`gnnc bench`: training epochs of GNN models, timed against PyG, DGL, hand-written C and the
machine."""

from .command import add_arguments, run

__all__ = ["add_arguments", "run"]
