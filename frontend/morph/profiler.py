"""The median time of every operator, measured on batches of the epoch itself."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from time import perf_counter

from .plan import Times
from .registry import ACCELERATOR, ACCELERATOR_AND_LINK, CPU, LINK, Operator, Phase, Registry


class Profiler:
    """Times a registry's operators.

    `trials` batches are timed after `warm_up` untimed ones; the CPU's are prepared by all
    `workers` at once, as in an epoch, because workers share caches and memory.
    """

    def __init__(
        self, registry: Registry, *, workers: int = 1, warm_up: int = 2, trials: int = 5
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

    def measure(self, batches: Sequence[int]) -> Times:
        """The times over `batches`, repeated where there are too few.

        The step is timed on the batches too: it trains, so measure before the first epoch with
        a step that may be undone, or count these as trained. Raises ValueError where `batches`
        is empty, KeyError where an operator is missing, and what an operator raises.
        """
        if not batches:
            raise ValueError("batches: at least one is needed to measure")
        prepare = self._registry.get(Phase.PREPARE, CPU)
        move = self._registry.get(Phase.MOVE, LINK)
        prepare_there = self._registry.get(Phase.PREPARE, ACCELERATOR_AND_LINK)
        train = self._registry.get(Phase.TRAIN, ACCELERATOR)
        count = self._warm_up + self._trials
        indices = [batches[i % len(batches)] for i in range(count)]
        cpu = self._with_all_workers(prepare, batches)
        # One batch at a time, so that profiling holds no more memory than a step.
        moves: list[float] = []
        preparations: list[float] = []
        steps: list[float] = []
        for index in indices:
            seconds, moved = _timed(move, prepare(index))
            moves.append(seconds)
            seconds, _ = _timed(prepare_there, index)
            preparations.append(seconds)
            steps.append(_timed(train, moved)[0])
        kept = slice(self._warm_up, None)
        return Times(
            cpu=cpu,
            move=median(moves[kept]),
            accelerator=median(preparations[kept]),
            train=median(steps[kept]),
            workers=self._workers,
        )

    def _with_all_workers(self, prepare: Operator, batches: Sequence[int]) -> float:
        warm_up = self._warm_up * self._workers
        count = warm_up + self._trials * self._workers
        with ThreadPoolExecutor(self._workers) as pool:
            indices = (batches[i % len(batches)] for i in range(count))
            seconds = list(pool.map(partial(_seconds, prepare), indices))
        return median(seconds[warm_up:])


def _timed(operator: Operator, payload: object) -> tuple[float, object]:
    start = perf_counter()
    result = operator(payload)
    return perf_counter() - start, result


def _seconds(operator: Operator, payload: object) -> float:
    return _timed(operator, payload)[0]
