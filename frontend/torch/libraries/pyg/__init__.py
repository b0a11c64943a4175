"""PyTorch Geometric: its functions as leaves (`leaves`, traced by `substitutes`), and what these
mean to the importer (`rules`, entered here, so that no leaf is without)."""

from . import rules  # noqa: F401
from .substitutes import install

__all__ = ["install"]
