"""What Dynamo traces in place of PyG's functions on pointers, which say where groups of rows in
order begin."""

from collections.abc import Callable

import torch
from torch_geometric import typing

from ..active import is_active

_UTILS = "torch_geometric.utils"


def ptr2index(original: Callable) -> Callable:
    def ptr2index(ptr, output_size=None):
        if not is_active() or output_size is None:
            return original(ptr, output_size)
        return torch.ops.gnnc.index_of_pointer(ptr, output_size)

    return ptr2index


_OF_SEGMENTS = ("sum", "mean", "min", "max")  # torch's function knows no other name of `scatter`


def segment(original: Callable) -> Callable:
    def segment(src, ptr, reduce="sum"):
        known = ptr.dim() == 1 and reduce in _OF_SEGMENTS and src.is_floating_point()
        if not is_active() or not known:
            return original(src, ptr, reduce)
        index, groups = torch.ops.gnnc.index_of_pointer(ptr, src.size(0)), ptr.size(0) - 1
        if reduce in ("min", "max") and not typing.WITH_TORCH_SCATTER:
            return torch.ops.gnnc.finite_extremum(src, index, groups, reduce)
        return torch.ops.gnnc.segment_reduce(src, index, 0, groups, reduce)

    return segment


def cumsum(original: Callable) -> Callable:
    """Without memory that is written in two parts, the second by `out=`."""

    def cumsum(x, dim=0):
        refused = dim < 0 or x.dtype == torch.bool or x.requires_grad and torch.is_grad_enabled()
        if not is_active() or refused:
            return original(x, dim)
        first = x.new_zeros([*x.shape[:dim], 1, *x.shape[dim + 1 :]])
        return torch.cat([first, torch.cumsum(x, dim, dtype=x.dtype)], dim)

    return cumsum


SUBSTITUTES = (
    ("torch_geometric.index", "ptr2index", ptr2index),
    (f"{_UTILS}._segment", "segment", segment),
    (f"{_UTILS}.functions", "cumsum", cumsum),
)
