"""What one training tells of itself, epoch by epoch: for answers, checkpoints and figures."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Evaluation:
    """The shares of right answers after so many epochs, on each of the three masks."""

    epoch: int
    train: float
    validation: float
    test: float


@dataclass
class History:
    """One training so far.

    Attributes:
        losses: of each epoch.
        epoch_seconds: of each epoch: forward, loss, backward, update. Nothing else is in it.
        evaluations: those that there were.
        starts: after how many epochs a process began to train, 0 first, then for each resumption.
        memory: the highest resident memory in bytes above that before the model was made.
        memory_exact: whether nothing from before that is in it.
    """

    losses: list[float] = field(default_factory=list[float])
    epoch_seconds: list[float] = field(default_factory=list[float])
    evaluations: list[Evaluation] = field(default_factory=list[Evaluation])
    starts: list[int] = field(default_factory=list[int])
    memory: int = 0
    memory_exact: bool = True

    @property
    def epochs(self) -> int:
        """How many are done."""
        return len(self.losses)

    @property
    def accuracy(self) -> float:
        """That on the test nodes at the evaluation that is best on the validation nodes."""
        return max((e.validation, e.test) for e in self.evaluations)[1]

    @property
    def median_seconds(self) -> float:
        """Of an epoch."""
        return statistics.median(warm_seconds(self.epoch_seconds, self.starts))

    def saw_memory(self, above: int, exact: bool) -> None:
        """Takes a peak of the process that trains now."""
        self.memory = max(self.memory, above)
        self.memory_exact = self.memory_exact and exact

    def as_message(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @staticmethod
    def of(message: dict[str, Any]) -> History:
        """From `as_message`."""
        found = History(**message)
        found.evaluations = [Evaluation(**e) for e in message["evaluations"]]
        return found


def warm_seconds(epoch_seconds: list[float], starts: list[int]) -> list[float]:
    """The seconds of all epochs but the first of each process, which compiles; of all where there
    are no others."""
    return [s for i, s in enumerate(epoch_seconds) if i not in starts] or epoch_seconds
