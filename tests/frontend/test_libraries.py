"""What gnnc knows of libraries is installed by one thread at a time."""

from __future__ import annotations

import time
from threading import Barrier, Thread

import pytest

from gnnc.frontend.torch import libraries


def test_threads_wait_for_what_another_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that found nothing installed registered the same rule twice, or traced without it."""
    inside, most, begin = 0, 0, Barrier(3)

    def slow() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.01)
        inside -= 1

    def called() -> None:
        begin.wait()
        libraries.install()

    monkeypatch.setattr(libraries.pyg, "install", slow)
    threads = [Thread(target=called) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
