"""The models of `gnnc bench` with DGL's layers; call `install` of bench/dgl_shim.py first.

They compute the same but for GCN on directed graphs, where DGL divides by the roots of the source's
out-degree and the destination's in-degree, and PyG by those of both in-degrees; and for HGT, where
DGL has no GELU in front of the last product, and no biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import dgl
import dgl.nn
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..frontend.tools.children import Refused
from ..frontend.tools.models import ACTIVATIONS, GAT_HEADS, gat_heads
from .tasks import HeteroTask, PlainTask, Task, TypedTask, numbered_through


def model_and_inputs(task: Task) -> tuple[nn.Module, tuple[Any, ...]]:
    """The model, and what it is called on.

    Raises:
        Refused: a model that DGL has no layer for.
    """
    match task:
        case PlainTask():
            graph = graph_of(task.kind, task.edge_index, len(task.x))
            return DglNet(task.kind, task.widths), (graph, task.x)
        case TypedTask(kind="rgcn"):
            graph = dgl.graph(tuple(task.edge_index), num_nodes=len(task.x))
            graph.edata["norm"] = shares(task)
            model = DglRgcn(task.widths, task.relations)
            return model, (graph, task.x, task.edge_type)
        case TypedTask(kind="hgt-typed"):
            graph = dgl.graph(tuple(task.edge_index), num_nodes=len(task.x))
            model = DglHgt(task.widths, task.node_types, task.relations, slice(None))
            return model, (graph, task.x, task.node_type, task.edge_type)
        case HeteroTask():
            return _hetero(task)
    raise Refused(f"DGL has no {task.kind.upper()} layer")


def _hetero(task: HeteroTask) -> tuple[nn.Module, tuple[Any, ...]]:
    """The layer takes one graph with types as tensors."""
    counts = torch.tensor([len(x) for x in task.x.values()])
    offsets = dict(zip(task.x, (counts.cumsum(0) - counts).tolist(), strict=True))
    edge_index, edge_type = numbered_through(task.edge_index, offsets)
    graph = dgl.graph(tuple(edge_index), num_nodes=int(counts.sum()))
    begin = offsets[task.target]
    rows = slice(begin, begin + len(task.x[task.target]))
    model = DglHgt(task.widths, len(counts), len(task.edge_index), rows)
    node_type = torch.arange(len(counts)).repeat_interleave(counts)
    return model, (graph, torch.cat(list(task.x.values())), node_type, edge_type)


def _make(kind: str, inputs: int, outputs: int, last: bool) -> nn.Module:
    match kind:
        case "gcn":
            return dgl.nn.GraphConv(inputs, outputs)
        case "sage":
            return dgl.nn.SAGEConv(inputs, outputs, "mean")
        case "gin":
            layers = (nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs))
            return dgl.nn.GINConv(nn.Sequential(*layers), "sum")
        case "gat" if last:
            return dgl.nn.GATConv(inputs, outputs, 1)
        case "gat":
            return dgl.nn.GATConv(inputs, gat_heads(outputs), GAT_HEADS)
    raise ValueError(f"no DGL model for {kind!r}")


class DglNet(nn.Module):
    """Convolutions with what `frontend.models.Net` has between them."""

    def __init__(self, kind: str, widths: Sequence[int]):
        super().__init__()
        pairs = list(pairwise(widths))
        last = len(pairs) - 1
        self.convs = nn.ModuleList(_make(kind, a, b, i == last) for i, (a, b) in enumerate(pairs))
        self.activation = ACTIVATIONS.get(kind, F.relu)

    def forward(self, graph: dgl.DGLGraph, x: Tensor) -> Tensor:
        for i, conv in enumerate(self.convs):
            x = conv(graph, x).flatten(1)  # GATConv's result has a dimension for heads
            if i + 1 < len(self.convs):
                x = self.activation(x)
        return x


def graph_of(kind: str, edge_index: Tensor, nodes: int) -> dgl.DGLGraph:
    """The DGL graph; the loops of GCN and GAT, which PyG's layers add in each call, are added here
    once."""
    graph = dgl.graph((edge_index[0], edge_index[1]), num_nodes=nodes)
    if kind in ("gcn", "gat"):
        keep = torch.nonzero(edge_index[0] != edge_index[1]).flatten()
        graph = dgl.add_self_loop(dgl.edge_subgraph(graph, keep, relabel_nodes=False))
    return graph


class DglRgcn(nn.Module):
    """RelGraphConv with ReLU in between; edges are sorted by relation, and have a `norm`."""

    def __init__(self, widths: Sequence[int], relations: int):
        super().__init__()
        self.convs = nn.ModuleList(
            dgl.nn.RelGraphConv(a, b, relations) for a, b in pairwise(widths)
        )

    def forward(self, graph: dgl.DGLGraph, x: Tensor, edge_type: Tensor) -> Tensor:
        for i, conv in enumerate(self.convs):
            x = conv(graph, x, edge_type, graph.edata["norm"], presorted=True)
            if i + 1 < len(self.convs):
                x = F.relu(x)
        return x


def shares(task: TypedTask) -> Tensor:
    """1 / the number of edges of the same relation and destination (e x 1): PyG's layer takes the
    mean of each relation, DGL's adds up."""
    pair = task.edge_type * len(task.x) + task.edge_index[1]
    _, inverse, counts = pair.unique(return_inverse=True, return_counts=True)
    return (1 / counts)[inverse].view(-1, 1)


class DglHgt(nn.Module):
    """HGTConv with ReLU in between; nodes and edges are sorted by type. Gives some `rows`."""

    def __init__(self, widths: Sequence[int], node_types: int, relations: int, rows: slice):
        super().__init__()
        sizes = (1, node_types, relations, 0.0)  # heads first, dropout last
        self.convs = nn.ModuleList(dgl.nn.HGTConv(a, b, *sizes) for a, b in pairwise(widths))
        self.rows = rows

    def forward(
        self, graph: dgl.DGLGraph, x: Tensor, node_type: Tensor, edge_type: Tensor
    ) -> Tensor:
        for i, conv in enumerate(self.convs):
            x = conv(graph, x, node_type, edge_type, presorted=True)
            if i + 1 < len(self.convs):
                x = F.relu(x)
        return x[self.rows]
