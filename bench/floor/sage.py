"""The GraphSAGE of sage.c."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from .step import Floor, graph_tables, library, macros_of


def sage(net: nn.Module, x: Tensor, edge_index: Tensor) -> Floor:
    """The model `frontend.models.Net("sage", ..)` of equal inner widths, with its parameters.

    Raises:
        ValueError: a net of one layer, or with inner widths that differ.
    """
    convs: Any = net.convs
    macros = macros_of([convs[0].in_channels, *(conv.out_channels for conv in convs)])
    nodes = len(x)
    src, dst = edge_index.numpy().astype(np.int32)
    tables = graph_tables(src, dst, nodes)
    degree = np.maximum(np.diff(tables[0]), 1).astype(np.float32)
    parameters = [p for c in convs for p in (c.lin_l.weight, c.lin_l.bias, c.lin_r.weight)]
    return Floor(library("sage", macros), parameters, nodes, [*tables, 1 / degree, degree])
