"""The relational models of `gnnc bench`, written as PyG users write them.

All have one head of attention, where they have any, as in the evaluation of Hector (Wu et al.,
ASPLOS 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import FastRGCNConv, HGTConv, MessagePassing, RGATConv, RGCNConv
from torch_geometric.nn.dense import HeteroLinear
from torch_geometric.nn.inits import glorot
from torch_geometric.typing import Metadata
from torch_geometric.utils import softmax


def glorot_(weight: Tensor) -> nn.Parameter:
    """A parameter with the numbers that PyG's layers begin with."""
    glorot(weight)
    return nn.Parameter(weight)


class TypedHGTConv(MessagePassing):
    """PyG's HGTConv with one head, on one tensor of all nodes and tensors of types.

    Keys and values are multiplied with the matrix of their relation edge by edge, as the layer is
    defined (Hu et al., WWW 2020, equations 3 to 5), and in the way of PyG's RGATConv: each edge
    takes a copy of the matrix. HeteroLinear, which would need less memory, takes minutes for the
    backward pass of hundreds of relations.
    """

    def __init__(self, inputs: int, outputs: int, relations: int, node_types: int):
        super().__init__(aggr="add", node_dim=0)
        self.kqv_lin = HeteroLinear(inputs, 3 * outputs, node_types)
        self.out_lin = HeteroLinear(outputs, outputs, node_types)
        self.k_rel = glorot_(torch.empty(relations, outputs, outputs))
        self.v_rel = glorot_(torch.empty(relations, outputs, outputs))
        self.p_rel = nn.Parameter(torch.ones(relations))
        self.skip = nn.Parameter(torch.ones(node_types))

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor, node_type: Tensor):
        k, q, v = self.kqv_lin(x, node_type).tensor_split(3, 1)
        size = (x.size(0), x.size(0))
        out = self.propagate(edge_index, k=k, q=q, v=v, edge_type=edge_type, size=size)
        out = self.out_lin(F.gelu(out), node_type)
        if out.size(-1) == x.size(-1):
            alpha = self.skip.sigmoid()[node_type].view(-1, 1)
            out = alpha * out + (1 - alpha) * x
        return out

    def message(
        self,
        k_j: Tensor,
        q_i: Tensor,
        v_j: Tensor,
        edge_type: Tensor,
        index: Tensor,
        ptr: Tensor | None,
        size_i: int | None,
    ) -> Tensor:
        key = torch.bmm(k_j.unsqueeze(1), self.k_rel[edge_type]).squeeze(1)
        value = torch.bmm(v_j.unsqueeze(1), self.v_rel[edge_type]).squeeze(1)
        score = (q_i * key).sum(-1) * self.p_rel[edge_type]
        alpha = softmax(score / math.sqrt(q_i.size(-1)), index, ptr, size_i)
        return alpha.view(-1, 1) * value


@dataclass(frozen=True)
class Kind:
    """How a layer is made of (inputs, outputs, relations, node types), and whether a call takes the
    types of nodes as well as those of edges."""

    make: Callable[[int, int, int, int], nn.Module]
    node_types: bool = False


KINDS = {
    "rgcn": Kind(lambda a, b, relations, _: RGCNConv(a, b, relations)),
    "rgcn-fast": Kind(lambda a, b, relations, _: FastRGCNConv(a, b, relations)),
    "rgat": Kind(lambda a, b, relations, _: RGATConv(a, b, relations)),
    "hgt-typed": Kind(TypedHGTConv, node_types=True),
}


class TypedNet(nn.Module):
    """Layers of a kind with ReLU between them, on one tensor of all nodes.

    A call takes x (n x widths[0]), edge_index (2 x e), edge_type (e), and for some kinds
    node_type (n).
    """

    def __init__(self, kind: str, widths: Sequence[int], relations: int, node_types: int):
        super().__init__()
        make = KINDS[kind].make
        self.convs = nn.ModuleList(make(a, b, relations, node_types) for a, b in pairwise(widths))

    def forward(self, x: Tensor, edge_index: Tensor, *types: Tensor) -> Tensor:
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index, *types)
            if i + 1 < len(self.convs):
                x = F.relu(x)
        return x


class HeteroNet(nn.Module):
    """PyG's HGTConv with ReLU in between, on dictionaries by type; gives the rows of `target`."""

    def __init__(self, widths: Sequence[int], metadata: Metadata, target: str):
        super().__init__()
        self.convs = nn.ModuleList(HGTConv(a, b, metadata) for a, b in pairwise(widths))
        self.target = target

    def forward(
        self, x: Mapping[str, Tensor], edge_index: Mapping[tuple[str, str, str], Tensor]
    ) -> Tensor:
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if i + 1 < len(self.convs):
                x = {name: F.relu(rows) for name, rows in x.items()}
        return x[self.target]
