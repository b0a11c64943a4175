"""`gnnc bench`: whole training epochs of GNN models, timed against PyG and DGL."""

from .race import add_arguments, run

__all__ = ["add_arguments", "run"]
