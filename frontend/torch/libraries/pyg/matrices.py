"""What Dynamo traces in place of PyG's functions on sparse matrices: these compute with the numbers
of the entries, where PyG's own convert between layouts, which cannot be traced.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...sparse.matrix import Matrix
from ...sparse.operations import built, built_loosely, ends, with_values
from ..active import is_active

_UTILS = "torch_geometric.utils"


def to_edge_index(original: Callable) -> Callable:
    def to_edge_index(adj):
        if not isinstance(adj, Matrix):
            return original(adj)
        return ends(adj), adj.values()

    return to_edge_index


def set_sparse_value(original: Callable) -> Callable:
    def set_sparse_value(adj, value):
        if not isinstance(adj, Matrix) or value.dim() > 1:
            return original(adj, value)
        return with_values(adj, value)

    return set_sparse_value


def of_entries(layout: torch.layout) -> Callable:
    """`to_torch_coo_tensor` and its like of entries that are known to be in order."""

    def make(original: Callable) -> Callable:
        def to_torch_tensor(edge_index, edge_attr=None, size=None, is_coalesced=False):
            plain = isinstance(size, tuple) and edge_attr is not None and edge_attr.dim() == 1
            if not is_active() or not plain or not is_coalesced:
                return original(edge_index, edge_attr, size, is_coalesced)
            return built(edge_index[0], edge_index[1], edge_attr, size[0], size[1], layout)

        return to_torch_tensor

    return make


def add_self_loops(original: Callable) -> Callable:
    def add_self_loops(edge_index, edge_attr=None, fill_value=None, num_nodes=None):
        known = fill_value is None or isinstance(fill_value, int | float | str)
        if not isinstance(edge_index, Matrix) or not known or edge_attr is not None:
            return original(edge_index, edge_attr, fill_value, num_nodes)
        return _with_loops(edge_index, 1.0 if fill_value is None else fill_value), None

    return add_self_loops


def _with_loops(adj: Any, fill: float | str) -> Any:
    """A square matrix and a diagonal one of `fill`, or of the entries of each row reduced by that:
    one entry on the diagonal in each row."""
    (row, col), value, nodes = ends(adj), adj.values(), adj.size(0)
    beside = row != col
    old = value.masked_fill(beside, 0.0)
    if isinstance(fill, str):
        fill = torch.ops.gnnc.segment_reduce(value, row, 0, nodes, fill)
    loops = torch.ops.gnnc.segment_reduce(old, row, 0, nodes, "sum") + fill
    number = torch.arange(nodes, device=row.device)
    return built_loosely(
        torch.cat([row[beside], number]),
        torch.cat([col[beside], number]),
        torch.cat([value[beside], loops]),
        nodes,
        adj.size(1),
        adj.layout,
    )


def spmm(original: Callable) -> Callable:
    def spmm(src, other, reduce="sum"):
        if not isinstance(src, Matrix):
            return original(src, other, reduce)
        return torch.sparse.mm(src, other, "sum" if reduce == "add" else reduce)

    return spmm


SUBSTITUTES = (
    (f"{_UTILS}.sparse", "to_edge_index", to_edge_index),
    (f"{_UTILS}.sparse", "set_sparse_value", set_sparse_value),
    (f"{_UTILS}.sparse", "to_torch_coo_tensor", of_entries(torch.sparse_coo)),
    (f"{_UTILS}.sparse", "to_torch_csr_tensor", of_entries(torch.sparse_csr)),
    (f"{_UTILS}.loop", "add_self_loops", add_self_loops),
    (f"{_UTILS}._spmm", "spmm", spmm),
)


def lift(plain: Callable) -> Callable:
    """`MessagePassing._lift`: the rows of `src` at the ends of the entries."""

    def _lift(self, src: Tensor, edge_index: Tensor, dim: int) -> Tensor:
        if not isinstance(edge_index, Matrix):
            return plain(self, src, edge_index, dim)
        return src.index_select(self.node_dim, ends(edge_index)[1 - dim])

    return _lift
