"""The child process of `gnnc bench batch-accuracy`: GraphSAGE on published data, compiled.

The first question is `{"file": .., "hidden": .., "fanouts": .., "batch_size": ..}`. `{"seed": ..,
"epochs": .., "batched": ..}` trains so many epochs and answers the `score`: the test accuracy after
the epoch with the best accuracy on the nodes for validation, always computed on the whole graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

import gnnc
from gnnc.bench.labelled import Labelled
from gnnc.frontend.tools.children import Message, serve
from gnnc.frontend.tools.models import Net
from gnnc.frontend.torch.loader import NeighborLoader

SHARES = (0.6, 0.2)
"""Of the nodes, for training and for choosing the epoch; the others are for the test."""
LOOKS = 40
"""How often a training is looked at: after each epoch where it has no more."""


class Training:
    """Published data, and how a model is trained on it."""

    def __init__(self, file: str, hidden: int, fanouts: list[int], batch_size: int) -> None:
        found = Labelled.load(Path(file))
        x, edge_index, y = map(torch.from_numpy, (found.x, found.edge_index, found.y))
        self.data = Data(x=x, edge_index=edge_index, y=y)
        self.widths = (x.shape[1], hidden, found.classes)
        self.fanouts, self.batch_size = fanouts, batch_size

    def train(self, seed: int, epochs: int, batched: bool) -> Message:
        torch.manual_seed(seed)
        cuts = [round(share * len(self.data.y)) for share in SHARES]
        train, validation, test = torch.randperm(len(self.data.y)).tensor_split(
            [cuts[0], sum(cuts)]
        )
        model = gnnc.compile(Net("sage", self.widths, dropout=0.5))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        losses = self._batches(model, train, seed) if batched else self._whole(model, train)
        best, score, steps, seconds = -1.0, 0.0, 0, 0.0
        for epoch in range(epochs):
            start = time.perf_counter()
            model.train()
            for loss in losses():
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
            seconds += time.perf_counter() - start
            if (epoch + 1) % -(-epochs // LOOKS) == 0:
                right = self._right(model)
                if (found := right[validation].mean().item()) > best:
                    best, score = found, right[test].mean().item()
        explained = gnnc.explain(model).fallbacks
        return {"score": score, "steps": steps, "seconds": seconds, "in_torch": explained}

    def _batches(self, model: Net, train: Tensor, seed: int) -> Callable[[], Iterator[Tensor]]:
        """The loss of each batch of an epoch."""
        sizes = {"batch_size": self.batch_size, "shuffle": True, "seed": seed}
        loader = NeighborLoader(self.data, self.fanouts[::-1], train, **sizes)

        def losses() -> Iterator[Tensor]:
            for batch in loader:
                seeds = batch.batch_size
                yield F.cross_entropy(model(batch.x, batch.edge_index)[:seeds], batch.y[:seeds])

        return losses

    def _whole(self, model: Net, train: Tensor) -> Callable[[], Iterator[Tensor]]:
        """The loss of all nodes for training, once an epoch."""
        data = self.data

        def losses() -> Iterator[Tensor]:
            yield F.cross_entropy(model(data.x, data.edge_index)[train], data.y[train])

        return losses

    @torch.no_grad()
    def _right(self, model: Net) -> Tensor:
        """Of each node 1 where it is classified rightly."""
        model.eval()
        return (model(self.data.x, self.data.edge_index).argmax(1) == self.data.y).float()


def main() -> None:
    training: Training | None = None

    def work(question: Message) -> Message:
        nonlocal training
        if training is None:
            training = Training(**question)
            return {}
        return training.train(**question)

    serve(work)


if __name__ == "__main__":
    main()
