"""Batches that threads make ahead: in order, bounded, with their errors, and gone when unused."""

import gc
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable

import pytest

from gnnc.runtime.prefetch import Prefetched


def wait_until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.005)
    return holds()


def alive() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("gnnc-loader")]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert wait_until(lambda: not alive())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("ahead", [1, 2, 9])
def test_items_come_in_order(workers: int, ahead: int):
    def make(i: int) -> int:
        time.sleep(0.001 * (i * 7 % 3))
        return i * i

    assert list(Prefetched(make, 30, workers, ahead)) == [i * i for i in range(30)]


def test_no_items():
    assert list(Prefetched(lambda i: i, 0, 2, 2)) == []


def test_no_more_are_made_than_there_is_room_for():
    made: list[int] = []
    items = Prefetched(lambda i: made.append(i) or i, 100, 2, 5)
    assert wait_until(lambda: len(made) == 5)
    time.sleep(0.05)
    assert sorted(made) == list(range(5))
    assert next(items) == 0 and wait_until(lambda: len(made) == 6)
    time.sleep(0.05)
    assert len(made) == 6
    items.close()
    with pytest.raises(StopIteration):
        next(items)


def failing_place(i: int) -> int:
    if i == 2:
        raise KeyError("lost")
    return i


def test_errors_come_in_place_of_their_item_with_their_trace():
    items = Prefetched(failing_place, 9, 2, 4)
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(KeyError, match="lost") as caught:
        next(items)
    text = "".join(traceback.format_exception(caught.value))
    assert "in failing_place" in text and "raised in a thread of the loader, by batch 2" in text
    assert list(items) == [] and wait_until(lambda: not alive())


def test_what_nobody_uses_ends():
    items = Prefetched(lambda i: i, 1000, 2, 3)
    assert next(items) == 0 and len(alive()) == 2
    del items
    gc.collect()
    assert wait_until(lambda: not alive())


def test_a_loop_that_is_left_ends_its_threads():
    for item in Prefetched(lambda i: i, 1000, 2, 3):
        if item == 4:
            break
    gc.collect()
    assert wait_until(lambda: not alive())


def test_an_iterator_within_a_cycle_is_collected_by_any_thread():
    gc.freeze()  # so that a collection has little to look at

    class Holder:
        pass

    for _ in range(20):
        holder = Holder()
        holder.me, holder.items = holder, Prefetched(lambda i: gc.collect(), 1000, 2, 3)
        next(holder.items)
        del holder
    # a collection does nothing while another thread is at one
    assert wait_until(lambda: gc.collect() >= 0 and not alive())


def test_interrupts_end_the_threads(monkeypatch: pytest.MonkeyPatch):
    gate = threading.Event()
    items = Prefetched(lambda i: gate.wait(20), 5, 1, 1)

    def interrupted() -> None:
        gate.set()
        raise KeyboardInterrupt

    monkeypatch.setattr(items._work, "next", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(items)
    assert wait_until(lambda: not alive())


EXIT = """
import sys, time
from gnnc.runtime.prefetch import Prefetched
items = Prefetched(lambda i: time.sleep(0.01), 1000, 2, 3)
next(items)
sys.exit(3)
"""

INTERRUPTED = """
import os, signal, threading, time
from gnnc.runtime.prefetch import Prefetched
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
def make(i):
    if i == 3:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
    return i
for item in Prefetched(make, 1000, 1, 1):
    pass
"""


@pytest.mark.parametrize("code, status", [(EXIT, 3), (INTERRUPTED, -2)])
def test_processes_end(code: str, status: int):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr
    assert status == 3 or done.stderr.rstrip().endswith("KeyboardInterrupt")


def test_a_fork_has_no_threads():
    items = Prefetched(lambda i: i, 10, 1, 2)
    items._process = os.getpid() + 1
    with pytest.raises(RuntimeError, match="made before a fork"):
        next(items)
    items._process = os.getpid()
    assert list(items) == list(range(10))


def test_a_thread_that_cannot_start(monkeypatch: pytest.MonkeyPatch):
    """The others end, though nobody has what would end them."""
    start = threading.Thread.start

    def starts(thread: threading.Thread) -> None:
        if thread.name == "gnnc-loader-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starts)
    with pytest.raises(RuntimeError, match="can't start"):
        Prefetched(lambda i: i, 100, 3, 1)


def test_bad_numbers():
    for workers, ahead in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="must be at least 1"):
            Prefetched(lambda i: i, 3, workers, ahead)


def test_threads_begin_with_what_they_are_told():
    began: list[int] = []
    begin = lambda: began.append(threading.get_ident())  # noqa: E731
    made = list(Prefetched(lambda _: threading.get_ident(), 40, 2, 4, begin))
    assert set(made) <= set(began) and len(began) == len(set(began)) <= 2


def test_an_error_of_what_threads_begin_with_is_raised():
    items = Prefetched(lambda i: i, 4, 1, 2, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        next(items)
