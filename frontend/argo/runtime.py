"""Runs a `train` in several processes, with the configuration that a tuner finds.

After ARGO (Lin et al., IPDPS 2024): `runtime = argo(n_search=20, epoch=200)`, then
`runtime.run(train, args=...)`. docs/argo.md has an example.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from . import tables
from .configurations import Configuration, configurations, default
from .cores import Machine, machine, masks
from .process import Ended, Failed, Job, main
from .tuner import SHARE, Measured, Trials, tune

WARM = 5
"""Steps of a trial before those that are timed."""
TIMED = 30
"""Steps of a trial that are timed."""
GRACE_SECONDS = 0.3
"""After one process has failed, so long others have to say that they did so before."""
_THREADS = "OMP_NUM_THREADS"


class WorkerFailed(RuntimeError):
    """A process of the training failed; the message has its rank and its traceback."""


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
        share: The trials may take so much of the time of the training.
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
    def cores(self) -> int:
        """How many there are to choose from."""
        return self._machine.usable

    def run(
        self,
        train: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        configuration: Configuration | None = None,
    ) -> Any:
        """Tunes, trains, and returns what `train` returned in process 0, copied by pickle.

        Args:
            train: A function of a module (it is found by its name in new processes), called as
                `train(*args, **kwargs, worker=...)` with a :class:`.worker.Worker`.
            args: Tensors, and what holds tensors, are put into shared memory once, and are the same
                memory in all processes; a module is copied in each; all else is pickled.
            kwargs: The same, by name, but no modules.
            configuration: Runs this one, without tuning.

        Raises:
            ValueError: `configuration` needs more cores than are usable, or the table is of other
                cores or damaged (:class:`.tables.BadTable`).
            OSError: The table cannot be read or written.
            RuntimeError: `train` does not go through `worker.steps`, so that nothing can be timed.
            WorkerFailed: A process raised an exception, or was killed. All have ended then, as
                after Ctrl-C.
        """
        from .worker import Lengths

        options = dict(kwargs or {})
        if configuration is None:
            configuration = self._tuned(train, args, options)
        self.configuration = configuration
        lengths = Lengths(self._epoch)
        return _run(self._machine, train, args, options, configuration, lengths)[0].value

    def _tuned(
        self, train: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
    ) -> Configuration:
        """The best of the trials, which are read where there is a table of them."""
        from .worker import Lengths

        if self._table is not None and self._table.exists():
            self.trials = tables.load(self._table, self.cores)
            return self.trials.best
        if self._n_search == 1 or len(self._choices) == 1:
            return self._default

        def measure(x: Configuration) -> Measured:
            begun = time.monotonic()
            lengths = Lengths(self._epoch, WARM, TIMED)
            answers = _run(self._machine, train, args, options, x, lengths)
            return self._measured(answers, time.monotonic() - begun)

        self.trials = tune(
            measure,
            self._choices,
            self._default,
            self._n_search,
            steps=lambda: self._steps,
            share=self._share,
        )
        if self._table is not None:
            tables.save(self._table, self.trials, self.cores)
        return self.trials.best

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


def _run(
    found: Machine,
    train: Callable[..., Any],
    args: Sequence[Any],
    options: Mapping[str, Any],
    configuration: Configuration,
    lengths: Any,
) -> list[Ended]:
    """Runs all processes to their end: the answer of each."""
    import torch.multiprocessing as shared  # teaches pickle to send tensors as shared memory

    if shared.get_sharing_strategy() != "file_descriptor":
        raise RuntimeError(
            "torch.multiprocessing's sharing strategy has to be file_descriptor: shared memory that"
            " has a name outlives processes that are killed"
        )
    parts = masks(found, configuration)
    resource_tracker.ensure_running()  # before this thread is bound to the cores of one process
    with tempfile.TemporaryDirectory(prefix="gnnc-argo-") as folder:
        meeting = Path(folder) / "meeting"
        job = Job(train, args, options, configuration, parts, lengths, meeting)
        processes: list[SpawnProcess] = []
        answers: list[Connection] = []
        try:
            for rank, part in enumerate(parts):
                with _bound(part.trainers):
                    process, answer = _start(job, rank)
                processes.append(process)
                answers.append(answer)
            return _answers(processes, answers)
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
            for process in processes:
                process.join()
            for answer in answers:
                answer.close()


def _start(job: Job, rank: int) -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=main, args=(job, rank, theirs), name=f"gnnc-argo-{rank}")
    try:
        process.start()
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


@contextmanager
def _bound(cores: Sequence[int]) -> Generator[None]:
    """A process that is started in here begins with these cores and as many threads: OpenMP reads
    both once."""
    mask, threads = os.sched_getaffinity(0), os.environ.get(_THREADS)
    os.sched_setaffinity(0, cores)
    os.environ[_THREADS] = str(len(cores))
    try:
        yield
    finally:
        os.sched_setaffinity(0, mask)
        if threads is None:
            del os.environ[_THREADS]
        else:
            os.environ[_THREADS] = threads


def _answers(processes: Sequence[SpawnProcess], pipes: Sequence[Connection]) -> list[Ended]:
    """What all say in the end. Raises WorkerFailed as soon as one has failed."""
    found: dict[int, Ended] = {}
    failed: dict[int, Failed | None] = {}
    deadline: float | None = None
    while len(found) + len(failed) < len(pipes):
        left = {pipes[r]: r for r in range(len(pipes)) if r not in found and r not in failed}
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = wait(list(left), patience)
        if not ready:
            break
        for pipe in ready:
            assert isinstance(pipe, Connection)
            answer = _read(pipe)
            if isinstance(answer, Ended):
                found[left[pipe]] = answer
            else:
                failed[left[pipe]] = answer
        if failed and deadline is None:
            deadline = time.monotonic() + GRACE_SECONDS
    if failed:
        raise WorkerFailed(_told(processes, failed))
    return [found[r] for r in range(len(pipes))]


def _read(pipe: Connection) -> Ended | Failed | None:
    """None: the process ended without a word."""
    try:
        return pickle.loads(pipe.recv_bytes())
    except EOFError:
        return None


def _told(processes: Sequence[SpawnProcess], failed: Mapping[int, Failed | None]) -> str:
    """Why: others fail because one is gone, so that one which said nothing is the cause; else the
    one that was first."""
    silent = [r for r, f in failed.items() if f is None]
    if silent:
        processes[silent[0]].join(GRACE_SECONDS)
        code = processes[silent[0]].exitcode
        how = f"was killed by signal {-code}" if code and code < 0 else f"ended with status {code}"
        return f"process {silent[0]} of {len(processes)} {how}; all were stopped"
    rank, first = min(((r, f) for r, f in failed.items() if f), key=lambda x: x[1].at)
    return f"process {rank} of {len(processes)} failed; all were stopped\n{first.text}"
