"""Ranks find out together whether they reach each other's memory, and say the same."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from gnnc.runtime.emulator.memory import EmulatedMemory
from gnnc.runtime.memory import CannotOpen, Handle
from gnnc.runtime.ranks import reachable, virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.reachable import why_unreachable
from gnnc.runtime.ranks.world import world


def found(memory: Any, ranks: int = 3, how: Any = lambda rank: "emulator") -> list[str | None]:
    """What ranks find, with the memory that each has."""

    def work(c: Communicator) -> str | None:
        return why_unreachable(c, how(c.rank), memory(c.rank))

    return virtual.run(ranks, work)


def test_all_reach_all() -> None:
    assert found(lambda rank: EmulatedMemory()) == [None] * 3


def test_a_rank_that_has_nothing_to_show() -> None:
    said = found(lambda rank: "its programs read none" if rank == 2 else EmulatedMemory())
    assert said == ["its programs read none (rank 2)"] * 3


def test_memory_that_cannot_be_exported() -> None:
    class Pooled(EmulatedMemory):
        def export(self, address: int) -> Handle | None:
            return None

    said = found(lambda rank: Pooled() if rank == 1 else EmulatedMemory())
    assert said == ["other processes cannot open memory of cpu (rank 1)"] * 3


def test_ranks_that_run_other_programs() -> None:
    said = found(lambda rank: EmulatedMemory(), how=lambda rank: ("emulator", "cuda")[rank % 2])
    assert said == ["programs run by emulator on rank 0 and by cuda on rank 1"] * 3


def test_two_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of a process is another process there."""

    class Boot:
        def read_text(self) -> str:
            return str(world().rank == 2)

    monkeypatch.setattr(reachable, "_BOOT", Boot())
    assert found(lambda rank: EmulatedMemory()) == ["ranks 0 and 2 are on two machines"] * 3


def test_the_first_that_cannot_open_is_named_and_why() -> None:
    class Far(EmulatedMemory):
        def open(self, name: bytes) -> Any:
            raise CannotOpen("no peer")

    class Near(EmulatedMemory):
        device = "near"  # what is open is known by device

    said = found(lambda rank: Far() if rank else Near(), ranks=2)
    assert said == ["rank 1 cannot open memory of rank 0: no peer"] * 2


def test_other_numbers_than_there_are() -> None:
    """As where another allocation has the name."""

    class Wrong(EmulatedMemory):
        def copy(self, to: int, source: int, size: int) -> None:
            ctypes.memset(to, 0, size)

    said = found(lambda rank: Wrong() if rank == 1 else EmulatedMemory(), ranks=2)
    assert said == ["rank 0 reads other numbers in memory of rank 1 than are there"] * 2
