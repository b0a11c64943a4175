"""The child process of `gnnc bench batches`: a model that is trained on one small graph after
another, by PyG or compiled.

The first question is `{"compiled": .., "profile": .., "trimmed": null or {"nodes": .., "edges": ..,
"fanouts": .., "batch_size": ..}}`. `{"threads": .., "steps": .., "nodes": .., "edges": .., "new":
..}` trains steps, each on a graph of its own of about this size where it is `new`, and answers
`seconds` of each step. With `trimmed` the graphs are batches of gnnc.loader, and the question needs
no sizes. A profiled model also tells `kernels`, the seconds of each step's kernels.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

import gnnc
from gnnc.bench.batch_models import TrimmedNet
from gnnc.bench.large_graphs import large_power_law
from gnnc.frontend.tools.children import Message, serve
from gnnc.frontend.tools.models import Net
from gnnc.frontend.torch.loader import NeighborLoader

FEATURES, HIDDEN, CLASSES = 64, 64, 16
SPREAD = 0.1
"""Sizes of new graphs are so far from those asked for, at most, as a share."""
WARM = 12
"""New graphs before any is timed: after them nothing is compiled any more."""

Inputs = tuple[Any, ...]
"""What the model is called on."""


def _fresh(inputs: Inputs) -> Inputs:
    """The same in other memory, which nothing is known of."""
    return tuple(x.clone() if isinstance(x, Tensor) else x for x in inputs)


class Small:
    """Random graphs without types."""

    def __init__(self) -> None:
        self.model = Net("sage", (FEATURES, HIDDEN, CLASSES))
        self._random = np.random.default_rng(0)

    def graphs(self, count: int, nodes: int, edges: int) -> list[tuple[Inputs, Tensor]]:
        """Inputs and labels; a single one has exactly this size."""
        made: list[tuple[Inputs, Tensor]] = []
        for _ in range(count):
            share = 1.0 if count == 1 else self._random.uniform(1 - SPREAD, 1 + SPREAD)
            n, e = max(1, round(share * nodes)), round(share * edges)
            x = torch.from_numpy(self._random.standard_normal((n, FEATURES), np.float32))
            edge_index = torch.from_numpy(self._random.integers(0, n, (2, e)))
            made.append(((x, edge_index), torch.from_numpy(self._random.integers(0, CLASSES, n))))
        return made


class Trimmed:
    """Batches of gnnc.loader, which are of the form of PyG's, and a model that trims them."""

    def __init__(self, nodes: int, edges: int, fanouts: Sequence[int], batch_size: int) -> None:
        widths = (FEATURES, *[HIDDEN] * (len(fanouts) - 1), CLASSES)
        self.model = TrimmedNet("sage", widths)
        data = Data(
            x=torch.randn(nodes, FEATURES),
            y=torch.randint(CLASSES, (nodes,)),
            edge_index=torch.from_numpy(large_power_law(nodes, edges)),
        )
        sizes = {"batch_size": min(batch_size, nodes), "shuffle": True, "seed": 0, "num_workers": 0}
        self._loader = NeighborLoader(data, list(fanouts)[::-1], **sizes)
        self._batches = self._endless()

    def _endless(self) -> Iterator[Any]:
        while True:
            yield from self._loader

    def graphs(self, count: int) -> list[tuple[Inputs, Tensor]]:
        made: list[tuple[Inputs, Tensor]] = []
        for _, b in zip(range(count), self._batches, strict=False):
            inputs = b.x, b.edge_index, b.num_sampled_nodes, b.num_sampled_edges
            made.append((inputs, b.y[: b.batch_size]))
        return made


class Stepping:
    """Trains, without an optimizer: forward, cross-entropy, backward."""

    def __init__(self, compiled: bool, profile: bool, trimmed: Message | None) -> None:
        torch.manual_seed(0)
        self.task = Small() if trimmed is None else Trimmed(**trimmed)
        self.model, self.profile = self.task.model, profile
        self.compiled = compiled
        if compiled:
            gnnc.compile(self.model, profile=profile)
        self._warm = False

    def steps(self, threads: int, steps: int, new: bool = True, **sizes: int) -> Message:
        """Seconds of each."""
        torch.set_num_threads(threads)
        if not self._warm:
            self._warm = True
            for inputs, y in self.task.graphs(WARM, **sizes):
                self._step(inputs, y)
        graphs = self.task.graphs(steps if new else 1, **sizes)
        # this one finds the caches as another process left them
        self._step(*self.task.graphs(1, **sizes)[0])
        if not new:
            self._step(*graphs[0])
            graphs = graphs * steps
        seconds: list[float] = []
        kernels: list[float] = []
        for inputs, y in graphs:
            inputs = _fresh(inputs) if new else inputs
            before = self._kernels()
            seconds.append(self._step(inputs, y))
            kernels.append(self._kernels() - before)
        return {"seconds": seconds, "kernels": kernels}

    def _step(self, inputs: Inputs, y: Tensor) -> float:
        self.model.zero_grad()
        start = time.perf_counter()
        F.cross_entropy(self.model(*inputs), y).backward()
        return time.perf_counter() - start

    def in_torch(self) -> list[str]:
        """What of a compiled model runs in torch."""
        return gnnc.explain(self.model).fallbacks if self.compiled else []

    def _kernels(self) -> float:
        """Seconds in kernels so far, of a profiled model."""
        if not self.profile:
            return 0.0
        programs = gnnc.explain(self.model).programs
        laps = [p.seconds for b in programs for p in b.program.phases.values()]
        return sum(sum(found) for found in laps if found is not None)

    def call(self, nodes: int, edges: int, steps: int, threads: int = 1) -> Message:
        """Seconds of forward and backward calls on one graph, without a loss."""
        torch.set_num_threads(threads)
        ((inputs, _),) = self.task.graphs(1, nodes=nodes, edges=edges)
        grad = torch.ones(nodes, CLASSES)
        seconds: list[float] = []
        kernels: list[float] = []
        for _ in range(WARM + steps):
            self.model.zero_grad()
            before = self._kernels()
            start = time.perf_counter()
            self.model(*inputs).backward(grad)
            seconds.append(time.perf_counter() - start)
            kernels.append(self._kernels() - before)
        return {"seconds": seconds[WARM:], "kernels": kernels[WARM:]}


def main() -> None:
    stepping: Stepping | None = None

    def work(question: Message) -> Message:
        nonlocal stepping
        if stepping is None:
            stepping = Stepping(**question)
            return {}
        call = question.pop("call", False)
        answer = stepping.call(**question) if call else stepping.steps(**question)
        return answer | {"in_torch": stepping.in_torch()}

    serve(work)


if __name__ == "__main__":
    main()
