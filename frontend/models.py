"""The models of `gnnc train` and `gnnc bench`, written as PyG users write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, SAGEConv


def _gin(inputs: int, outputs: int) -> GINConv:
    return GINConv(
        nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs))
    )


CONVOLUTIONS: dict[str, Callable[[int, int], nn.Module]] = {
    "gcn": GCNConv,
    "sage": SAGEConv,
    "gin": _gin,
}


class Net(nn.Module):
    """Convolutions with ReLU between them and, where `dropout` is not 0, dropout before each.

    `widths` are the numbers of features before, between and after the convolutions.
    """

    def __init__(self, kind: str, widths: Sequence[int], dropout: float = 0.0):
        super().__init__()
        make = CONVOLUTIONS[kind]
        self.convs = nn.ModuleList(make(a, b) for a, b in zip(widths, widths[1:], strict=False))
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for i, conv in enumerate(self.convs):
            if self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            x = conv(x, edge_index)
            if i + 1 < len(self.convs):
                x = F.relu(x)
        return x


def warm_up(compile_: Callable[[nn.Module], nn.Module] | None = None) -> None:
    """Trains a layer for one step on three nodes.

    After it torch, PyG and the compiler have loaded the code that they load at first use, which
    would otherwise be counted as memory of the model that is measured.
    """
    layer: nn.Module = GCNConv(2, 2)
    if compile_ is not None:
        layer = compile_(layer)
    optimizer = torch.optim.Adam(layer.parameters())
    out = layer(torch.ones(3, 2), torch.tensor([[0, 1], [1, 2]]))
    F.cross_entropy(out, torch.tensor([0, 1, 0])).backward()
    optimizer.step()
