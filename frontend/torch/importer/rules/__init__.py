"""What each FX node means: one function a rule, found by the name of what the node calls."""

from . import constants, graph, indexing, layers, pointwise, reductions, shapes  # noqa: F401
from .registry import RULES, Call

__all__ = ["RULES", "Call"]
