"""One model in training, by eager torch or compiled: its epochs, its accuracy, its state."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .children import Message
from .datasets import NodeTask
from .history import Evaluation
from .models import Net

if TYPE_CHECKING:
    from ..torch.step import TrainStep


@dataclass(frozen=True)
class Settings:
    """All that decides what a training gives.

    `dataset` is "default" or `<class of torch_geometric.datasets>:<name>`, read from `root`;
    `mode` is "eager", "drop-in" (`gnnc.compile` in torch's loop) or "step" (`gnnc.train_step`).
    The model is evaluated every `eval_every` epochs (0: never before the end), and at the end.
    An epoch is a step on the whole graph, or with a `batch_size` one for each so many training
    nodes and `fanouts` of their neighbours, hop by hop (-1: all).
    """

    model: str
    dataset: str
    root: str
    nodes: int
    epochs: int
    hidden: int
    layers: int
    dropout: float
    lr: float
    weight_decay: float
    eval_every: int
    seed: int
    mode: str
    batch_size: int | None = None
    fanouts: Sequence[int] | None = None

    def evaluates(self, epoch: int) -> bool:
        """Whether the model is evaluated after so many epochs."""
        return epoch == self.epochs or bool(self.eval_every) and epoch % self.eval_every == 0


class Training:
    """A model with its optimizer and data, drawn from the seed of the settings."""

    def __init__(self, settings: Settings, task: NodeTask):
        self.x, self.edge_index, self.y = map(torch.from_numpy, (task.x, task.edge_index, task.y))
        masks = (task.train, task.validation, task.test)
        self.train_mask, *self.other_masks = map(torch.from_numpy, masks)
        torch.manual_seed(settings.seed)
        inner = [settings.hidden] * (settings.layers - 1)
        widths = [self.x.shape[1], *inner, task.classes]
        self.model: nn.Module = Net(settings.model, widths, settings.dropout)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay
        )
        self.compiled: list[Any] = []  # what `gnnc.explain` knows
        self._step = self._make_step(settings.mode)

    def _make_step(self, mode: str) -> Callable[..., Tensor]:
        if mode == "eager":
            return self._step_in_torch
        import gnnc

        self.compiled.append(gnnc.compile(self.model))
        if mode == "drop-in":
            return self._step_in_torch
        step = self._whole_step()
        self.compiled.append(step)
        return step

    def _whole_step(self) -> TrainStep:
        import gnnc

        return gnnc.train_step(self._loss, self.optimizer)

    def _loss(self, x: Tensor, edge_index: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        return F.cross_entropy(self.model(x, edge_index)[mask], y[mask])

    def _step_in_torch(self, *inputs: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = self._loss(*inputs)
        loss.backward()
        self.optimizer.step()
        return loss

    def epoch(self) -> tuple[float, float]:
        """Trains one; returns its loss and its seconds (forward, loss, backward, update)."""
        start = time.perf_counter()
        self.model.train()
        loss = self._step(self.x, self.edge_index, self.y, self.train_mask)
        seconds = time.perf_counter() - start
        return loss.item(), seconds

    def evaluate(self, epoch: int) -> Evaluation:
        """The accuracies now, after so many epochs."""
        self.model.eval()
        with torch.no_grad():
            right = self.model(self.x, self.edge_index).argmax(1) == self.y
        shares = [right[m].float().mean().item() for m in (self.train_mask, *self.other_masks)]
        return Evaluation(epoch, *shares)

    def predictions(self, times: int) -> list[float]:
        """The seconds of so many predictions for all nodes, with the parameters frozen for good;
        one more comes first, which compiles."""
        self.model.eval().requires_grad_(False)
        seconds: list[float] = []
        for _ in range(times + 1):
            start = time.perf_counter()
            self.model(self.x, self.edge_index)
            seconds.append(time.perf_counter() - start)
        return seconds[1:]

    def explanation(self) -> Message:
        """What was compiled; nothing of eager training."""
        if not self.compiled:
            return {}
        import gnnc

        told = [gnnc.explain(part) for part in self.compiled]
        return {
            "compile_seconds": sum(t.compile_seconds for t in told),
            "kernels": [kernel for t in told for kernel in t.kernels],
            "fallbacks": [str(f) for t in told for f in t.fallbacks],
        }

    def of_all(self, number: int) -> int:
        """The sum of a number over the processes that train."""
        return number

    def state(self) -> dict[str, Any]:
        """All that the epochs to come depend on, as tensors and plain data.

        Masks of dropout are drawn from torch's generator, eagerly, and compiled by a key for each
        call; the optimizer has the count of steps. So there is no further state in programs.
        """
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from what `state` gave."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["generator"])
