"""`dgl.u_add_v(g, x, y)` and its kin: functions of `dgl.ops`, of one edge type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from .function import OPERATIONS
from .ops import gsddmm

if TYPE_CHECKING:
    from .graph import DGLGraph


def copy_u(g: DGLGraph, x_node: Tensor, etype: Any = None) -> Tensor:
    """Rows of the sources `x_node`, one an edge."""
    return gsddmm(_of_type(g, etype), "copy_lhs", x_node, None)


def copy_v(g: DGLGraph, x_node: Tensor, etype: Any = None) -> Tensor:
    """Rows of the targets `x_node`, one an edge."""
    return gsddmm(_of_type(g, etype), "copy_rhs", None, x_node)


def _of_type(g: DGLGraph, etype: Any) -> DGLGraph:
    return g if etype is None else g[etype]


def _binary(operation: str) -> Callable[..., Tensor]:
    def function(g: DGLGraph, x_node: Tensor, y_node: Tensor, etype: Any = None) -> Tensor:
        return gsddmm(_of_type(g, etype), operation, x_node, y_node)

    function.__name__ = function.__qualname__ = f"u_{operation}_v"
    function.__doc__ = f"`x_node` of the source {operation} `y_node` of the target, a row an edge."
    return function


u_add_v, u_sub_v, u_mul_v, u_div_v, u_dot_v = (_binary(operation) for operation in OPERATIONS)
