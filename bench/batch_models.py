"""Models on sampled batches, as users of PyG write them: GraphSAGE and GAT, layer by layer on fewer
nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, SAGEConv
from torch_geometric.utils import trim_to_layer

from ..frontend.tools.models import ACTIVATIONS, GAT_HEADS, gat_heads

Block = tuple[Tensor, int]
"""The edges of a layer, and how many of its nodes it gives, which are the first ones."""


def _layers(kind: str, widths: Sequence[int]) -> nn.ModuleList:
    """Without loops in GAT, which sampled edges have none of."""
    pairs = list(pairwise(widths))
    if kind == "sage":
        return nn.ModuleList(SAGEConv(a, b) for a, b in pairs)
    inner = [GATConv(a, gat_heads(b), heads=GAT_HEADS, add_self_loops=False) for a, b in pairs[:-1]]
    return nn.ModuleList([*inner, GATConv(*pairs[-1], add_self_loops=False)])


class TrimmedNet(nn.Module):
    """On batches of PyG's loaders: x (n x widths[0]) and edge_index (2 x e), with the numbers of
    nodes and of edges that each hop has met. Gives the rows of the seeds."""

    def __init__(self, kind: str, widths: Sequence[int]) -> None:
        super().__init__()
        self.convs = _layers(kind, widths)
        self.activation = ACTIVATIONS.get(kind, F.relu)

    def forward(self, x: Tensor, edge_index: Tensor, nodes: list[int], edges: list[int]) -> Tensor:
        for i, conv in enumerate(self.convs):
            x, edge_index, _ = trim_to_layer(i, nodes, edges, x, edge_index)
            x = conv(x, edge_index)
            if i + 1 < len(self.convs):
                x = self.activation(x)
        return x[: nodes[0]]


class BlockNet(nn.Module):
    """The same layers on blocks, as DGL samples them: each gives rows of its first nodes."""

    def __init__(self, kind: str, widths: Sequence[int]) -> None:
        super().__init__()
        self.convs = _layers(kind, widths)
        self.activation = ACTIVATIONS.get(kind, F.relu)

    def forward(self, x: Tensor, blocks: Sequence[Block]) -> Tensor:
        for i, (conv, (edge_index, count)) in enumerate(zip(self.convs, blocks, strict=True)):
            x = conv((x, x[:count]), edge_index)
            if i + 1 < len(self.convs):
                x = self.activation(x)
        return x
