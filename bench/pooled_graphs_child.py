"""The child process of `gnnc bench batches --studies pooled`: a classifier of graphs, trained on
batches of small ones.

The first question is `{"model": .., "way": "step" | "call" | "pyg"}`: `gnnc.train_step`,
`gnnc.compile`, or PyG. `{"threads": .., "steps": ..}` trains steps with Adam, each on a batch that
was not met before, and answers `seconds` of each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    BatchNorm,
    GATConv,
    GCNConv,
    GINConv,
    GINEConv,
    SAGEConv,
    global_mean_pool,
)

import gnnc
from gnnc.bench.pooled_graphs import EDGE_FEATURES, FEATURES, GRAPHS, HIDDEN
from gnnc.frontend.tools.children import Message, serve

CLASSES, LAYERS = 2, 3
WARM = 20
"""Batches before any that is timed: after them nothing is compiled any more."""


def _perceptron(width: int) -> nn.Sequential:
    first = [nn.Linear(width, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU()]
    return nn.Sequential(*first, nn.Linear(HIDDEN, HIDDEN))


CONVS: dict[str, Callable[[int], nn.Module]] = {
    "gcn": lambda width: GCNConv(width, HIDDEN),
    "sage": lambda width: SAGEConv(width, HIDDEN),
    "gin": lambda width: GINConv(_perceptron(width)),
    "gine": lambda width: GINEConv(_perceptron(width), edge_dim=EDGE_FEATURES),
    "gat": lambda width: GATConv(width, HIDDEN // 4, heads=4),
}


class Classifier(nn.Module):
    """Layers with batch norm, the mean over each graph, dropout, and a linear layer."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        widths = [FEATURES, *[HIDDEN] * (LAYERS - 1)]
        self.convs = nn.ModuleList(CONVS[kind](width) for width in widths)
        self.norms = nn.ModuleList(BatchNorm(HIDDEN) for _ in widths)
        self.lin = nn.Linear(HIDDEN, CLASSES)
        self.reads_edges = kind == "gine"

    def forward(self, b: Batch) -> Tensor:
        x, more = b.x, (b.edge_attr,) if self.reads_edges else ()
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.relu(norm(conv(x, b.edge_index, *more)))
        x = global_mean_pool(x, b.batch, b.num_graphs)
        return self.lin(F.dropout(x, 0.5, self.training))


class Training:
    """Batches of graphs of 10 to 39 nodes, with about 2.2 edges a node in both directions."""

    def __init__(self, model: str, way: str) -> None:
        torch.manual_seed(0)
        self.model = Classifier(model)
        self.compiled = way != "pyg"
        if way == "call":
            gnnc.compile(self.model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3)
        self.step = gnnc.train_step(self.loss, self.optimizer) if way == "step" else self._plain
        self.random = torch.Generator().manual_seed(1)
        self.warm = False

    def loss(self, b: Batch) -> Tensor:
        """The loss of a batch."""
        return F.cross_entropy(self.model(b), b.y)

    def _plain(self, b: Batch) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.loss(b)
        loss.backward()
        self.optimizer.step()
        return loss

    def batch(self) -> Batch:
        """Graphs that are new."""
        return Batch.from_data_list([self._graph() for _ in range(GRAPHS)])

    def _graph(self) -> Data:
        def drawn(bound: int, *shape: int) -> Tensor:
            return torch.randint(bound, shape, generator=self.random)

        nodes = 10 + int(drawn(30, 1))
        half = drawn(nodes, 2, round(1.1 * nodes))
        edge_index = torch.cat([half, half.flip(0)], 1)
        return Data(
            x=torch.randn(nodes, FEATURES, generator=self.random),
            edge_index=edge_index,
            edge_attr=torch.randn(edge_index.shape[1], EDGE_FEATURES, generator=self.random),
            y=drawn(CLASSES, 1),
        )

    def steps(self, threads: int, steps: int) -> Message:
        """Seconds of each."""
        torch.set_num_threads(threads)
        if not self.warm:
            self.warm = True
            for _ in range(WARM):
                self.step(self.batch())
        seconds: list[float] = []
        for b in [self.batch() for _ in range(steps)]:
            start = time.perf_counter()
            self.step(b)
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds}

    def in_torch(self) -> list[str]:
        """What of a compiled model runs in torch."""
        if not self.compiled:
            return []
        known: Any = self.model if self.step == self._plain else self.step
        return gnnc.explain(known).fallbacks


def main() -> None:
    training: Training | None = None

    def work(question: Message) -> Message:
        nonlocal training
        if training is None:
            training = Training(**question)
            return {}
        return training.steps(**question) | {"in_torch": training.in_torch()}

    serve(work)


if __name__ == "__main__":
    main()
