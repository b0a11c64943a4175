"""Operators that sleep: their times are known, and they share no core."""

from threading import Lock
from time import sleep

import numpy as np

from gnnc.frontend.morph.registry import (
    ACCELERATOR,
    ACCELERATOR_AND_LINK,
    CPU,
    LINK,
    Phase,
    Registry,
)


class Sleeping:
    """A registry of sleeping operators and the order in which its batches were trained."""

    def __init__(self, cpu: float, move: float, accelerator: float, train: float) -> None:
        self.trained: list[int] = []
        self.prepared_on_cpu: set[int] = set()
        self._lock = Lock()
        self.registry = Registry()
        self.registry.register(Phase.PREPARE, CPU, lambda i: self._prepare(i, cpu, True))
        self.registry.register(Phase.MOVE, LINK, lambda batch: _slept(move, batch.copy()))
        self.registry.register(
            Phase.PREPARE, ACCELERATOR_AND_LINK, lambda i: self._prepare(i, accelerator, False)
        )
        self.registry.register(Phase.TRAIN, ACCELERATOR, lambda batch: self._train(batch, train))

    def _prepare(self, index: int, seconds: float, on_cpu: bool) -> np.ndarray:
        sleep(seconds)
        if on_cpu:
            with self._lock:
                self.prepared_on_cpu.add(index)
        return np.full(4, index, dtype=np.float64)

    def _train(self, batch: np.ndarray, seconds: float) -> float:
        sleep(seconds)
        self.trained.append(int(batch[0]))
        return float(batch.sum())


def _slept(seconds: float, value: np.ndarray) -> np.ndarray:
    sleep(seconds)
    return value
