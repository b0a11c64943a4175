"""`gnnc.Graph`: what a program of the loop language runs over."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

INDICES = (torch.int32, torch.int64)


class Graph:
    """Edges with the types of edges and nodes.

    Args:
        edge_index: integers of shape (2, edges): the source and the destination node of each edge.
        num_nodes: how many nodes there are, or (sources, destinations) where these are two sets.
        edge_type: the type of each edge, from 0, with `num_edge_types`.
        node_type: the type of each node, with `num_node_types`; of two sets one tensor each.

    Raises:
        TypeError, ValueError: of the named argument the type, shape or range is wrong.
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int | tuple[int, int],
        edge_type: Tensor | None = None,
        node_type: Tensor | tuple[Tensor, Tensor] | None = None,
        *,
        num_edge_types: int | None = None,
        num_node_types: int | None = None,
    ) -> None:
        self.edge_index = _indices("edge_index", edge_index)
        if edge_index.dim() != 2 or edge_index.shape[0] != 2:
            raise ValueError(f"edge_index has shape (2, edges), not {tuple(edge_index.shape)}")
        self.two_kinds = not isinstance(num_nodes, int)
        self.num_src, self.num_dst = _counts(num_nodes)
        for column, count, what in ((0, self.num_src, "source"), (1, self.num_dst, "destination")):
            _in_range(f"edge_index[{column}]", edge_index[column], count, f"{what} nodes")
        self.num_edge_types = _types("edge_type", "num_edge_types", edge_type, num_edge_types)
        self.num_node_types = _types("node_type", "num_node_types", node_type, num_node_types)
        self.edge_type = edge_type
        if edge_type is not None:
            _each("edge_type", edge_type, self.num_edges, self.num_edge_types, "edges")
        self.src_type, self.dst_type = self._node_types(node_type)

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    def _node_types(
        self, node_type: Tensor | tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor | None, Tensor | None]:
        if node_type is None:
            return None, None
        one = isinstance(node_type, Tensor)
        if one == self.two_kinds:
            needed = "a tensor for each of the two sets of nodes" if one else "one tensor"
            raise TypeError(f"node_type is {needed}, as num_nodes says")
        src, dst = (node_type, node_type) if isinstance(node_type, Tensor) else node_type
        _each("node_type", src, self.num_src, self.num_node_types, "nodes")
        if dst is not src:
            _each("node_type", dst, self.num_dst, self.num_node_types, "nodes")
        return src, dst

    def __repr__(self) -> str:
        nodes = f"{self.num_src} to {self.num_dst}" if self.two_kinds else str(self.num_src)
        types = f", {self.num_edge_types} types of edges" if self.edge_type is not None else ""
        return f"Graph({nodes} nodes, {self.num_edges} edges{types})"


def _indices(name: str, x: object) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is a tensor, not {type(x).__name__}")
    if x.dtype not in INDICES:
        raise TypeError(f"{name} has integers (int64 or int32), not {x.dtype}")
    if x.device.type != "cpu":
        raise ValueError(f"{name} is on {x.device}, programs run on the CPU")
    return x


def _counts(num_nodes: int | Sequence[int]) -> tuple[int, int]:
    counts = (num_nodes, num_nodes) if isinstance(num_nodes, int) else tuple(num_nodes)
    if len(counts) != 2 or not all(isinstance(n, int) and n >= 0 for n in counts):
        raise ValueError(f"num_nodes is a number or (sources, destinations), not {num_nodes}")
    return counts[0], counts[1]


def _types(name: str, count_name: str, given: object, count: int | None) -> int:
    if (given is None) != (count is None):
        raise ValueError(f"{name} and {count_name} come together")
    return 0 if count is None else count


def _each(name: str, x: object, rows: int, count: int, what: str) -> None:
    """Raises unless `x` has an integer below `count` for each row."""
    x = _indices(name, x)
    if x.shape != (rows,):
        raise ValueError(f"{name} has a number for each of the {rows} {what}, not {tuple(x.shape)}")
    _in_range(name, x, count, "types")


def _in_range(name: str, x: Tensor, count: int, what: str) -> None:
    if x.numel():
        low, high = (int(v) for v in torch.aminmax(x))
        if low < 0 or high >= count:
            wrong = low if low < 0 else high
            raise ValueError(f"{name} has {wrong}: there are {count} {what}")
