"""Starts a script as several ranks on this machine, by MPI's own launcher, and ends all of them
when one fails, is killed, or keeps others waiting.

MPICH's launcher puts every rank into a session of its own, so that no signal to a group reaches
them. They are ended by the numbers of their processes; and by the system when a parent is gone.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path

from . import started
from .board import PATIENCE, Board, State
from .diagnosis import Diagnosis, Looker, diagnose
from .reports import Failure, board_file, output_file, stack_file
from .started import TRANSPORTS, Transport

WATCH_SECONDS = 0.05
"""How often the board is looked at."""
GRACE_SECONDS = 0.3
"""How long other ranks have to say that they failed as well, or to write where they are."""
START_PATIENCE = 60.0
"""Seconds that a rank has until it first calls others: one may import faster than another."""
MARGIN = 1.0
"""Ranks that wait see by themselves that they do so in vain; for those that cannot, so many seconds
later their launcher does."""
LINES = 30
"""How many of the last lines of a rank's output are shown."""


class CannotLaunch(Exception):
    """Ranks cannot be started here; the message says why."""


def mpiexec() -> Path:
    """MPI's launcher, for ranks in Python.

    Raises:
        CannotLaunch: there is none, or no mpi4py.
    """
    if find_spec("mpi4py") is None:
        raise CannotLaunch('ranks need MPI, and there is no mpi4py: pip install "gnnc[mpi]"')
    return tool("mpiexec")


def tool(name: str) -> Path:
    """A tool of MPI, its launcher `mpiexec` or its C compiler `mpicc`: that of the package mpich,
    else one beside Python, else on PATH.

    Raises:
        CannotLaunch: there is none.
    """
    try:
        listed = [Path(str(f.locate())) for f in files("mpich") or [] if f.name == name]
    except PackageNotFoundError:
        listed = []
    for path in (*listed, Path(sys.executable).parent / name):
        if path.is_file():
            return path.resolve()
    on_path = shutil.which(name)
    if on_path is None:
        raise CannotLaunch(f'ranks need MPI, and there is no {name}: pip install "gnnc[mpi]"')
    return Path(on_path)


def shares(ranks: int, threads: int | None) -> tuple[int, str]:
    """How many threads each rank has (`threads`, else an equal share of the cores), and the cores
    of each, as `0,1;2,3`: none where there are too few for all threads."""
    cores = sorted(os.sched_getaffinity(0))
    each = threads or max(1, len(cores) // ranks)
    if ranks * each > len(cores):
        return each, ""
    parts = [cores[k * each : (k + 1) * each] for k in range(ranks)]
    return each, ";".join(",".join(map(str, part)) for part in parts)


def launch(
    ranks: int,
    arguments: Sequence[str],
    *,
    threads: int | None = None,
    patience: float = PATIENCE,
    transport: Transport = TRANSPORTS[0],
) -> int:
    """Runs a script (its path, then its arguments) as so many ranks and returns 0 when all have
    ended well; else 1, after it has told on standard error which rank failed, in which stage, and
    its traceback. What rank 0 prints is printed. `transport` is what carries messages.

    Raises:
        CannotLaunch: there is no MPI, or no script.
        ValueError: a number is too small, naming the argument.
    """
    for name, value in (("ranks", ranks), ("threads", threads)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if not patience > 0:
        raise ValueError(f"patience must be a number of seconds above 0, got {patience}")
    if not Path(arguments[0]).is_file():
        raise CannotLaunch(f"there is no script {arguments[0]}")
    each, cores = shares(ranks, threads)
    command = [str(mpiexec()), "-n", str(ranks), sys.executable, "-m", started.__name__]
    with tempfile.TemporaryDirectory(prefix="gnnc-ranks-", ignore_cleanup_errors=True) as name:
        board = Board.create(board_file(Path(name)), ranks, max(patience, START_PATIENCE))
        environment = {
            started.FOLDER: name,
            started.CORES: cores,
            started.PATIENCE: str(patience),
            started.TRANSPORT: transport,
            "OMP_NUM_THREADS": str(each),
        }
        before = signal.signal(signal.SIGTERM, _interrupt)
        process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
            start_new_session=True,  # Ctrl-C reaches this process alone, which ends all
        )
        try:
            return _Watch(process, board, Path(name)).until_the_end()
        finally:
            _end(process, board)
            signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: object) -> None:
    """SIGTERM is taken as Ctrl-C is."""
    raise KeyboardInterrupt


