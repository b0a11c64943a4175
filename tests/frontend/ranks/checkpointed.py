"""Trainings that are stopped and go on from a checkpoint, on ranks that are threads."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR

import gnnc
from gnnc.frontend.torch.calls import arguments as call_arguments
from gnnc.frontend.torch.ranks import ranked_program
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.world import world

from .cut_models import MakeOptimizer, adam, arguments, net

STEPS, AT = 6, 3
"""Steps of a training, and after how many its checkpoint is written."""


class Generators(threading.local):
    """A generator of random numbers a thread, as processes have theirs."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(3)


def own_generators(monkeypatch: Any) -> None:
    """Lets each rank that is a thread draw from, and save, a generator of its own."""
    own = Generators()

    def key() -> Tensor:
        return torch.randint(-(2**63), 2**63 - 1, (1,), generator=own.generator)

    for module in (call_arguments, ranked_program):
        monkeypatch.setattr(module, "dropout_key", key)
    monkeypatch.setattr(torch, "get_rng_state", lambda: own.generator.get_state())
    monkeypatch.setattr(torch, "set_rng_state", lambda state: own.generator.set_state(state))


def on(ranks: int, work: Callable[[], Any]) -> list[Any]:
    """What ranks that are threads give; one is this process."""
    return [work()] if ranks == 1 else virtual.run(ranks, lambda _: work())


class Training:
    """A model with dropout and batch normalisation, in training on this rank's part of a graph.

    `mode` is "step" (`gnnc.train_step`) or "loop" (backward and the optimizer's own step).
    """

    def __init__(
        self, model: nn.Module, data: Any, mode: str = "step", make: MakeOptimizer = adam
    ) -> None:
        self.total = int(data.train_mask.sum())
        self.model, self.part = gnnc.distribute(copy.deepcopy(model), data)
        self.optimizer = make(self.model.parameters())
        self.schedule = StepLR(self.optimizer, 2, 0.5)
        self.losses: list[float] = []
        self.whole = gnnc.train_step(self._loss, self.optimizer) if mode == "step" else None

    def _loss(self, x: Tensor, edges: Any, y: Tensor, mask: Tensor) -> Tensor:
        return F.cross_entropy(self.model(x, *edges)[mask], y[mask])

    def _loop(self, x: Tensor, edges: Any, y: Tensor, mask: Tensor) -> float:
        """Of results in torch each rank gives its share."""
        self.optimizer.zero_grad()
        out = self.model(x, *edges)[mask]
        loss = F.cross_entropy(out, y[mask], reduction="sum") / self.total
        loss.backward()
        self.optimizer.step()
        return float(world().all_reduce(np.array(loss.item()), "sum"))

    def run(self, steps: int) -> None:
        given = arguments(self.model, self.part)
        for _ in range(steps):
            loss = self.whole(*given).item() if self.whole is not None else self._loop(*given)
            self.losses.append(loss)
            self.schedule.step()

    @property
    def objects(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def save(self, path: Path) -> None:
        gnnc.save_checkpoint(path, **self.objects, losses=self.losses)

    def load(self, path: Path) -> None:
        rest = gnnc.load_checkpoint(path, **self.objects)
        assert list(rest) == ["losses"]
        self.losses = rest["losses"]

    def state(self) -> dict[str, Any]:
        """All that a training has, as copies."""
        found = {name: x.state_dict() for name, x in self.objects.items()}
        return copy.deepcopy({**found, "losses": self.losses})


def stopped(name: str, data: Any, path: Path, mode: str, **options: Any) -> Callable[[], Any]:
    """Work of a rank: a training that writes a checkpoint and goes on; what it ends with."""
    model = net(name)

    def work() -> Any:
        training = Training(model, data, mode, **options)
        training.run(AT)
        training.save(path)
        training.run(STEPS - AT)
        return training.state()

    return work


def resumed(name: str, data: Any, path: Path, mode: str, **options: Any) -> Callable[[], Any]:
    """Work of a rank: the training from the checkpoint on, in a model with other parameters."""
    model = net(name)
    with torch.no_grad():
        for x in model.parameters():
            x.uniform_(-1, 1)

    def work() -> Any:
        training = Training(model, data, mode, **options)
        training.load(path)
        training.run(STEPS - AT)
        return training.state()

    return work


def assert_close(a: Any, b: Any, tolerance: float) -> None:
    """Nested states are equal; tensors and floats up to the tolerance, in every bit if it is 0."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_close(a[key], b[key], tolerance)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_close(x, y, tolerance)
    elif isinstance(a, Tensor | float):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    else:
        assert a == b
