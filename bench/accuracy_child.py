"""The child process of `gnnc bench accuracy`: trains one task on published data, one way.

A question is `Settings`; the answer is what `train` returns.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import gnnc
from gnnc.bench.accuracy_tasks import TASKS, Training
from gnnc.frontend.tools.children import Message, serve
from gnnc.frontend.tools.memory import Watermark
from gnnc.frontend.tools.models import warm_up


@dataclass(frozen=True)
class Settings:
    """One training. `root` is the folder that PyG's class of the data set is given."""

    task: str
    root: str
    epochs: int
    hidden: int
    seed: int
    compiled: bool


@functools.cache
def load(task: str, root: str) -> Any:
    """The data of a task, read once a process."""
    return TASKS[task].load(root)


def train(settings: Settings) -> Message:
    """Trains for a number of epochs; returns the score on the test set after the last one.

    `epoch_seconds` has one entry for each epoch (forward, loss, backward, optimiser); `memory` is
    the highest resident memory in bytes above that before the model was made, evaluation included;
    `in_torch` says what of a compiled model runs in torch.
    """
    data = load(settings.task, settings.root)
    compile_ = gnnc.compile if settings.compiled else None
    _warm_up_once(compile_)
    mark = Watermark.set()
    torch.manual_seed(settings.seed)
    training = TASKS[settings.task].training(data, settings)
    if compile_ is not None:
        for part in training.parts:
            compile_(part)
    seconds: list[float] = []
    losses: list[float] = []
    for _ in range(settings.epochs):
        start = time.perf_counter()
        losses.append(_step(training))
        seconds.append(time.perf_counter() - start)
    training.model.eval()
    with torch.no_grad():
        score = training.score()
    answer = {
        "score": score,
        "loss": losses[-1],
        "first_loss": losses[0],
        "epoch_seconds": seconds,
        "memory": mark.above,
        "memory_exact": mark.exact,
        "sizes": TASKS[settings.task].sizes(data),
    }
    return answer | (_explanation(training.parts) if settings.compiled else NOTHING_COMPILED)


NOTHING_COMPILED: Message = {"kernels": 0, "in_torch": []}


def _step(training: Training) -> float:
    training.model.train()
    training.optimizer.zero_grad()
    loss = training.loss()
    loss.backward()
    if training.clip is not None:
        nn.utils.clip_grad_norm_(training.model.parameters(), training.clip)
    training.optimizer.step()
    return loss.item()


_warm_up_once = functools.cache(warm_up)


def _explanation(parts: list[nn.Module]) -> Message:
    told = [gnnc.explain(part) for part in parts]
    return {
        "kernels": sum(len(t.kernels) for t in told),
        "in_torch": [str(f) for t in told for f in t.fallbacks],
    }


if __name__ == "__main__":
    serve(lambda question: train(Settings(**question)))
