"""The GAT of gat.c."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from torch import Tensor, nn

from .step import Floor, graph_tables, library


def gat(net: nn.Module, edge_index: Tensor, nodes: int) -> Floor:
    """The model `frontend.models.Net("gat", ..)` of equal inner widths, with its parameters.

    Raises:
        ValueError: a net of one layer, with inner widths that differ, or with a number of heads
            that is no power of two.
    """
    convs: Any = net.convs
    heads, inner, classes = convs[0].heads, convs[0].heads * convs[0].out_channels, convs[-1].out_channels
    shapes = [(c.heads, c.heads * c.out_channels) for c in convs]
    if len(convs) < 2 or shapes != [*[(heads, inner)] * (len(convs) - 1), (1, classes)]:
        raise ValueError(f"net needs two layers or more and one inner width, not {shapes}")
    if heads & (heads - 1):
        raise ValueError(f"net needs a power of two of heads, not {heads}")
    macros = {"FEATURES": convs[0].in_channels, "HEADS": heads, "HIDDEN": inner}
    macros |= {"CLASSES": classes, "LAYERS": len(convs)}
    loops = np.arange(nodes, dtype=np.int32)
    ends = edge_index[:, edge_index[0] != edge_index[1]].numpy().astype(np.int32)
    src, dst = (np.concatenate([end, loops]) for end in ends)
    tables = graph_tables(src, dst, nodes)
    longest = max(np.diff(offsets).max(initial=0) for offsets in (tables[0], tables[3]))
    parameters = [p for c in convs for p in (c.lin.weight, c.att_src, c.att_dst, c.bias)]
    return Floor(library("gat", macros), parameters, nodes, [*tables, np.array([longest])])
