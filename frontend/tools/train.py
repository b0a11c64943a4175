"""The child process of `gnnc train`: trains one model on one graph, eagerly or compiled.

frontend/tools/compare.py starts one child a way and has them take turns, seed by seed. A question
has the `settings` of a training and where its checkpoint is (`checkpoint`: the file, or None;
`every`: how many epochs apart). `{"check": [..]}` of such questions reads all the checkpoints that
there are, so that a bad one is found before anything is trained.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import checkpoint
from .children import Message, Refused, Tell, serve_with_progress
from .datasets import NodeTask, citation, split
from .history import History
from .memory import Watermark
from .models import warm_up
from .training import Settings, Training

TELL_SECONDS = 0.1
"""How often progress is told: to tell it takes time from what is trained beside it."""


@dataclass(frozen=True)
class Kept:
    """Where the checkpoint of a training is, and after how many epochs it is written anew."""

    file: Path
    every: int


@functools.cache
def load(dataset: str, root: str, nodes: int) -> NodeTask:
    """The graph that `--dataset` names; `nodes` is the size of the generated one.

    PyG keeps what it makes of the raw files in `root`, and downloads those that are not there.
    Raises Refused for a name that says no data set, or one with features we cannot train on.
    """
    if dataset == "default":
        return citation(nodes, links=nodes * 5278 // 2708)
    kind, _, name = dataset.partition(":")
    import torch_geometric.datasets
    from torch_geometric.transforms import NormalizeFeatures

    cls = getattr(torch_geometric.datasets, kind, None)
    if cls is None:
        raise Refused(f"torch_geometric.datasets has no {kind!r}; write --dataset CLASS:NAME")
    options: dict[str, Any] = {"name": name} if name else {}
    data = cls(root=root, **options)[0]
    if getattr(data, "edge_index", None) is None or data.x is None or data.x.is_sparse_csr:
        raise Refused(f"{dataset} is not one graph with an edge_index and dense features x")
    data = NormalizeFeatures()(data)
    y = data.y.numpy()
    classes = int(y.max()) + 1
    if getattr(data, "train_mask", None) is None:
        masks = split(y, classes)
    else:
        # Some data sets bring several splits, as columns: the first is used.
        stored = (data.train_mask, data.val_mask, data.test_mask)
        masks = tuple(m.view(len(y), -1)[:, 0].numpy() for m in stored)
    return NodeTask(dataset, data.x.numpy(), data.edge_index.numpy(), y, classes, *masks)


def _task(settings: Settings) -> NodeTask:
    return load(settings.dataset, settings.root, settings.nodes)


def check(settings: Settings, kept: Kept) -> None:
    """Reads the checkpoint where there is one; raises Refused where it is not of this training."""
    if kept.file.exists():
        checkpoint.read(kept.file, settings, _task(settings).checksum)


def train(settings: Settings, kept: Kept | None, tell: Tell) -> Message:
    """Trains one model, on from its checkpoint where there is one.

    Returns its `History`, the `accuracy` and last `loss` of it, and the sizes of the `graph`;
    of compiled models also `compile_seconds`, `kernels` and `fallbacks`.
    """
    task = _task(settings)
    _warm_up_once(settings.mode != "eager")
    run = Run(settings, task, kept, tell)
    while not run.is_done():
        run.epoch()
    return {
        **run.history.as_message(),
        "accuracy": run.history.accuracy,
        "loss": run.history.losses[-1],
        "graph": {
            "name": task.name,
            "nodes": task.x.shape[0],
            "edges": task.edge_index.shape[1],
            "features": task.x.shape[1],
            "classes": task.classes,
        },
        **run.explanation(),
    }


class Run:
    """A training with its history, which tells of itself and writes its checkpoint."""

    def __init__(self, settings: Settings, task: NodeTask, kept: Kept | None, tell: Tell):
        self.settings, self.task, self.kept, self.tell = settings, task, kept, tell
        self.mark = Watermark.set()
        self.training = Training(settings, task)
        self.history, self.before = History(), Message()
        if kept is not None and kept.file.exists():
            state, told = checkpoint.read(kept.file, settings, task.checksum)
            self.training.restore(state)
            self.history, self.before = History.of(told["history"]), told["explanation"]
        self.resumed_at = self.history.epochs
        if not self.is_done():
            self.history.starts.append(self.resumed_at)
        self.last_told = time.monotonic()

    def epoch(self) -> None:
        """Trains one, with what is due after it; only the training itself is timed."""
        loss, seconds = self.training.epoch()
        history = self.history
        history.losses.append(loss)
        history.epoch_seconds.append(seconds)
        if self.settings.evaluates(history.epochs):
            history.evaluations.append(self.training.evaluate(history.epochs))
        history.saw_memory(self.mark.above, self.mark.exact)
        saves = self.kept is not None and self._is_due(self.kept)
        if saves or self.is_done() or time.monotonic() - self.last_told > TELL_SECONDS:
            self._tell()  # before it is written: here an orphan ends
        if saves:
            self._save(self.kept.file)

    def explanation(self) -> Message:
        """What was compiled; the time for it is that of all processes of this training."""
        if self.before and self.resumed_at == self.settings.epochs:
            return self.before  # nothing was left to train
        now = self.training.explanation()
        if self.before:
            now["compile_seconds"] += self.before["compile_seconds"]
        return now

    def is_done(self) -> bool:
        """Whether it has all its epochs."""
        return self.history.epochs == self.settings.epochs

    def _is_due(self, kept: Kept) -> bool:
        return self.is_done() or self.history.epochs % kept.every == 0

    def _tell(self) -> None:
        last = self.history.evaluations[-1] if self.history.evaluations else None
        self.tell(
            {
                "epoch": self.history.epochs,
                "loss": self.history.losses[-1],
                "epoch_seconds": self.history.median_seconds,
                "accuracies": None if last is None else [last.train, last.validation, last.test],
                "memory": self.history.memory,
            }
        )
        self.last_told = time.monotonic()

    def _save(self, file: Path) -> None:
        told = {"history": self.history.as_message(), "explanation": self.explanation()}
        checkpoint.write(file, self.settings, self.task.checksum, self.training.state(), told)


@functools.cache
def _warm_up_once(compiled: bool) -> None:
    if not compiled:
        return warm_up()
    import gnnc

    warm_up(gnnc.compile)


def answer(question: Message, tell: Tell) -> Message:
    """What the parent is answered."""
    if "check" in question:
        for settings, kept in map(_asked, question["check"]):
            assert kept is not None
            check(settings, kept)
        return {}
    return train(*_asked(question), tell)


def _asked(question: Message) -> tuple[Settings, Kept | None]:
    file = question["checkpoint"]
    kept = None if file is None else Kept(Path(file), question["every"])
    return Settings(**question["settings"]), kept


if __name__ == "__main__":
    serve_with_progress(answer)
