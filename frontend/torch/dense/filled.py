"""A dense batch as the tensor that it stands for, for functions that are none of rows."""

from __future__ import annotations

import torch
from torch import Tensor, fx

from .values import GRAPH, PLACE, Dense, NotByRows, is_all


def filled(x: Dense) -> fx.Proxy:
    """graphs x places x columns, in the order that the dimensions of `x` have.

    Raises:
        NotByRows: not all of it is known.
    """
    if x.paired or x.pad is None:
        raise NotByRows("places of which not all are known")
    of = x.of
    fill = float(x.pad.flatten()[0]) if isinstance(x.pad, Tensor) else 0.0
    constant = isinstance(x.rows, Tensor)
    floats = not constant and x.rows.node.meta["example_value"].is_floating_point()
    if not floats or (isinstance(x.pad, Tensor) and not is_all(x.pad, fill)):
        return _of_mask(x)
    dense = torch.ops.gnnc.dense_batch(x.rows, of.batch, fill, of.longest, of.graphs)
    y = dense[0]
    if isinstance(x.pad, fx.Proxy):
        mask = dense[1]
        for _ in x.columns:
            mask = mask.unsqueeze(-1)
        y = torch.where(mask, y, x.pad)
    return _ordered(x, y)


def _of_mask(x: Dense) -> fx.Proxy:
    """Booleans of which each is the mask of the nodes, or its contrary."""
    yes, no = is_all(x.rows, True), is_all(x.rows, False)
    booleans = isinstance(x.rows, Tensor) and x.rows.dtype == torch.bool
    if not booleans or x.columns or not (yes or no) or not is_all(x.pad, no):
        raise NotByRows("constants as a dense batch")
    of = x.of
    ones = of.tracer.called(torch.ones, (of.count, 1))
    mask = torch.ops.gnnc.dense_batch(ones, of.batch, 0.0, of.longest, of.graphs)[1]
    return _ordered(x, mask if yes else ~mask)


def _ordered(x: Dense, y: fx.Proxy) -> fx.Proxy:
    """graphs x places x columns in the order that the dimensions of `x` have."""
    order, column = [], 2
    for a in x.axes:
        order.append({GRAPH: 0, PLACE: 1}.get(a, column) if isinstance(a, str) else column)
        column += not isinstance(a, str)
    return y if order == sorted(order) else y.permute(*order)
