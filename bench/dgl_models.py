"""The models of frontend/models.py with DGL's layers; call `install` of bench/dgl_shim.py first.

They compute the same but for GCN on directed graphs, where DGL divides by the roots of the source's
out-degree and the destination's in-degree, and PyG by those of both in-degrees.
"""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import dgl.nn
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def _make(kind: str, inputs: int, outputs: int) -> nn.Module:
    match kind:
        case "gcn":
            return dgl.nn.GraphConv(inputs, outputs)
        case "sage":
            return dgl.nn.SAGEConv(inputs, outputs, "mean")
        case "gin":
            layers = (nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs))
            return dgl.nn.GINConv(nn.Sequential(*layers), "sum")
    raise ValueError(f"no DGL model for {kind!r}")


class DglNet(nn.Module):
    """Convolutions with ReLU between them, as in `frontend.models.Net`."""

    def __init__(self, kind: str, widths: Sequence[int]):
        super().__init__()
        pairs = zip(widths, widths[1:], strict=False)
        self.convs = nn.ModuleList(_make(kind, a, b) for a, b in pairs)

    def forward(self, graph: dgl.DGLGraph, x: Tensor) -> Tensor:
        for i, conv in enumerate(self.convs):
            x = conv(graph, x)
            if i + 1 < len(self.convs):
                x = F.relu(x)
        return x


def graph_of(kind: str, edge_index: Tensor, nodes: int) -> dgl.DGLGraph:
    """The DGL graph; GCN's loops, which PyG's layer adds in each call, are added here once."""
    graph = dgl.graph((edge_index[0], edge_index[1]), num_nodes=nodes)
    if kind == "gcn":
        keep = torch.nonzero(edge_index[0] != edge_index[1]).flatten()
        graph = dgl.add_self_loop(dgl.edge_subgraph(graph, keep, relabel_nodes=False))
    return graph
