"""Training on batches of training nodes and their sampled neighbours, as one of several processes
or alone."""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from ..argo.worker import Worker
from ..torch.loader import NeighborLoader
from .datasets import NodeTask
from .training import Settings, Training


def loader(settings: Settings, task: NodeTask) -> NeighborLoader:
    """The batches of a training, before they are split among processes."""
    assert settings.batch_size is not None and settings.fanouts is not None
    x, edge_index, y = map(torch.from_numpy, (task.x, task.edge_index, task.y))
    return NeighborLoader(
        Data(x=x, edge_index=edge_index, y=y),
        list(settings.fanouts),
        input_nodes=torch.from_numpy(task.train),
        batch_size=settings.batch_size,
        shuffle=True,
        seed=settings.seed,
    )


class BatchTraining(Training):
    """A model with its optimizer, and this process's part of the batches."""

    def __init__(self, settings: Settings, task: NodeTask, whole: NeighborLoader, worker: Worker):
        super().__init__(settings, task)
        self._seed, self._worker = settings.seed, worker
        self._loader = worker.loader(whole)
        worker.same(self.model)

    def epoch(self) -> tuple[float, float]:
        """Trains one; returns its mean loss over all training nodes and its seconds (sampling,
        forward, loss, backward, update)."""
        # What is drawn depends on nothing that happened before, so that a checkpoint of process 0
        # is one of all.
        torch.manual_seed(hash((self._seed, self._loader.epoch, self._worker.rank)) % 2**63)
        start = time.perf_counter()
        self.model.train()
        sums = torch.zeros(2, dtype=torch.float64)
        for batch in self._worker.steps(self._loader):
            losses = self._step_on(batch)
            sums += torch.stack([losses.detach().sum(), torch.tensor(float(losses.numel()))])
        total, count = self._worker.sum(sums).tolist()
        return total / count, time.perf_counter() - start

    def _step_on(self, batch: Any) -> Tensor:
        self.optimizer.zero_grad()
        seeds = batch.batch_size
        out = self.model(batch.x, batch.edge_index)[:seeds]
        losses = F.cross_entropy(out, batch.y[:seeds], reduction="none")
        self._worker.mean(losses).backward()
        self._worker.sum_gradients(self.model)
        self.optimizer.step()
        return losses

    def of_all(self, number: int) -> int:
        """See Training."""
        return int(self._worker.sum(torch.tensor(number)))

    def state(self) -> dict[str, Any]:
        """See Training."""
        return super().state() | {"epoch": self._loader.epoch}

    def restore(self, state: dict[str, Any]) -> None:
        """See Training."""
        super().restore(state)
        self._loader.set_epoch(state["epoch"])
