"""The child process of `gnnc bench scaling`: a compiled GCN on one graph, with chosen threads.

The first question, `{"contestant": .., "nodes": .., "edges": .., "features": .., "hidden": ..,
"classes": .., "layers": ..}`, draws the graph and makes the model; `{"threads": t, "seconds": s}`
trains with t threads for about s seconds, at least `LEAST` epochs.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from gnnc.bench.contestants import CONTESTANTS
from gnnc.bench.large_graphs import large_power_law
from gnnc.bench.tasks import PlainTask
from gnnc.frontend.tools.children import Message, serve
from gnnc.frontend.tools.memory import Watermark

LEAST, MOST = 2, 50


class Scaled:
    """A compiled GCN on a drawn graph."""

    def __init__(
        self,
        contestant: str,
        nodes: int,
        edges: int,
        features: int,
        hidden: int,
        classes: int,
        layers: int,
    ):
        random = np.random.default_rng(0)
        x = torch.from_numpy(random.standard_normal((nodes, features), np.float32))
        y = torch.from_numpy(random.integers(0, classes, nodes))
        widths = [features, *[hidden] * (layers - 1), classes]
        torch.manual_seed(0)
        edge_index = torch.from_numpy(large_power_law(nodes, edges))
        task = PlainTask("gcn", widths, y, x, edge_index)
        prepared = CONTESTANTS[contestant](task)
        optimizer = torch.optim.Adam(prepared.model.parameters(), lr=0.01)
        self.training = prepared.training(optimizer)
        self.mark = Watermark.set()

    def epoch(self) -> float:
        """Seconds of one training step."""
        start = time.perf_counter()
        self.training.step(None)
        return time.perf_counter() - start

    def train(self, threads: int, seconds: float) -> Message:
        """Seconds of each epoch after a first one that is not counted, and the memory so far."""
        torch.set_num_threads(threads)
        first = self.epoch()
        found = [self.epoch()]
        while len(found) < LEAST or (sum(found) < seconds and len(found) < MOST):
            found.append(self.epoch())
        return {"first_seconds": first, "seconds": found, "memory": self.mark.above}


def main() -> None:
    scaled: Scaled | None = None

    def work(question: Message) -> Message:
        nonlocal scaled
        if scaled is None:
            scaled = Scaled(**question)
            return {}
        return scaled.train(**question)

    serve(work)


if __name__ == "__main__":
    main()
