"""Virtual ranks whose messages go through rings, in memory of their process."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any, TypeVar

from gnnc.runtime.ranks import rings, virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.virtual import Virtual

Result = TypeVar("Result")


def run(size: int, function: Callable[[Communicator], Result], **options: Any) -> list[Result]:
    """`virtual.run`, but that what ranks say to each other goes through rings."""
    memory = mmap.mmap(-1, rings.memory_bytes(size))
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def ringed(c: Virtual) -> Communicator:
        return rings.Rings(c.rank, size, address, c.note)

    results = virtual.run(size, function, wrap=ringed, **options)
    assert len(memory)  # it lived as long as the ranks
    return results
