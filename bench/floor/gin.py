"""The GIN of gin.c."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from .step import Floor, graph_tables, library, macros_of


def gin(net: nn.Module, x: Tensor, edge_index: Tensor) -> Floor:
    """The model `frontend.models.Net("gin", ..)` of equal inner widths, with its parameters.

    Raises:
        ValueError: a net of one layer, or with inner widths that differ.
    """
    convs: Any = net.convs
    macros = macros_of([convs[0].nn[0].in_features, *(c.nn[2].out_features for c in convs)])
    src, dst = edge_index.numpy().astype(np.int32)
    parameters = [
        p for c in convs for linear in (c.nn[0], c.nn[2]) for p in (linear.weight, linear.bias)
    ]
    return Floor(library("gin", macros), parameters, len(x), graph_tables(src, dst, len(x)))
