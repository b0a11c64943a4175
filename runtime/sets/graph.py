"""`Graph`: edges given once, with every order of them made when first asked for, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import kernels
from .kernels import Int64s
from .sets import Group, MapData, Pairs, SetData


class Graph:
    """A directed graph, or the edges between two node sets; edges may repeat and keep their order.

    Parameters
    ----------
    edge_index:
        Sources and destinations: a pair of integer arrays of shape (E,), or one array of shape
        (2, E). NumPy arrays and tensors in CPU memory are taken, int64 and int32 without a
        conversion. The values are copied: a later edit of the arrays does not change the graph.
    num_nodes:
        The number of nodes, or a pair (sources, destinations) for two node sets. Default: the
        greatest node number + 1.
    edge_type:
        The relation of each edge, integers of shape (E,), optional.
    num_edge_types:
        The number of relations. Default: the greatest edge type + 1.

    Raises ``IndexError`` for a node or relation out of range, ``TypeError`` and ``ValueError`` for
    arguments of a wrong type or shape; every message names the argument.
    """

    def __init__(
        self,
        edge_index: Any,
        *,
        num_nodes: int | tuple[int, int] | None = None,
        edge_type: Any = None,
        num_edge_types: int | None = None,
    ) -> None:
        src, dst = _end_points(edge_index)
        self.num_src, self.num_dst = _node_counts(src, dst, num_nodes)
        maps = {
            "src": MapData.of(src, self.num_src, what="edge_index[0]"),
            "dst": MapData.of(dst, self.num_dst, what="edge_index[1]"),
        }
        self.num_edge_types: int | None = None
        if edge_type is not None:
            relation = _array(edge_type, "edge_type")
            if relation.shape != src.shape:
                raise ValueError(
                    f"edge_type must have one entry per edge: shape {relation.shape} for "
                    f"{src.size} edges"
                )
            self.num_edge_types = _count(relation, num_edge_types, "edge_type", "num_edge_types")
            maps["rel"] = MapData.of(relation, self.num_edge_types, what="edge_type")
        elif num_edge_types is not None:
            raise ValueError("num_edge_types is given without edge_type")
        self.edges = SetData(src.size, maps, name="set of edges")
        """The edges with the maps ``src``, ``dst`` and, where there are edge types, ``rel``."""
        self.edges.check()

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self.edges.size

    @property
    def num_nodes(self) -> int:
        """The number of nodes; ``ValueError`` where sources and destinations are two sets."""
        if self.num_src != self.num_dst:
            raise ValueError(
                f"this graph has {self.num_src} sources and {self.num_dst} destinations; "
                "read num_src or num_dst"
            )
        return self.num_src

    @property
    def csc(self) -> Group:
        """Edges by destination, then by type, then as given."""
        return self.edges.group("dst", ("rel",) if self.num_edge_types is not None else ())

    @property
    def csr(self) -> Group:
        """Edges by source, in the order given."""
        return self.edges.group("src")

    @cached_property
    def in_degrees(self) -> Int64s:
        """The number of edges into each destination, shape (num_dst,)."""
        return kernels.frozen(np.diff(self.csc.ptr))

    @cached_property
    def out_degrees(self) -> Int64s:
        """The number of edges from each source, shape (num_src,)."""
        return kernels.frozen(np.diff(self.csr.ptr))

    def pairs(self, *keys: str) -> Pairs:
        """The distinct tuples of some of ``src``, ``dst``, ``rel`` over the edges, in order."""
        return self.edges.pairs(keys)

    def __repr__(self) -> str:
        nodes = (
            f"num_nodes={self.num_src}"
            if self.num_src == self.num_dst
            else f"num_src={self.num_src}, num_dst={self.num_dst}"
        )
        types = "" if self.num_edge_types is None else f", num_edge_types={self.num_edge_types}"
        return f"Graph({nodes}, num_edges={self.num_edges}{types})"


def _end_points(edge_index: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    if isinstance(edge_index, Sequence) and len(edge_index) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise ValueError("edge_index must be a pair (sources, destinations) or of shape (2, E)")
    if isinstance(edge_index, Sequence):
        src, dst = _array(edge_index[0], "edge_index[0]"), _array(edge_index[1], "edge_index[1]")
    else:
        both = _array(edge_index, "edge_index", dimensions=2)
        if both.shape[0] != 2:
            raise ValueError(
                f"edge_index must have shape (2, E), got {both.shape}; "
                "transpose it if its rows are edges"
            )
        src, dst = both[0], both[1]
    if src.size != dst.size:
        raise ValueError(
            f"edge_index has {src.size} sources and {dst.size} destinations; "
            "each edge needs one of both"
        )
    return src, dst


def _array(values: Any, what: str, dimensions: int = 1) -> NDArray[Any]:
    device = getattr(values, "device", None)
    if device is not None and str(device) != "cpu":
        raise ValueError(f"{what} is on the device {device}; copy it to the CPU first")
    array = np.asarray(values)
    if array.size == 0 and array.dtype == np.float64 and isinstance(values, Sequence):
        array = array.astype(np.int64)  # the empty list has no element type of its own
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} must hold integers, got {array.dtype}")
    if array.ndim != dimensions:
        wanted = "one dimension" if dimensions == 1 else f"{dimensions} dimensions"
        raise ValueError(f"{what} must have {wanted}, got shape {array.shape}")
    return array


def _node_counts(
    src: NDArray[Any], dst: NDArray[Any], num_nodes: int | tuple[int, int] | None
) -> tuple[int, int]:
    if isinstance(num_nodes, tuple):
        sources, destinations = num_nodes
        return (
            kernels.check_rows(sources, "num_nodes[0]"),
            kernels.check_rows(destinations, "num_nodes[1]"),
        )
    if num_nodes is not None:
        count = kernels.check_rows(num_nodes, "num_nodes")
    else:
        count = max(
            _count(src, None, "edge_index[0]", "num_nodes"),
            _count(dst, None, "edge_index[1]", "num_nodes"),
        )
    return count, count


def _count(values: NDArray[Any], count: int | None, what: str, argument: str) -> int:
    """The number of rows that `values` point into: `count`, else the greatest value + 1."""
    if count is None:
        count = kernels.bounds(values, what)[1] + 1
    # all values negative: MapData says which one and where
    return kernels.check_rows(max(count, 0), argument)
