"""The models of `gnnc train` and `gnnc bench`, written as PyG users write them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from .children import Refused

GAT_HEADS = 8


def _gin(inputs: int, outputs: int) -> GINConv:
    return GINConv(
        nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs))
    )


def gat_heads(outputs: int) -> int:
    """The numbers of each head of an inner GAT layer with `outputs` numbers in all.

    Raises:
        Refused: a number that the heads cannot share.
    """
    if outputs % GAT_HEADS:
        raise Refused(f"hidden: {GAT_HEADS} heads of GAT cannot share {outputs} features evenly")
    return outputs // GAT_HEADS


def _gat(inputs: int, outputs: int) -> GATConv:
    return GATConv(inputs, gat_heads(outputs), heads=GAT_HEADS)


CONVOLUTIONS: dict[str, Callable[[int, int], nn.Module]] = {
    "gcn": GCNConv,
    "sage": SAGEConv,
    "gin": _gin,
    "gat": _gat,
}
LAST: dict[str, Callable[[int, int], nn.Module]] = {"gat": GATConv}
"""What stands last where that is another: GAT's inner layers have heads, the last has one."""
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gat": F.elu}
"""What is applied between layers where that is not ReLU."""


class Net(nn.Module):
    """Convolutions with ReLU (GAT: ELU) between them and, where `dropout` is not 0, dropout before
    each.

    `widths` are the numbers of features before, between and after the convolutions.
    """

    def __init__(self, kind: str, widths: Sequence[int], dropout: float = 0.0):
        super().__init__()
        make, last = CONVOLUTIONS[kind], LAST.get(kind, CONVOLUTIONS[kind])
        inner = [make(a, b) for a, b in pairwise(widths[:-1])]
        self.convs = nn.ModuleList([*inner, last(widths[-2], widths[-1])])
        self.activation = ACTIVATIONS.get(kind, F.relu)
        self.dropout = dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for i, conv in enumerate(self.convs):
            if self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            x = conv(x, edge_index)
            if i + 1 < len(self.convs):
                x = self.activation(x)
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


@functools.cache
def warm_up_once(compiled: bool) -> None:
    """`warm_up`, compiled or not, the first time in a process."""
    if not compiled:
        return warm_up()
    import gnnc

    warm_up(gnnc.compile)
