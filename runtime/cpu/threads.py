"""How many threads compiled code uses. The number is passed to every C function, so no global state
of OpenMP is changed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

_lock = threading.Lock()
_chosen: int | None = None
_host: Callable[[], int] | None = None
_forked = False


def num_threads() -> int:
    """The number of threads that compiled code uses now.

    It is what :func:`set_num_threads` was given, else what :func:`follow` was given says (torch's
    own setting, once torch is in use), else the first number of ``OMP_NUM_THREADS``, else the
    number of cores that this process may run on. In a forked child it is 1: an OpenMP team that was
    started in the parent cannot be used there.
    """
    if _forked:
        return 1
    if _chosen is not None:
        return _chosen
    return _host() if _host is not None else _default()


def follow(host: Callable[[], int] | None) -> None:
    """Let `host` say the number of threads where none was fixed; ``None`` ends that."""
    global _host
    with _lock:
        _host = host


def set_num_threads(count: int | None) -> None:
    """Fix the number of threads, or return to the default with ``None``. Raises ``ValueError`` for
    a count below 1.
    """
    global _chosen
    if count is not None and count < 1:
        raise ValueError(
            f"the number of threads must be at least 1, got {count}; pass None for the default"
        )
    with _lock:
        _chosen = count


def _default() -> int:
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdigit() and int(first) > 0:
        return int(first)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _after_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
