"""The GCN of gcn.c."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from .step import Floor, graph_tables, library, macros_of


def gcn(net: nn.Module, x: Tensor, edge_index: Tensor) -> Floor:
    """The model `frontend.models.Net("gcn", ..)` of equal inner widths, with its parameters.

    Raises:
        ValueError: a net of one layer, or with inner widths that differ.
    """
    convs: Any = net.convs
    nodes = len(x)
    widths = [convs[0].in_channels, *(conv.out_channels for conv in convs)]
    macros = macros_of(widths)
    src, dst = edge_index[:, edge_index[0] != edge_index[1]].numpy().astype(np.int32)
    tables = graph_tables(src, dst, nodes)
    scale = (1 / np.sqrt(np.diff(tables[0]) + 1)).astype(np.float32)
    parameters = [p for conv in convs for p in (conv.lin.weight, conv.bias)]
    return Floor(library("gcn", macros), parameters, nodes, [*tables, scale])
