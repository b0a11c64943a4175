"""What the planner knows of an epoch and what it decides: times, buffers, split, schedule."""

from dataclasses import dataclass
from math import isfinite


@dataclass(frozen=True)
class Times:
    """Seconds per mini-batch of each operator.

    `cpu` is the time of one worker while all `workers` work, so that the CPU finishes a batch
    every `cpu / workers` seconds. `accelerator` is the whole preparation there, the sampling
    included, not only the transfer.
    """

    cpu: float
    move: float
    accelerator: float
    train: float
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("cpu", "move", "accelerator", "train"):
            value = getattr(self, name)
            if not isfinite(value) or value < 0:
                raise ValueError(f"{name}: a time is finite and not negative, not {value}")
        if self.workers < 1:
            raise ValueError(f"workers: at least one is needed, not {self.workers}")

    @property
    def cpu_interval(self) -> float:
        """Seconds between two batches of the CPU when all its workers work."""
        return self.cpu / self.workers


@dataclass(frozen=True)
class Buffers:
    """How many batches may lie ready, at least one each.

    `host`: begun by the CPU and not yet moved, beyond one for each worker. `moved`: begun to
    move and not yet trained. `prepared`: prepared by the accelerator and not yet trained.
    """

    host: int = 2
    moved: int = 2
    prepared: int = 2

    def __post_init__(self) -> None:
        for name in ("host", "moved", "prepared"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: a buffer holds at least one batch")


@dataclass(frozen=True)
class Split:
    """How many batches of an epoch each side prepares."""

    cpu: int
    accelerator: int

    def __post_init__(self) -> None:
        if self.cpu < 0 or self.accelerator < 0 or self.batches == 0:
            raise ValueError(f"cpu, accelerator: no split is {self.cpu} and {self.accelerator}")

    @property
    def batches(self) -> int:
        return self.cpu + self.accelerator
