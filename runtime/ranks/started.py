"""A rank's process, as `gnnc launch` has MPI start it: `python -m gnnc.runtime.ranks.started`.

It is two processes. The script runs in a child; its parent waits, notes on the board how the child
ended, and stays if it ended badly: MPI's launcher kills all ranks when a process that it started
does so, before anybody could say which was the first. Nothing heavy is imported before they part.
"""

from __future__ import annotations

import ctypes
import faulthandler
import io
import os
import runpy
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NoReturn, get_args

from .board import Board, Note, State
from .reports import Failure, board_file, output_file, stack_file

FOLDER, CORES, PATIENCE = "GNNC_RANKS_FOLDER", "GNNC_RANKS_CORES", "GNNC_RANKS_PATIENCE"
"""Environment: where the ranks' files are; the cores of each, as `0,1;2,3`, or nothing; seconds."""
TRANSPORT = "GNNC_RANKS_TRANSPORT"
"""Environment: what carries messages."""
Transport = Literal["memory", "mpi"]
"""Memory that all ranks share, or MPI."""
TRANSPORTS: tuple[Transport, ...] = get_args(Transport)
_RANK, _SIZE = "PMI_RANK", "PMI_SIZE"
"""Environment that MPICH's launcher sets."""
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def main(arguments: Sequence[str]) -> NoReturn:
    """Runs a script (its path, then its arguments) as one rank."""
    folder = Path(os.environ[FOLDER])
    rank, size = int(os.environ[_RANK]), int(os.environ[_SIZE])
    die_with(os.getppid())
    board = Board.open(board_file(folder), size)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with(parent)
        _run(arguments, folder, rank, board)
    _, status = os.waitpid(child, 0)
    state = board.read(rank).state
    if state == State.FINISHED and status == 0:
        sys.exit(0)
    if state != State.FAILED:
        how = (
            f"was killed by signal {os.WTERMSIG(status)}"
            if os.WIFSIGNALED(status)
            else f"ended by itself, with status {os.WEXITSTATUS(status)}"
        )
        line = f"its process {child} {how}"
        Failure(line + "\n", line).write(folder, rank)
        Note(board, rank, child).ended(State.ENDED)
    while True:  # until the launcher, which sees it on the board, ends all
        time.sleep(60)


def die_with(parent: int) -> None:
    """Has the system kill this process when its parent is gone."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before
        os._exit(1)


def _run(arguments: Sequence[str], folder: Path, rank: int, board: Board) -> NoReturn:
    """The script's process."""
    if cores := os.environ[CORES]:
        os.sched_setaffinity(0, [int(core) for core in cores.split(";")[rank].split(",")])
    with open(os.devnull, "rb") as nothing:  # MPI's launcher leaves a pipe that does not end
        os.dup2(nothing.fileno(), 0)
    if rank != 0:
        with open(output_file(folder, rank), "wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
    for stream in (sys.stdout, sys.stderr):  # pipes or files: lines shall not wait in buffers
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(line_buffering=True)
    stack = open(stack_file(folder, rank), "w")  # open until the process ends
    faulthandler.register(signal.SIGUSR1, file=stack)
    note = Note(board, rank, os.getpid())
    note.working()
    try:
        _script(arguments, board)
    except BaseException as error:  # whatever it is ends this rank, and so all
        Failure.of(error, arguments[0]).write(folder, rank)
        note.ended(State.FAILED)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # MPI's end would wait for the others
    sys.exit(0)


def _script(arguments: Sequence[str], board: Board) -> None:
    """Runs it, then waits until all ranks have come to the end."""
    from . import mpi, rings, world  # not before the processes part: numpy has threads

    by_mpi = mpi.Mpi(board, float(os.environ[PATIENCE]))
    share = by_mpi.size > 1 and os.environ[TRANSPORT] == "memory"
    communicator = rings.among(by_mpi) if share else by_mpi
    world.set_of_process(communicator)
    sys.argv = list(arguments)
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    communicator.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
