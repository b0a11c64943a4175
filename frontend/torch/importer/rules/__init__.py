"""What each FX node means: one function a rule, found by the name of what the node calls."""

from . import (  # noqa: F401
    activations,
    constants,
    graph,
    indexing,
    layers,
    losses,
    pointwise,
    reductions,
    scatters,
    shapes,
    special,
)
from .registry import RULES, Call

__all__ = ["RULES", "Call"]
