"""Training on batches in the processes that ARGO's tuner finds (docs/argo.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..argo import tables
from ..argo.configurations import Configuration
from ..argo.runtime import argo
from ..argo.worker import Worker
from ..torch.loader import NeighborLoader
from . import checkpoint
from .batch_training import BatchTraining, loader
from .children import Message, Tell
from .datasets import NodeTask
from .memory import Watermark
from .models import warm_up_once
from .training import Settings
from .training_run import Kept, Run


@dataclass(frozen=True)
class Tuning:
    """How a training finds its processes: by at most so many trials, or it is told."""

    trials: int
    configuration: Configuration | None = None


def tuning_of(question: Message | None) -> Tuning | None:
    """From what the parent asks: `trials`, and the three numbers of a `configuration` or None."""
    if question is None:
        return None
    given: Sequence[int] | None = question["configuration"]
    return Tuning(question["trials"], None if given is None else Configuration(*given))


def train(
    settings: Settings, task: NodeTask, kept: Kept | None, tell: Tell, tuning: Tuning
) -> Message:
    """Tunes and trains. The answer has as `tuning` the `configuration`, and where there were trials
    these, as of `tables.entries`, with what they cost as a `share` of the training."""
    whole = loader(settings, task)
    runtime = argo(
        tuning.trials,
        settings.epochs,
        most_processes=_fewest_seeds(settings, int(task.train.sum())),
    )
    answer: Message = runtime.run(
        train_part,
        (settings, _without_data(task), whole, kept),
        configuration=tuning.configuration,
        tell=tell,
    )
    assert runtime.configuration is not None
    found: Message = {"configuration": list(runtime.configuration)}
    if runtime.trials.measured:
        found |= {"trials": tables.entries(runtime.trials), "share": runtime.tuning_share}
    return answer | {"tuning": found}


def train_part(
    settings: Settings, bare: NodeTask, whole: NeighborLoader, kept: Kept | None, *, worker: Worker
) -> Message | None:
    """What each process does. Process 0 evaluates and writes checkpoints in between, while others
    wait for its next gradients."""
    task = _with_data(bare, whole)
    if not worker.trial:
        warm_up_once(settings.mode != "eager")

    def make() -> BatchTraining:
        return BatchTraining(settings, task, whole, worker)

    if worker.rank == 0 and not worker.trial:
        return Run(settings, task, kept, worker.tell, make).finished()
    mark = Watermark.set()
    _follow(make(), mark, settings, task, kept, worker)
    return None


def _follow(
    training: BatchTraining,
    mark: Watermark,
    settings: Settings,
    task: NodeTask,
    kept: Kept | None,
    worker: Worker,
) -> None:
    """The epochs alone; a trial has as many as it needs."""
    begun = 0
    if kept is not None and kept.file.exists() and not worker.trial:
        state, _ = checkpoint.read(kept.file, settings, task.checksum)
        training.restore(state)
        begun = state["epoch"]
    while worker.trial or begun < settings.epochs:
        training.epoch()
        training.of_all(mark.above)  # as process 0 asks
        begun += 1


def _fewest_seeds(settings: Settings, seeds: int) -> int:
    """Of the batches of an epoch: so many processes can share each."""
    assert settings.batch_size is not None
    return seeds % settings.batch_size or settings.batch_size


def _without_data(task: NodeTask) -> NodeTask:
    """The loader has edges and classes already, and all share it."""
    return replace(task, edge_index=task.edge_index[:, :0], y=task.y[:0])


def _with_data(bare: NodeTask, whole: NeighborLoader) -> NodeTask:
    data: Any = whole.data
    arrays: list[torch.Tensor] = [data.edge_index, data.y]
    edge_index, y = (a.numpy() for a in arrays)
    return replace(bare, edge_index=edge_index, y=y)
