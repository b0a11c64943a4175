"""Ranks in memory that whoever starts them has made: they reduce, and see who does not come."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gnnc.runtime.ranks import together
from gnnc.runtime.ranks.errors import Stuck
from gnnc.runtime.ranks.rings import Rings


def run(size: int, work: Callable[[Rings], Any], patience: float = 60.0) -> list[Any]:
    """What each rank gives, or raises."""
    memory = np.frombuffer(mmap.mmap(-1, together.needed(size)), np.uint8)
    together.prepare(memory, size, patience)
    found: list[Any] = [None] * size

    def rank(k: int) -> None:
        try:
            found[k] = work(together.joined(memory, k, size))
        except Stuck as error:
            found[k] = error

    threads = [threading.Thread(target=rank, args=(k,)) for k in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("size", [2, 3])
def test_they_reduce_and_tell(size: int) -> None:
    def work(c: Rings) -> Any:
        total = c.all_reduce(np.arange(5) + c.rank, "sum").tolist()
        told = c.broadcast(("from", c.rank))
        c.finish()
        return total, told

    wanted = (np.arange(5) * size + sum(range(size))).tolist()
    assert run(size, work) == [(wanted, ("from", 0))] * size


def test_one_that_does_not_come_is_named() -> None:
    def work(c: Rings) -> None:
        if c.rank == 0:
            c.barrier()

    stuck, other = run(2, work, patience=0.3)
    assert isinstance(stuck, Stuck) and "rank 1 is stuck" in str(stuck)
    assert other is None
