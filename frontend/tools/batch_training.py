"""Training on batches of training nodes and their sampled neighbours, as one of several processes
or alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from ..argo.worker import Worker
from ..torch.loader import NeighborLoader
from .datasets import NodeTask
from .training import Settings, Training

if TYPE_CHECKING:
    from ..torch.step import TrainStep


def loader(settings: Settings, task: NodeTask) -> NeighborLoader:
    """The batches of a training, before they are split among processes. They have the numbers of
    their nodes alone: features are read by these, by the first kernel where that is compiled."""
    assert settings.batch_size is not None and settings.fanouts is not None
    edge_index, y = map(torch.from_numpy, (task.edge_index, task.y))
    return NeighborLoader(
        Data(edge_index=edge_index, y=y, num_nodes=len(y)),
        list(settings.fanouts),
        input_nodes=torch.from_numpy(task.train),
        batch_size=settings.batch_size,
        shuffle=True,
        seed=settings.seed,
    )


class BatchTraining(Training):
    """A model with its optimizer, and this process's part of the batches."""

    def __init__(self, settings: Settings, task: NodeTask, whole: NeighborLoader, worker: Worker):
        self._seed, self._worker = settings.seed, worker
        super().__init__(settings, task)
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
            y = batch.y[: batch.batch_size]
            count = self._worker.sum(torch.tensor(float(len(y))))
            sums += torch.stack([self._step(batch.n_id, batch.edge_index, y, count) * count, count])
        total, count = sums.tolist()
        return total / count, time.perf_counter() - start

    def _part_of_loss(self, n_id: Tensor, edge_index: Tensor, y: Tensor, count: Tensor) -> Tensor:
        """Of this process's seeds, whose classes are given, its part of the mean over `count`; the
        features of the nodes are among those of all."""
        out = self.model(self.x[n_id], edge_index)[: len(y)]
        return F.cross_entropy(out, y, reduction="sum") / count

    def _whole_step(self) -> TrainStep:
        return self._worker.train_step(self._part_of_loss, self.optimizer)

    def _step_in_torch(self, *inputs: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = self._part_of_loss(*inputs)
        loss.backward()
        self._worker.sum_gradients(self.model)
        self.optimizer.step()
        return self._worker.sum(loss)

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
