"""The communicator of this rank, wherever it runs: of a process that `gnnc launch` started, of a
thread that is a virtual rank, or of a process alone."""

from __future__ import annotations

import threading

from .alone import Alone
from .communicator import Communicator


class _Here(threading.local):
    """What belongs to this thread."""

    communicator: Communicator | None = None


_here = _Here()
_process: Communicator | None = None
_lock = threading.Lock()


def world() -> Communicator:
    """The communicator among all ranks."""
    global _process
    if _here.communicator is not None:
        return _here.communicator
    with _lock:
        if _process is None:
            _process = Alone()
        return _process


def rank() -> int:
    """The number of this rank among those that `gnnc launch` started, from 0; else 0."""
    return world().rank


def world_size() -> int:
    """How many ranks `gnnc launch` started; 1 in a process that it did not start."""
    return world().size


def set_of_process(communicator: Communicator) -> None:
    """Makes it what `world` gives in all threads of this process."""
    global _process
    with _lock:
        _process = communicator


def set_of_thread(communicator: Communicator) -> None:
    """Makes it what `world` gives in this thread."""
    _here.communicator = communicator
