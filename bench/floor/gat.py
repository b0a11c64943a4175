"""The GAT of gat.c."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from .step import Floor, graph_tables, library, macros_of


def gat(net: nn.Module, x: Tensor, edge_index: Tensor) -> Floor:
    """The model `frontend.models.Net("gat", ..)` of equal inner widths, with its parameters.

    Raises:
        ValueError: a net of one layer, with inner widths that differ, with a number of heads that
            is no power of two, or with more than one in the last layer.
    """
    convs: Any = net.convs
    nodes = len(x)
    heads = convs[0].heads
    widths = [convs[0].in_channels, *(conv.heads * conv.out_channels for conv in convs)]
    macros = {**macros_of(widths), "HEADS": heads}
    equal = all(conv.heads == heads for conv in convs[:-1])
    if heads & (heads - 1) or not equal or convs[-1].heads != 1:
        raise ValueError("net needs a power of two of heads, and one in the last layer")
    loops = np.arange(nodes, dtype=np.int32)
    ends = edge_index[:, edge_index[0] != edge_index[1]].numpy().astype(np.int32)
    src, dst = (np.concatenate([end, loops]) for end in ends)
    tables = graph_tables(src, dst, nodes)
    longest = max(np.diff(offsets).max(initial=0) for offsets in (tables[0], tables[3]))
    parameters = [p for c in convs for p in (c.lin.weight, c.att_src, c.att_dst, c.bias)]
    return Floor(library("gat", macros), parameters, nodes, [*tables, np.array([longest])])
