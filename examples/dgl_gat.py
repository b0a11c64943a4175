"""A graph attention network as a script for DGL, trained on a random graph of communities.

It says `import dgl` and nothing of how it is found, so it runs with DGL where that can be imported,
and with gnnc's own graphs where it cannot:

    python -m gnnc.dgl examples/dgl_gat.py
"""

import dgl
import torch
import torch.nn.functional as F
from dgl.nn import GATConv
from torch import Tensor, nn

import gnnc

NODES, CLASSES, FEATURES = 2_000, 5, 16


class GAT(nn.Module):
    """Two layers: 4 heads side by side, then one for the classes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = GATConv(FEATURES, 8, num_heads=4, activation=F.elu)
        self.second = GATConv(32, CLASSES, num_heads=1)

    def forward(self, g: dgl.DGLGraph, x: Tensor) -> Tensor:
        return self.second(g, self.first(g, x).flatten(1)).squeeze(1)


def communities() -> tuple[dgl.DGLGraph, Tensor, Tensor]:
    """A graph in which most edges stay within a class, noisy features, and classes."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (NODES,), generator=draw)
    src, dst = torch.randint(NODES, (2, 60_000), generator=draw)
    kept = (labels[src] == labels[dst]) | (torch.rand(60_000, generator=draw) < 0.1)
    g = dgl.add_self_loop(dgl.graph((src[kept], dst[kept]), num_nodes=NODES))
    noise = torch.randn(NODES, FEATURES, generator=draw)
    return g, F.one_hot(labels, FEATURES) + noise, labels


def main(epochs: int = 60) -> None:
    torch.manual_seed(0)
    g, x, labels = communities()
    train = torch.arange(NODES) < NODES // 10
    model = gnnc.compile(GAT())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(g, x)[train], labels[train])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (model(g, x).argmax(1) == labels)[~train].float().mean().item()
    print(f"DGL is {dgl.__name__}; accuracy on the other nodes {100 * right:.1f}%")
    print(gnnc.explain(model))


if __name__ == "__main__":
    main()
