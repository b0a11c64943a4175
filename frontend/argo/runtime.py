"""Runs a `train` in several processes, with the configuration that a tuner finds.

After ARGO (Lin et al., IPDPS 2024): `runtime = argo(n_search=20, epoch=200)`, then
`runtime.run(train, args=...)`. docs/argo.md has an example.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import tables
from .configurations import Configuration, configurations, default
from .cores import machine, masks
from .process import Ended, WorkerFailed
from .tuner import SHARE, Measured, Trials, tune

if TYPE_CHECKING:
    from .pool import Pool, Tell, Work

WARM = 5
"""Steps of a trial before those that are timed."""
TIMED = 30
"""Steps of a trial that are timed."""
AT_FIRST = 2
"""So many processes are started at once for trials."""

__all__ = ["Argo", "WorkerFailed", "argo"]


class Argo:
    """Tunes a training, then runs it.

    Args:
        n_search: At most so many trials, the default (one process, all cores) among them; 1: no
            tuning.
        epoch: Epochs of the training.
        least_samplers: 1: only configurations with cores that sample and do nothing else; 0: also
            those that sample where they train.
        most_processes: At most so many processes; None: as many as there are cores. No more than a
            batch has seeds.
        share: The trials may take so much of the time of the training. Where a loader of
            `gnnc.loader` among the arguments of `run` tells that this is less than one trial, there
            is none.
        table: A file for the trials. Where it is there, they are read and nothing is tuned: it is
            for one training on one machine.

    Raises:
        ValueError: A number is too small, naming it.
    """

    def __init__(
        self,
        n_search: int = 20,
        epoch: int = 200,
        *,
        least_samplers: int = 0,
        most_processes: int | None = None,
        share: float = SHARE,
        table: Path | None = None,
    ) -> None:
        for name, value in (("n_search", n_search), ("epoch", epoch)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if not share > 0:
            raise ValueError(f"share must be above 0, got {share}")
        self._n_search, self._epoch, self._share = n_search, epoch, share
        self._table = table
        self._machine = machine()
        usable = self._machine.usable
        self._choices = configurations(
            usable, least_samplers=least_samplers, most_processes=most_processes
        )
        self._default = default(usable, least_samplers=least_samplers)
        self._steps: int | None = None
        self.trials = Trials()
        """What was tried; filled by `run`."""
        self.configuration: Configuration | None = None
        """What the training ran with; set by `run`."""

    @property
    def tuning_share(self) -> float | None:
        """What the trials cost, of the time that the training takes with the best; None where
        nothing was tried, or the loader does not say how many steps an epoch has."""
        if self._steps is None or not self.trials.measured:
            return None
        return self.trials.share(self._steps)

    @property
    def cores(self) -> int:
        """How many there are to choose from."""
        return self._machine.usable

    def run(
        self,
        train: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        configuration: Configuration | None = None,
        tell: Tell | None = None,
    ) -> Any:
        """Tunes, trains, and returns what `train` returned in process 0, copied by pickle.

        Args:
            train: A function of a module (it is found by its name in new processes), called as
                `train(*args, **kwargs, worker=...)` with a :class:`.worker.Worker`; more than once
                in a process where there are trials.
            args: Tensors, arrays of NumPy from 64 KiB on, and what holds them (data of PyG, loaders
                of `gnnc.loader`) are put into shared memory once, and are the same memory in all
                processes; a module is copied in each; all else is pickled.
            kwargs: The same, by name, but no modules.
            configuration: Runs this one, without tuning.
            tell: Is given what the processes `worker.tell`, while they train.

        Raises:
            ValueError: `configuration` needs more cores than are usable, or the table is of other
                cores or damaged (:class:`.tables.BadTable`).
            OSError: The table cannot be read or written.
            RuntimeError: `train` does not go through `worker.steps`, so that nothing can be timed.
            WorkerFailed: A process raised an exception, or was killed. All have ended then, as
                after Ctrl-C.
        """
        from .pool import Pool, Work
        from .worker import Lengths

        work = Work(train, args, dict(kwargs or {}))
        if configuration is not None:
            masks(self._machine, configuration)  # or it is refused before anything is started
        with Pool(self._machine) as pool:
            self.configuration = configuration or self._tuned(pool, work)
            pool.shrink(self.configuration.processes)
            return pool.run(work, self.configuration, Lengths(self._epoch), tell)[0].value

    def _tuned(self, pool: Pool, work: Work) -> Configuration:
        """The best of the trials, which are read where there is a table of them."""
        from .worker import Lengths, stalls

        if self._table is not None and self._table.exists():
            self.trials = tables.load(self._table, self.cores)
            return self.trials.best
        if self._n_search == 1 or len(self._choices) == 1 or self._is_short(work):
            return self._default
        # The training needs one without trials too, and another core is idle meanwhile.
        pool.grow(min(AT_FIRST, max(x.processes for x in self._choices)))
        untried = True

        def measure(x: Configuration) -> Measured:
            nonlocal untried
            begun = time.monotonic()
            answers = pool.run(work, x, Lengths(self._epoch, WARM, TIMED))
            cost = time.monotonic() - begun
            if untried:  # what is read and compiled here no other process has to compile again
                cost -= max(a.until_first + stalls(a.seconds) for a in answers)
            untried = False
            return self._measured(answers, cost)

        self.trials = tune(
            measure,
            self._choices,
            self._default,
            self._n_search,
            steps=lambda: self._steps,
            share=self._share,
            preparing=lambda x: pool.start_seconds if x.processes > len(pool) else 0.0,
        )
        if self._table is not None:
            tables.save(self._table, self.trials, self.cores)
        return self.trials.best

    def _is_short(self, work: Work) -> bool:
        """Whether not even a trial of the default is within the share, as far as a loader of ours
        among the arguments tells."""
        from ..torch.loader.loader import Loader

        given = (*work.args, *work.options.values())
        of_epoch = next((len(x) for x in given if isinstance(x, Loader)), None)
        return of_epoch is not None and self._share * of_epoch * self._epoch < WARM + TIMED

    def _measured(self, answers: Sequence[Ended], cost: float) -> Measured:
        from .worker import summary

        if not all(a.seconds for a in answers):
            raise RuntimeError(
                f"train: a trial needs more than {WARM} steps, and had fewer; the batches have to"
                " come from worker.steps(loader)"
            )
        of_epoch = answers[0].of_epoch
        self._steps = None if of_epoch is None else of_epoch * self._epoch
        step, error = max(summary(a.seconds) for a in answers)
        return Measured(step, error, cost)


def argo(n_search: int = 20, epoch: int = 200, **options: Any) -> Argo:
    """An :class:`Argo`, by the name and with the arguments of the paper."""
    return Argo(n_search, epoch, **options)
