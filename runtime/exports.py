"""What a process shows others of its memory, and sees of theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from .memory import Exporting, Handle, Lease, Region

_lock = threading.Lock()
_opened: WeakValueDictionary[tuple[str, bytes], Lease] = WeakValueDictionary()
"""Allocations of others, by device and name: each is opened once, and closed when the last region
in it is gone."""
_copies: WeakValueDictionary[tuple[str, int, int], Lease] = WeakValueDictionary()
"""Copies of what cannot be exported, by device, address and bytes."""


class CannotExport(RuntimeError):
    """Other processes cannot open memory of this device."""


class Shown(NamedTuple):
    """A region of one's own, and what others find it by."""

    region: Region
    handle: Handle


NOTHING = Handle(b"", 0)
"""Of a region of no bytes."""


def show(memory: Exporting, region: Region) -> Shown:
    """A region for others to read as it is now, where it lies, or a copy of it where its allocation
    is none that can be exported: a tensor of an allocator whose memory has no handles. While the
    region is shown the copy is kept for the next time.

    Raises:
        CannotExport: nothing that is allocated on this device can be exported.
        MemoryError: there is no memory for the copy.
    """
    address, size, _ = region
    if not size:
        return Shown(region, NOTHING)
    if (found := memory.export(address)) is not None:
        return Shown(region, found)
    copy = _once(_copies, (memory.device, address, size), lambda: memory.take_exported(size))
    memory.copy(copy.address, address, size)
    return Shown(Region(address, size, copy), handle_of(memory, copy))


def handle_of(memory: Exporting, lease: Lease) -> Handle:
    """That of memory which was taken to be exported. Raises CannotExport."""
    found = memory.export(lease.address)
    if found is None:
        raise CannotExport(f"other processes cannot open memory of {memory.device}")
    return found


def see(memory: Exporting, handle: Handle, size: int) -> Region:
    """What another process shows. Raises CannotOpen."""
    if not size:
        return Region(0, 0)
    key = memory.device, handle.name
    allocation = _once(_opened, key, lambda: memory.open(handle.name))
    return Region(allocation.address + handle.offset, size, allocation)


def _once(known: WeakValueDictionary[Any, Lease], key: Any, make: Callable[[], Lease]) -> Lease:
    """What is known by a key, else what is made."""
    with _lock:
        found = known.get(key)
        if found is None:
            known[key] = found = make()
        return found
