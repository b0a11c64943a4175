"""A training from its first epoch, or its checkpoint, to its last."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import checkpoint
from .children import Message, Tell
from .datasets import NodeTask
from .history import History
from .memory import Watermark
from .training import Settings, Training

TELL_SECONDS = 0.1
"""How often progress is told: to tell it takes time from what is trained beside it."""


@dataclass(frozen=True)
class Kept:
    """Where the checkpoint of a training is, and after how many epochs it is written anew."""

    file: Path
    every: int


class Run:
    """A training with its history, which tells of itself and writes its checkpoint."""

    def __init__(
        self,
        settings: Settings,
        task: NodeTask,
        kept: Kept | None,
        tell: Tell,
        make: Callable[[], Training],
    ):
        self.settings, self.task, self.kept, self.tell = settings, task, kept, tell
        self.mark = Watermark.set()
        self.training = make()
        self.history, self.before = History(), Message()
        if kept is not None and kept.file.exists():
            state, told = checkpoint.read(kept.file, settings, task.checksum)
            self.training.restore(state)
            self.history, self.before = History.of(told["history"]), told["explanation"]
        self.resumed_at = self.history.epochs
        if not self.is_done():
            self.history.starts.append(self.resumed_at)
        self.last_told = time.monotonic()

    def finished(self, predictions: int = 0) -> Message:
        """Trains all epochs that are left. Returns the `History`, the `accuracy` and last `loss` of
        it, and the sizes of the `graph`; of compiled models also `compile_seconds`, `kernels` and
        `fallbacks`. With a number of `predictions`, these follow: `prediction_seconds`."""
        while not self.is_done():
            self.epoch()
        timed: Message = {}
        if predictions:
            timed["prediction_seconds"] = self.training.predictions(predictions)
        return {
            **self.history.as_message(),
            **timed,
            "accuracy": self.history.accuracy,
            "loss": self.history.losses[-1],
            "graph": {
                "name": self.task.name,
                "nodes": self.task.x.shape[0],
                "edges": self.task.edge_index.shape[1],
                "features": self.task.x.shape[1],
                "classes": self.task.classes,
            },
            **self.explanation(),
        }

    def epoch(self) -> None:
        """Trains one, with what is due after it; only the training itself is timed."""
        loss, seconds = self.training.epoch()
        history = self.history
        history.losses.append(loss)
        history.epoch_seconds.append(seconds)
        if self.settings.evaluates(history.epochs):
            history.evaluations.append(self.training.evaluate(history.epochs))
        history.saw_memory(self.training.of_all(self.mark.above), self.mark.exact)
        due = self._due()
        if due is not None or self.is_done() or time.monotonic() - self.last_told > TELL_SECONDS:
            self._tell()  # before it is written: here an orphan ends
        if due is not None:
            self._save(due)

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

    def _due(self) -> Path | None:
        """The checkpoint that is to be written after this epoch."""
        if self.kept is None or not self.is_done() and self.history.epochs % self.kept.every:
            return None
        return self.kept.file

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
