"""Mini-batches by DGL: its loader, and its layers with the weights of PyG's; call `install` of
bench/dgl_shim.py first."""

from __future__ import annotations

from collections.abc import Sequence

import dgl
import torch
from torch import Tensor, nn

from .dgl_models import DglNet
from .dgl_shim import ignore_affinity

NAMES = {
    "sage": {
        "lin_l.weight": "fc_neigh.weight",
        "lin_l.bias": "fc_self.bias",
        "lin_r.weight": "fc_self.weight",
    },
    "gat": {"lin.weight": "fc.weight", "att_src": "attn_l", "att_dst": "attn_r", "bias": "bias"},
}
"""DGL's names of parameters by PyG's."""


class DglBlockNet(DglNet):
    """On blocks, of which each gives rows of its first nodes; `convs` as those of a `BlockNet`."""

    def __init__(self, kind: str, widths: Sequence[int]) -> None:
        super().__init__(kind, widths)
        self.names = NAMES[kind]
        for conv in self.convs:
            if kind == "gat":
                conv.set_allow_zero_in_degree(True)  # such a node has its bias alone, as in PyG

    def forward(self, x: Tensor, blocks: Sequence[dgl.DGLGraph]) -> Tensor:
        for i, (conv, block) in enumerate(zip(self.convs, blocks, strict=True)):
            x = conv(block, x).flatten(1)
            if i + 1 < len(self.convs):
                x = self.activation(x)
        return x

    def take(self, convs: nn.ModuleList) -> None:
        """Takes the weights of PyG's layers."""
        with torch.no_grad():
            for mine, theirs in zip(self.convs, convs, strict=True):
                for name, value in theirs.named_parameters():
                    own = mine.get_parameter(self.names[name])
                    own.copy_(value.view_as(own))


def loader(
    x: Tensor,
    y: Tensor,
    edge_index: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    batch_size: int,
    workers: int,
) -> dgl.dataloading.DataLoader:
    """Batches of blocks with the features `x` and labels `y` of their ends, in an order that is new
    each epoch."""
    ignore_affinity()
    graph = dgl.graph(tuple(edge_index), num_nodes=len(x)).formats("csc")
    graph.ndata["x"], graph.ndata["y"] = x, y
    sampler = dgl.dataloading.NeighborSampler(
        list(fanouts), prefetch_node_feats=["x"], prefetch_labels=["y"]
    )
    sizes = {"batch_size": batch_size, "num_workers": workers, "persistent_workers": workers > 0}
    return dgl.dataloading.DataLoader(graph, seeds, sampler, shuffle=True, **sizes)
