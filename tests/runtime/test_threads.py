import os

import pytest

from gnnc.runtime.cpu import threads


@pytest.fixture(autouse=True)
def default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threads, "_host", None)  # torch's, where another test has imported it
    yield
    threads.set_num_threads(None)


def test_follows_openmp(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7,2")
    assert threads.num_threads() == 7


@pytest.mark.parametrize("value", ["", "0", "many"])
def test_default_is_the_cores_we_may_use(monkeypatch: pytest.MonkeyPatch, value: str):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert threads.num_threads() == len(os.sched_getaffinity(0))


def test_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    threads.set_num_threads(3)
    assert threads.num_threads() == 3
    threads.set_num_threads(None)
    assert threads.num_threads() == 7
    with pytest.raises(ValueError, match="at least 1, got 0"):
        threads.set_num_threads(0)


def test_follows_a_host():
    threads.follow(lambda: 5)
    assert threads.num_threads() == 5
    threads.set_num_threads(3)
    assert threads.num_threads() == 3


def test_one_thread_after_a_fork():
    child = os.fork()
    if child == 0:
        os._exit(threads.num_threads())
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 1
