"""The child process of `gnnc bench argo`: GraphSAGE on sampled batches, in processes.

The first question says what is trained (see `Tuned`). `{"tune": epochs}` finds how a training of so
many epochs is split over processes and cores, and answers the `configuration`, the `trials` as of
`argo.tables.entries`, what they cost as a `share` of the training, and the `steps` of an epoch.
`{"on": [processes, samplers, trainers]}` runs one trial and answers the `seconds` of a step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

import gnnc
from gnnc.bench.batch_models import TrimmedNet
from gnnc.bench.epochs_child import Task
from gnnc.bench.labelled import Labelled
from gnnc.frontend.argo import tables
from gnnc.frontend.argo.configurations import Configuration
from gnnc.frontend.argo.cores import machine
from gnnc.frontend.argo.pool import Pool, Work
from gnnc.frontend.argo.runtime import TIMED, WARM, argo
from gnnc.frontend.argo.worker import Lengths, Worker, summary
from gnnc.frontend.tools.children import Message, serve
from gnnc.frontend.torch.loader import NeighborLoader

FEATURES, CLASSES = 128, 40
"""Of graphs that are drawn: those of ogbn-arxiv."""
SEEDS = 0.55
"""Of the nodes of a graph: so many are for training."""


def train(loader: NeighborLoader, widths: tuple[int, ...], whole: bool, *, worker: Worker) -> None:
    """What each process does, as a user writes it, as long as it is a trial: the training itself is
    nobody's business here. `whole`: by `train_step`."""
    if not worker.trial:
        return
    torch.manual_seed(0)
    model = TrimmedNet("sage", widths)
    worker.same(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def loss(inputs: tuple[Any, ...], y: Tensor, count: Tensor) -> Tensor:
        return F.cross_entropy(model(*inputs), y, reduction="sum") / count

    def in_torch(*given: Any) -> None:
        optimizer.zero_grad()
        loss(*given).backward()
        worker.sum_gradients(model)
        optimizer.step()

    if not whole:
        gnnc.compile(model)
    step = worker.train_step(loss, optimizer) if whole else in_torch
    mine = worker.loader(loader)
    for _ in worker.epochs():
        for batch in worker.steps(mine):
            y = batch.y[: batch.batch_size]
            hops = batch.num_sampled_nodes, batch.num_sampled_edges
            count = worker.sum(torch.tensor(float(len(y))))
            step((batch.x, batch.edge_index, *hops), y, count)


class Tuned:
    """Batches of a graph, which is in a `file` or drawn with so many `nodes` and `edges`."""

    def __init__(
        self,
        hidden: int,
        fanouts: list[int],
        batch_size: int,
        whole: bool,
        file: str | None = None,
        nodes: int = 0,
        edges: int = 0,
    ) -> None:
        if file is None:
            sizes = (nodes, edges, FEATURES, hidden, CLASSES)
            task = Task("sage", *sizes, fanouts, batch_size, SEEDS, 0.01)
            x, y, edge_index, seeds, classes = task.x, task.y, task.edge_index, task.seeds, CLASSES
        else:
            found = Labelled.load(Path(file))
            x, edge_index, y = map(torch.from_numpy, (found.x, found.edge_index, found.y))
            torch.manual_seed(0)
            seeds, classes = torch.randperm(len(y))[: round(SEEDS * len(y))], found.classes
        data = Data(x=x, y=y, edge_index=edge_index)
        hops = fanouts[::-1]
        self.loader = NeighborLoader(
            data, hops, seeds, batch_size=batch_size, shuffle=True, seed=0, drop_last=True
        )
        widths = (x.shape[1], *[hidden] * (len(fanouts) - 1), classes)
        self.work = Work(train, (self.loader, widths, whole), {})

    def tune(self, epochs: int) -> Message:
        runtime = argo(epoch=epochs)
        runtime.run(train, self.work.args)
        assert runtime.configuration is not None
        return {
            "configuration": list(runtime.configuration),
            "trials": tables.entries(runtime.trials),
            "share": runtime.tuning_share or 0.0,
            "steps": len(self.loader),
        }


def main() -> None:
    tuned: Tuned | None = None
    with Pool(machine()) as pool:

        def work(question: Message) -> Message:
            nonlocal tuned
            if tuned is None:
                tuned = Tuned(**question)
                return {}
            if (epochs := question.get("tune")) is not None:
                return tuned.tune(epochs)
            on = Configuration(*question["on"])
            answers = pool.run(tuned.work, on, Lengths(1 << 30, WARM, TIMED))
            return {"seconds": max(summary(a.seconds)[0] for a in answers)}

        serve(work)


if __name__ == "__main__":
    main()
