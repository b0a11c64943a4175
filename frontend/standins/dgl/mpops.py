"""`dgl.u_add_v(g, 'x', 'y')` and its kin: a row an edge, of features that are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from .function import OPERATIONS
from .messages import combine

if TYPE_CHECKING:
    from .graph import DGLGraph


def copy_u(g: DGLGraph, x_node: str, etype: Any = None) -> Tensor:
    """Feature `x_node` of the source of each edge."""
    return _end(g, x_node, etype, "u")


def copy_v(g: DGLGraph, x_node: str, etype: Any = None) -> Tensor:
    """Feature `x_node` of the target of each edge."""
    return _end(g, x_node, etype, "v")


def _end(g: DGLGraph, name: str, etype: Any, end: str) -> Tensor:
    found = g._find_etype(etype)
    relation = g._topology.relations[found]
    if end == "u":
        return g._source_frames[found[0]][name].index_select(0, relation.src)
    return g._target_frames[found[2]][name].index_select(0, relation.dst)


def _binary(operation: str) -> Callable[..., Tensor]:
    def function(g: DGLGraph, x_node: str, y_node: str, etype: Any = None) -> Tensor:
        return combine(operation, _end(g, x_node, etype, "u"), _end(g, y_node, etype, "v"))

    function.__name__ = function.__qualname__ = f"u_{operation}_v"
    function.__doc__ = f"`x_node` of the source {operation} `y_node` of the target, a row an edge."
    return function


u_add_v, u_sub_v, u_mul_v, u_div_v, u_dot_v = (_binary(operation) for operation in OPERATIONS)