def _end(process: subprocess.Popen[bytes], board: Board) -> None:
    """Ends all processes that still run."""
    if process.poll() is None:
        for status in board.read_all():
            if status.process and status.state in (State.WORKING, State.WAITING):
                _signal(status.process, signal.SIGKILL)
        process.kill()  # its helpers end with it, and the ranks' parents with them
        process.wait()


def _signal(process: int, number: signal.Signals) -> bool:
    """Whether the process was there to get it."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


class _Watch:
    """Watches ranks until they end, and tells why if they do so badly."""

    def __init__(self, process: subprocess.Popen[bytes], board: Board, folder: Path) -> None:
        self._process = process
        self._board = board
        self._looker = Looker(board)
        self._folder = folder

    def until_the_end(self) -> int:
        """The exit status."""
        while True:
            status = self._process.poll()
            if self._failed():
                time.sleep(GRACE_SECONDS)
                self._tell_failures()
                return 1
            if status is not None:
                return self._mpi_ended(status)
            if (found := self._stuck()) is not None:
                self._tell_stuck(found.text, found.culprits, {})
                return 1
            time.sleep(WATCH_SECONDS)

    def _failed(self) -> list[int]:
        """The ranks that failed, in the order in which they did."""
        statuses = self._board.read_all()
        failed = [r for r, s in enumerate(statuses) if s.state in (State.FAILED, State.ENDED)]
        return sorted(failed, key=lambda r: statuses[r].since)

    def _stuck(self) -> Diagnosis | None:
        """Why some rank waits in vain without having seen it."""
        statuses, now = self._looker.look()
        found = (diagnose(statuses, r, now - MARGIN) for r in range(self._board.size))
        return next((f for f in found if f is not None), None)

    def _mpi_ended(self, status: int) -> int:
        if status == 0:
            return 0
        self._tell(f"MPI's launcher ended with status {status}, before the ranks")
        for rank, found in enumerate(self._board.read_all()):
            self._tell(f'rank {rank} was in stage "{found.stage}"')
        return 1

    def _tell_failures(self) -> None:
        """Of the rank that failed first all, of others that failed by themselves a line."""
        failures = {r: Failure.read(self._folder, r) for r in self._failed()}
        causes = [r for r, failure in failures.items() if not failure.follows]
        first, *others = causes or list(failures)
        failure = failures[first]
        if failure.stuck:
            self._tell_stuck(failure.line, failure.stuck, failures)
            return
        self._tell(f'rank {first} failed in stage "{self._board.read(first).stage}":')
        if first != 0:
            self._show_end(output_file(self._folder, first).read_text(errors="replace"))
        sys.stderr.write(failure.text)
        for rank in others:
            stage = self._board.read(rank).stage
            self._tell(f'rank {rank} failed as well, in stage "{stage}": {failures[rank].line}')
        self._tell("all ranks were stopped")

    def _tell_stuck(self, line: str, ranks: Sequence[int], failures: Mapping[int, Failure]) -> None:
        """Why ranks are stuck, and where: those that saw it say so, others can be asked."""
        self._tell(line)
        for rank in ranks:
            if rank in failures:
                self._tell(f'rank {rank} stopped in stage "{self._board.read(rank).stage}":')
                sys.stderr.write(failures[rank].text)
        self._show_stacks(ranks)
        self._tell("all ranks were stopped")

    def _show_stacks(self, ranks: Iterable[int]) -> None:
        """Where those of the ranks are that still run."""
        statuses = {r: self._board.read(r) for r in ranks}
        asked = [
            r
            for r, s in statuses.items()
            if s.state in (State.WORKING, State.WAITING) and _signal(s.process, signal.SIGUSR1)
        ]
        if asked:
            time.sleep(GRACE_SECONDS)
        for rank in asked:
            self._tell(f'rank {rank} was in stage "{statuses[rank].stage}", and there')
            self._show_end(stack_file(self._folder, rank).read_text(errors="replace"))

    def _show_end(self, text: str) -> None:
        sys.stderr.writelines(text.splitlines(keepends=True)[-LINES:])

    def _tell(self, text: str) -> None:
        print(f"gnnc launch: {text}", file=sys.stderr)
