"""Spawned processes that run one training after another.

To start one takes seconds, most of them to import torch, and a trial takes one: so processes that
are there are bound to other cores, and no more are started than a configuration needs.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .configurations import Configuration
from .cores import Machine, masks
from .process import THREADS, Ended, Failed, Job, Ready, Told, WorkerFailed, main
from .sharing import Sharing

if TYPE_CHECKING:
    import torch

    from .worker import Lengths

GRACE_SECONDS = 0.3
"""After one process has failed, so long others have to say that they did so before."""
END_SECONDS = 5.0
"""So long processes without a job have to end."""
PATIENCE = 1800.0
"""So many seconds processes wait for one that does something else than the others, who evaluates,
say: a call that only some make ends with an error after that."""

Tell = Callable[[Any], None]


@dataclass(frozen=True)
class Work:
    """What is trained: `train(*args, **options, worker=...)`."""

    train: Callable[..., Any]
    args: Sequence[Any]
    options: Mapping[str, Any]


class Pool:
    """Processes on the cores of a machine; use as a context manager, which ends them."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._sharing = Sharing()
        self._processes: list[SpawnProcess] = []
        self._pipes: list[Connection] = []
        self.start_seconds = 0.0
        """How long processes took to start when some last did; 0: none did yet."""

    def __len__(self) -> int:
        return len(self._processes)

    def grow(self, count: int) -> None:
        """Starts processes until there are so many, and waits until they are ready.

        Raises:
            WorkerFailed: One ended before. All have ended then.
        """
        begun, first = time.monotonic(), len(self)
        if first >= count:
            return
        while len(self) < count:
            process, pipe = _start(len(self))
            self._processes.append(process)
            self._pipes.append(pipe)
        self._answers(range(first, count), Ready, None)
        self.start_seconds = time.monotonic() - begun

    def shrink(self, count: int) -> None:
        """Ends processes until there are no more than so many."""
        ended, self._processes = self._processes[count:], self._processes[:count]
        pipes, self._pipes = self._pipes[count:], self._pipes[:count]
        for pipe in pipes:
            pipe.close()  # they read its end
        deadline = time.monotonic() + END_SECONDS
        for process in ended:
            process.join(max(0.0, deadline - time.monotonic()))
        _kill(ended)

    def run(
        self,
        work: Work,
        configuration: Configuration,
        lengths: Lengths,
        tell: Tell | None = None,
    ) -> list[Ended]:
        """Runs a training to its end: the answer of each of its processes.

        Args:
            tell: Is given what processes tell on the way.

        Raises:
            ValueError: The configuration needs more cores than are usable.
            WorkerFailed: A process failed. All have ended then.
        """
        parts = masks(self._machine, configuration)
        self.grow(configuration.processes)
        shared = _shared(len(parts))
        for rank, part in enumerate(parts):
            job = Job(
                *(work.train, work.args, work.options),
                *(rank, configuration, part, lengths, shared),
            )
            self._send(rank, self._sharing.message(job))
        return self._answers(range(len(parts)), Ended, tell)

    def _send(self, rank: int, message: bytes) -> None:
        try:
            self._pipes[rank].send_bytes(message)
        except OSError as error:  # it was killed while it had nothing to do
            failed = _told(self._processes, len(self), {rank: None})
            self.kill()
            raise WorkerFailed(failed) from error

    def _answers(self, ranks: Sequence[int], kind: type[Any], tell: Tell | None) -> list[Any]:
        """What these say in the end. Raises WorkerFailed as soon as one has failed."""
        found: dict[int, Any] = {}
        failed: dict[int, Failed | None] = {}
        deadline: float | None = None
        while len(found) + len(failed) < len(ranks):
            left = {self._pipes[r]: r for r in ranks if r not in found and r not in failed}
            patience = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = wait(list(left), patience)
            if not ready:
                break
            for pipe in ready:
                assert isinstance(pipe, Connection)
                answer = _read(pipe)
                if isinstance(answer, Told):
                    if tell is not None:
                        tell(answer.value)
                elif isinstance(answer, kind):
                    found[left[pipe]] = answer
                else:
                    assert answer is None or isinstance(answer, Failed)
                    failed[left[pipe]] = answer
            if failed and deadline is None:
                deadline = time.monotonic() + GRACE_SECONDS
        if failed:
            said = _told(self._processes, max(ranks) + 1, failed)
            self.kill()
            raise WorkerFailed(said)
        return [found[r] for r in ranks]

    def kill(self) -> None:
        """Ends all processes, whatever they are at."""
        _kill(self._processes)
        for pipe in self._pipes:
            pipe.close()
        self._processes, self._pipes = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.shrink(0)
        finally:
            self.kill()


def _shared(size: int) -> torch.Tensor | None:
    """Memory by which so many processes talk; None: there is one alone."""
    if size == 1:
        return None
    import torch

    from ...runtime.ranks import together

    memory = torch.zeros(together.needed(size), dtype=torch.uint8)
    memory.share_memory_()
    together.prepare(memory.numpy(), size, PATIENCE)
    return memory


def _start(rank: int) -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=main, args=(theirs,), name=f"gnnc-argo-{rank}")
    try:
        with _one_thread():
            process.start()
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


@contextmanager
def _one_thread() -> Generator[None]:
    """Libraries with threads of their own (NumPy's) read this once, in processes started in here;
    torch and compiled code are told anew by every job."""
    threads = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    try:
        yield
    finally:
        if threads is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = threads


def _kill(processes: Sequence[SpawnProcess]) -> None:
    for process in processes:
        if process.is_alive():
            process.kill()
    for process in processes:
        process.join()


def _read(pipe: Connection) -> object:
    """None: the process ended without a word."""
    try:
        return pickle.loads(pipe.recv_bytes())
    except (EOFError, ConnectionResetError):
        return None


def _told(
    processes: Sequence[SpawnProcess], count: int, failed: Mapping[int, Failed | None]
) -> str:
    """Why: others fail because one is gone, so that one which said nothing is the cause; else the
    one that was first."""
    silent = [r for r, f in failed.items() if f is None]
    if silent:
        processes[silent[0]].join(GRACE_SECONDS)
        code = processes[silent[0]].exitcode
        how = f"was killed by signal {-code}" if code and code < 0 else f"ended with status {code}"
        return f"process {silent[0]} of {count} {how}; all were stopped"
    rank, first = min(((r, f) for r, f in failed.items() if f), key=lambda x: x[1].at)
    return f"process {rank} of {count} failed; all were stopped\n{first.text}"
