"""The contestants of `gnnc bench`: each makes the same model ready to train on one graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..frontend.children import Refused
from ..frontend.models import Net, warm_up


@dataclass(frozen=True)
class Task:
    """What is trained: a kind of `frontend.models.Net` and its widths, on one graph.

    `x` is n x widths[0], `edge_index` 2 x e, `y` the n classes below widths[-1].
    """

    kind: str
    widths: Sequence[int]
    x: Tensor
    edge_index: Tensor
    y: Tensor


@dataclass(frozen=True)
class Prepared:
    """A contestant's model with what it is called on.

    `has_loss`: a call gives the loss, not the logits. `graph_at`: where among the inputs the
    edge_index stands whose first use makes it build structure, None where it did so beforehand or
    never does.
    """

    model: nn.Module
    inputs: tuple[Any, ...]
    y: Tensor
    has_loss: bool = False
    graph_at: int | None = None

    def loss(self, edge_index: Tensor | None = None) -> Tensor:
        """The mean cross-entropy over all nodes, on another graph where one is given."""
        inputs = list(self.inputs)
        if edge_index is not None:
            assert self.graph_at is not None
            inputs[self.graph_at] = edge_index
        out = self.model(*inputs)
        return out if self.has_loss else F.cross_entropy(out, self.y)


class Step(nn.Module):
    """A model whose call computes the loss as well."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, edge_index: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.model(x, edge_index), y)


def pyg(task: Task) -> Prepared:
    """PyG as most people use it: an edge_index and one message per edge."""
    return Prepared(Net(task.kind, task.widths), (task.x, task.edge_index), task.y)


def pyg_sparse(task: Task) -> Prepared:
    """PyG as its documentation advises where memory is short: a CSR matrix of torch.sparse."""
    from torch_geometric.utils import to_torch_csr_tensor

    nodes = len(task.x)
    torch.sparse.check_sparse_tensor_invariants.disable()  # what it does anyway, and warns of
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        adjacency = to_torch_csr_tensor(task.edge_index.flip(0), size=(nodes, nodes))
    return Prepared(Net(task.kind, task.widths), (task.x, adjacency), task.y)


def gnnc(task: Task, **options: Any) -> Prepared:
    """The first contestant's model, compiled; `options` are those of `gnnc.compile`."""
    import gnnc

    model = Net(task.kind, task.widths)  # before the warm-up, which draws random numbers too
    warm_up(gnnc.compile)
    inputs = (task.x, task.edge_index)
    return Prepared(gnnc.compile(model, **options), inputs, task.y, graph_at=1)


def gnnc_step(task: Task, **options: Any) -> Prepared:
    """The same with the loss inside what is compiled."""
    import gnnc

    model = Step(Net(task.kind, task.widths))
    warm_up(gnnc.compile)
    inputs = (task.x, task.edge_index, task.y)
    compiled = gnnc.compile(model, **options)
    return Prepared(compiled, inputs, task.y, has_loss=True, graph_at=1)


def dgl(task: Task) -> Prepared:
    """DGL's layers on a DGL graph."""
    from . import dgl_shim

    dgl_shim.install()
    from .dgl_models import DglNet, graph_of

    graph = graph_of(task.kind, task.edge_index, len(task.x))
    return Prepared(DglNet(task.kind, task.widths), (graph, task.x), task.y)


def floor(task: Task) -> Prepared:
    """Hand-written C, for GCN only."""
    from .floor.gcn import Floor

    if task.kind != "gcn" or len(task.widths) < 3:
        raise Refused("the hand-written program is a GCN of two layers or more")
    model = Floor(Net(task.kind, task.widths), task.edge_index, len(task.x))
    return Prepared(model, (task.x, task.y), task.y, has_loss=True)


CONTESTANTS: dict[str, Callable[..., Prepared]] = {
    "gnnc": gnnc,
    "gnnc-step": gnnc_step,
    "pyg": pyg,
    "pyg-sparse": pyg_sparse,
    "dgl": dgl,
    "floor": floor,
}
