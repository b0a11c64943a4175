"""What Dynamo traces in place of PyG's `coalesce`, which asks whether there are duplicates: the
sort is a leaf, which gives what the rows of duplicates are summed by."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..active import is_active

_ANY_NUMBERS = ("sum", "add")
_FLOATS = ("mean", "mul")
_WITHOUT_GRADIENT = ("min", "max")  # scatter's gradient is another where a row is 0


def coalesce(original: Callable) -> Callable:
    def coalesce(
        edge_index,
        edge_attr="???",
        num_nodes=None,
        reduce="sum",
        is_sorted=False,
        sort_by_row=True,
    ):
        plain = type(edge_index) is Tensor and edge_index.layout is torch.strided
        known = plain and not is_sorted and _is_known(edge_attr, reduce)
        if not is_active() or not known:
            return original(edge_index, edge_attr, num_nodes, reduce, is_sorted, sort_by_row)
        edges, order, group = torch.ops.gnnc.coalesced(edge_index, num_nodes, sort_by_row)
        torch._check(edges.size(1) <= edge_index.size(1))
        if isinstance(edge_attr, str):
            return edges
        if edge_attr is None:
            return edges, None

        def merged(rows):
            rows = rows.index_select(0, order)
            return torch.ops.gnnc.segment_reduce(rows, group, 0, edges.size(1), reduce)

        if isinstance(edge_attr, Tensor):
            return edges, merged(edge_attr)
        return edges, [merged(rows) for rows in edge_attr]

    return coalesce


def _is_known(edge_attr: Any, reduce: str) -> bool:
    """Whether rows of one edge are what the reduction makes of them, with its gradient."""
    if edge_attr is None or isinstance(edge_attr, str):
        return True
    for rows in [edge_attr] if isinstance(edge_attr, Tensor) else edge_attr:
        wanted = rows.requires_grad and torch.is_grad_enabled()
        if reduce in _WITHOUT_GRADIENT and wanted:
            return False
        if reduce not in _ANY_NUMBERS and not rows.is_floating_point():
            return False
    return reduce in (*_ANY_NUMBERS, *_FLOATS, *_WITHOUT_GRADIENT)


SUBSTITUTES = (("torch_geometric.utils._coalesce", "coalesce", coalesce),)
