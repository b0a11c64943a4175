"""What runs in a spawned process. Nothing here imports torch before the process has its cores: it
inherits them from the thread that starts it, and arguments that need torch are read after that.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.ranks.started import die_with
from .configurations import Configuration
from .cores import Masks

if TYPE_CHECKING:
    from .worker import Lengths


@dataclass(frozen=True)
class Job:
    """What all processes of a training do."""

    train: Callable[..., Any]
    args: Sequence[Any]
    options: Mapping[str, Any]
    configuration: Configuration
    masks: Sequence[Masks]
    lengths: Lengths
    meeting: Path
    """A file in which they find each other; nothing is there when the first comes."""


@dataclass(frozen=True)
class Ended:
    """How a process ended well."""

    seconds: Sequence[float]
    of_epoch: int | None
    value: Any = None


@dataclass(frozen=True)
class Failed:
    """What a process raised, and when (of the system's monotonic clock)."""

    text: str
    at: float


def main(job: Job, rank: int, answer: Connection) -> None:
    """Runs `train` as one process, and answers with an :class:`Ended` or a :class:`Failed`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this one ends it
    parent = multiprocessing.parent_process()
    assert parent is not None and parent.pid is not None
    die_with(parent.pid)
    try:
        said = pickle.dumps(_train(job, rank))  # by value: this process ends soon
    except BaseException:  # whatever it is ends this process, and so all
        failed = Failed(traceback.format_exc(), time.monotonic())
        answer.send_bytes(pickle.dumps(failed))
        os._exit(1)  # the end of torch's group would wait for the others
    answer.send_bytes(said)


def _train(job: Job, rank: int) -> Ended:
    import torch

    from .worker import TrialOver, Worker, leave, meet

    torch.set_num_threads(job.configuration.trainers)
    meet(job.meeting, rank, job.configuration.processes)
    worker, value = Worker(rank, job.configuration, job.masks[rank], job.lengths), None
    try:
        value = job.train(*map(_own, job.args), **job.options, worker=worker)
    except TrialOver:
        pass
    leave(job.configuration.processes)
    return Ended(
        worker.timed.seconds,
        worker.timed.of_epoch,
        value if rank == 0 and not worker.trial else None,
    )


def _own(value: Any) -> Any:
    """A model of this process: the parameters that came are memory that all share."""
    import torch

    return copy.deepcopy(value) if isinstance(value, torch.nn.Module) else value
