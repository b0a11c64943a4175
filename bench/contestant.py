"""The child process of `gnnc bench`: one contestant, ready to train epochs when asked.

The first question, `{"contestant": .., "model": .., "graph": .., "hidden": .., "layers": ..}` and
for gnnc options of `gnnc.compile`, prepares it and trains two epochs, or with `"inference": true`
predicts in them; bench/graphs.py says what a graph is. Every `{"epochs": n}` after that trains n
more after one that is not counted, and `{"graphs": n}` trains one epoch on each of n graphs that it
has not seen.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from xdsl.utils.exceptions import DiagnosticException

import gnnc
from gnnc.bench.contestants import CONTESTANTS
from gnnc.bench.tasks import Task, task_of
from gnnc.frontend.tools.children import Message, Refused, serve
from gnnc.frontend.tools.memory import Watermark
from gnnc.frontend.tools.models import warm_up
from gnnc.passes.driver.runner import PassCrash
from gnnc.runtime.cpu.toolchain import CompileError
from gnnc.runtime.footprint import Footprint

WARM_UP = 2

_NO_MEMORY = ("can't allocate memory", "std::bad_alloc")
"""How torch and DGL say that they were refused memory, in a RuntimeError."""


class Contest:
    """A prepared contestant: model, data, how it trains, and the memory it started from."""

    def __init__(
        self,
        contestant: str,
        model: str,
        graph: Any,
        hidden: int,
        layers: int,
        inference: bool = False,
        **options: Any,
    ):
        self.task = task_of(model, graph, hidden, layers)
        torch.manual_seed(0)
        self.prepared = CONTESTANTS[contestant](self.task, **options)
        self.optimizer = torch.optim.Adam(self.prepared.model.parameters(), lr=0.01)
        self.training = (
            self.prepared.predicting() if inference else self.prepared.training(self.optimizer)
        )
        warm_up()
        self.mark = Watermark.set()

    def epoch(self, other: Task | None = None) -> float:
        """One whole training step, or prediction; returns the loss before it."""
        return self.training.step(other).item()

    def train(self, epochs: int) -> Message:
        """Seconds and loss of each epoch, and the memory in bytes above that before training."""
        seconds: list[float] = []
        losses: list[float] = []
        for _ in range(epochs):
            start = time.perf_counter()
            losses.append(self.epoch())
            seconds.append(time.perf_counter() - start)
        return {
            "seconds": seconds,
            "losses": losses,
            "memory": self.mark.above,
            "process_memory": self.mark.peak,
            "memory_exact": self.mark.exact,
        }

    def turn(self, epochs: int) -> Message:
        """As `train`, after an epoch that finds the caches as another process left them; in
        training epochs follow one another.
        """
        self.epoch()
        return self.train(epochs)

    def new_graphs(self, count: int) -> Message:
        """Seconds of one epoch on each of `count` graphs seen for the first time.

        The edges are those of the task in another order. No seconds for a contestant that builds
        no structure when it is called.
        """
        seconds: list[float] = []
        for seed in range(count if self.prepared.inputs_of is not None else 0):
            other = self.task.shuffled(seed)
            start = time.perf_counter()
            self.epoch(other)
            seconds.append(time.perf_counter() - start)
        return {"new_graph_seconds": seconds}

    def compiled(self) -> Message:
        """What of a compiled model runs in torch after all, and why; and the bytes of buffers and
        tables that the rest takes at its peak, of buffers alone, and of those in use at once."""
        if self.prepared.inputs_of is None:
            return {}
        report = gnnc.explain(self.training.compiled)
        most = max(report.footprints(), key=lambda f: f.peak, default=Footprint(0, 0, 0, 0))
        memory = {"buffers": most.peak, "live": most.live, "bound": most.bound}
        return {"in_torch": report.fallbacks, **memory}


def main() -> None:
    contest: Contest | None = None

    def work(question: Message) -> Message:
        nonlocal contest
        if contest is None:
            contest = Contest(**question)
            return {**contest.train(WARM_UP), **contest.compiled()}
        if "graphs" in question:
            return contest.new_graphs(question["graphs"])
        return contest.turn(question["epochs"])

    def told(question: Message) -> Message:
        """`work`, with the failures that a table can tell of."""
        try:
            return work(question)
        except (DiagnosticException, PassCrash, CompileError) as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        except RuntimeError as error:
            if any(text in str(error) for text in _NO_MEMORY):
                raise MemoryError(str(error)) from error
            raise

    serve(told)


if __name__ == "__main__":
    main()
