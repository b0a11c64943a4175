"""What runs in a spawned process: one training after another, on other cores each time."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from ...runtime.ranks.started import die_with
from .configurations import Configuration
from .cores import Masks, bind

if TYPE_CHECKING:
    import torch

    from .worker import Lengths

THREADS = "OMP_NUM_THREADS"


class WorkerFailed(RuntimeError):
    """A process of the training failed; the message has its rank and its traceback."""


@dataclass(frozen=True)
class Job:
    """What a process does of a training."""

    train: Callable[..., Any]
    args: Sequence[Any]
    options: Mapping[str, Any]
    rank: int
    configuration: Configuration
    masks: Masks
    lengths: Lengths
    shared: torch.Tensor | None
    """Memory for what the processes say to each other (runtime/ranks/together.py); None: this one
    is alone."""


@dataclass(frozen=True)
class Ready:
    """A process has started, and waits for a job."""


@dataclass(frozen=True)
class Told:
    """What a process says while it trains."""

    value: Any


@dataclass(frozen=True)
class Ended:
    """How a training ended well."""

    seconds: Sequence[float]
    of_epoch: int | None
    until_first: float
    """Seconds until the end of the first step, with all that was read and compiled for it."""
    value: Any = None


@dataclass(frozen=True)
class Failed:
    """What a process raised, and when (of the system's monotonic clock)."""

    text: str
    at: float


def main(pipe: Connection) -> None:
    """Runs the jobs that come, until the pipe is closed. Answers with a :class:`Ready`, then for
    each with an :class:`Ended`, or once with a :class:`Failed`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this one ends it
    parent = multiprocessing.parent_process()
    assert parent is not None and parent.pid is not None
    die_with(parent.pid)
    import torch

    begun = torch.get_rng_state()
    _send(pipe, Ready())
    while (message := _next(pipe)) is not None:
        try:
            torch.set_rng_state(begun)  # a training does not depend on those before
            said = pickle.dumps(_train(pickle.loads(message), pipe))  # by value
            _clean()
        except BaseException:  # whatever it is ends this process, and so all
            _send(pipe, Failed(traceback.format_exc(), time.monotonic()))
            os._exit(1)  # the end of torch's group would wait for the others
        pipe.send_bytes(said)


def _next(pipe: Connection) -> bytes | None:
    try:
        return pipe.recv_bytes()
    except EOFError:
        return None


def _send(pipe: Connection, value: object) -> None:
    pipe.send_bytes(pickle.dumps(value))


def _train(job: Job, pipe: Connection) -> Ended:
    import torch

    from ...runtime.ranks.alone import Alone
    from ...runtime.ranks.together import joined
    from .worker import TrialOver, Worker

    bind(job.masks.trainers)
    os.environ[THREADS] = str(job.configuration.trainers)  # for processes that it starts
    torch.set_num_threads(job.configuration.trainers)
    size = job.configuration.processes
    ranks = Alone() if job.shared is None else joined(job.shared.numpy(), job.rank, size)

    def told(value: Any) -> None:
        _send(pipe, Told(value))

    worker = Worker(job.configuration, job.masks, job.lengths, ranks, told)
    value = None
    try:
        value = job.train(*map(_own, job.args), **job.options, worker=worker)
    except TrialOver:
        pass
    ranks.finish()
    timed = worker.timed
    value = value if job.rank == 0 and not worker.trial else None
    return Ended(timed.seconds, timed.of_epoch, timed.until_first, value)


def _own(value: Any) -> Any:
    """A model of this process: the parameters that came are memory that all share."""
    import torch

    return copy.deepcopy(value) if isinstance(value, torch.nn.Module) else value


def _clean() -> None:
    """Nothing of a training is left for the next: threads of loaders, models, programs."""
    if (dynamo := sys.modules.get("torch._dynamo")) is not None:  # to import it takes a second
        dynamo.reset()
    gc.collect()
