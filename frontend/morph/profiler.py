"""The median time of every operator, measured on batches of the epoch itself."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from time import perf_counter
from typing import TextIO

from ..tools.progress import counted
from .plan import Times
from .registry import ACCELERATOR, ACCELERATOR_AND_LINK, CPU, LINK, Operator, Phase, Registry


class Profiler:
    """Times a registry's operators.

    `trials` batches are timed after `warm_up` untimed ones. The CPU's are prepared by all `workers`
    at once, as in an epoch, because workers share caches and memory; so they come in whole rounds,
    and there are as many as that takes. `progress` is a stream that is told how far it is.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        workers: int = 1,
        warm_up: int = 2,
        trials: int = 5,
        progress: TextIO | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers: at least one is needed, not {workers}")
        if warm_up < 0:
            raise ValueError(f"warm_up: a number of batches, not {warm_up}")
        if trials < 1:
            raise ValueError(f"trials: at least one is needed, not {trials}")
        self._registry = registry
        self._workers = workers
        self._warm_up = warm_up
        self._trials = trials
        self._progress = progress

    def measure(self, batches: Sequence[int]) -> Times:
        """The times over `batches`, repeated where there are too few.

        The step is timed on the batches too, so it trains: `gnnc.loader.undone` takes models and
        optimizers back to where they were. Raises ValueError where `batches`
        is empty, KeyError where an operator is missing, and what an operator raises.
        """
        if not batches:
            raise ValueError("batches: at least one is needed to measure")
        prepare = self._registry.get(Phase.PREPARE, CPU)
        move = self._registry.get(Phase.MOVE, LINK)
        prepare_there = self._registry.get(Phase.PREPARE, ACCELERATOR_AND_LINK)
        train = self._registry.get(Phase.TRAIN, ACCELERATOR)
        count = self._warm_up + self._trials
        cpu, prepared = self._with_all_workers(prepare, batches)
        moves: list[float] = []
        preparations: list[float] = []
        steps: list[float] = []
        with counted("profiling", "batch", count, self._progress) as tell:
            for done in range(1, count + 1):
                # One batch at a time, each gone with its step.
                seconds, moved = _timed(move, prepared.pop())
                moves.append(seconds)
                seconds, _ = _timed(prepare_there, batches[(done - 1) % len(batches)])
                preparations.append(seconds)
                steps.append(_timed(train, moved)[0])
                tell(done, "")
        kept = slice(self._warm_up, None)
        return Times(
            cpu=cpu,
            move=median(moves[kept]),
            accelerator=median(preparations[kept]),
            train=median(steps[kept]),
            workers=self._workers,
        )

    def _with_all_workers(
        self, prepare: Operator, batches: Sequence[int]
    ) -> tuple[float, list[object]]:
        """The time of one worker, and as many of the batches as are warmed up with and timed."""
        warm_up, trials = (-(-n // self._workers) for n in (self._warm_up, self._trials))
        indices = [batches[i % len(batches)] for i in range((warm_up + trials) * self._workers)]
        seconds: list[float] = []
        prepared: list[object] = []
        with ThreadPoolExecutor(self._workers) as pool:
            for each, batch in pool.map(partial(_timed, prepare), indices):
                seconds.append(each)
                if len(prepared) < self._warm_up + self._trials:
                    prepared.append(batch)
        return median(seconds[warm_up * self._workers :]), prepared


def _timed(operator: Operator, payload: object) -> tuple[float, object]:
    start = perf_counter()
    result = operator(payload)
    return perf_counter() - start, result
