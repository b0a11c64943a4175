"""What a process shows of its memory, and sees of that of others: opened once."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest
from numpy.typing import NDArray

from gnnc.runtime.exports import CannotExport, handle_of, see, show
from gnnc.runtime.memory import CannotOpen, Handle, Region


class Lease:
    """An allocation of a device of the tests."""

    def __init__(self, array: NDArray[np.uint8]) -> None:
        self.array = array
        self.address: int = array.ctypes.data


class Opened(Lease):
    """One of another process."""

    def __init__(self, memory: Memory, name: bytes) -> None:
        super().__init__(memory.others[name])
        self.memory, self.name = memory, name
        memory.log.append(f"open {name.decode()}")

    def __del__(self) -> None:
        self.memory.log.append(f"close {self.name.decode()}")


class Memory:
    """A device whose allocations have numbers; others have `others`, by name."""

    alignment = 1

    def __init__(self, device: str, exports: bool = True) -> None:
        self.device, self.exports = device, exports
        self.own: list[Lease] = []
        self.others: dict[bytes, NDArray[np.uint8]] = {}
        self.log: list[str] = []

    def upload(self, array: NDArray[np.uint8]) -> Lease:
        raise AssertionError("no tables here")

    def take(self, size: int) -> Lease:
        return self.take_exported(size)

    def take_exported(self, size: int) -> Lease:
        self.log.append(f"take {size}")
        self.own.append(Lease(np.zeros(size, np.uint8)))
        return self.own[-1]

    def export(self, address: int) -> Handle | None:
        for k, lease in enumerate(self.own):
            if self.exports and 0 <= (offset := address - lease.address) < len(lease.array):
                return Handle(b"%d" % k, offset)
        return None

    def open(self, name: bytes) -> Opened:
        if name not in self.others:
            raise CannotOpen(f"{name.decode()} is nowhere")
        return Opened(self, name)

    def copy(self, to: int, source: int, size: int) -> None:
        self.log.append(f"copy {size}")
        ctypes.memmove(to, source, size)


def test_what_can_be_exported_is_shown_where_it_lies() -> None:
    memory = Memory("a")
    lease = memory.take(100)
    shown = show(memory, Region(lease.address + 20, 30))
    assert shown.region == Region(lease.address + 20, 30) and shown.handle == Handle(b"0", 20)
    assert memory.log == ["take 100"]


def test_other_memory_is_copied_to_one_place_while_it_is_shown() -> None:
    memory, rows = Memory("b"), np.arange(10, dtype=np.uint8)
    region = Region(rows.ctypes.data, 10)
    first = show(memory, region)
    rows += 1
    second = show(memory, region)
    assert first.handle == second.handle == Handle(b"0", 0)
    assert (memory.own[0].array == rows).all(), "as it is now"
    assert memory.log == ["take 10", "copy 10", "copy 10"]
    memory.own.clear()
    del first, second
    gc.collect()
    show(memory, region)
    assert memory.log[3:] == ["take 10", "copy 10"], "nobody has kept the copy"


def test_a_device_that_exports_nothing() -> None:
    memory, rows = Memory("c", exports=False), np.zeros(4, np.uint8)
    with pytest.raises(CannotExport, match="other processes cannot open memory of c"):
        show(memory, Region(rows.ctypes.data, 4))
    with pytest.raises(CannotExport):
        handle_of(memory, memory.take_exported(4))


def test_an_allocation_is_opened_once_and_closed_with_its_last_region() -> None:
    memory = Memory("d")
    memory.others = {b"x": np.arange(50, dtype=np.uint8), b"y": np.zeros(9, np.uint8)}
    first, second = see(memory, Handle(b"x", 8), 4), see(memory, Handle(b"x", 20), 2)
    assert ctypes.string_at(first.address, first.size) == bytes([8, 9, 10, 11])
    assert ctypes.string_at(second.address, second.size) == bytes([20, 21])
    other = see(memory, Handle(b"y", 0), 9)
    assert memory.log == ["open x", "open y"]
    del first
    gc.collect()
    assert memory.log == ["open x", "open y"]
    del second
    gc.collect()
    assert memory.log == ["open x", "open y", "close x"]
    again = see(memory, Handle(b"x", 0), 1)
    assert memory.log[3:] == ["open x"] and (again.size, other.size) == (1, 9)


def test_devices_do_not_share_what_is_open() -> None:
    one, two = Memory("e"), Memory("f")
    one.others = two.others = {b"x": np.zeros(1, np.uint8)}
    kept = [see(memory, Handle(b"x", 0), 1) for memory in (one, two)]
    assert one.log == two.log == ["open x"] and len(kept) == 2


def test_nothing_is_neither_exported_nor_opened() -> None:
    memory = Memory("g", exports=False)
    shown = show(memory, Region(1234, 0))
    assert shown.region == Region(1234, 0)
    assert see(memory, shown.handle, 0) == Region(0, 0) and memory.log == []


def test_what_cannot_be_opened_is_told_and_tried_again() -> None:
    memory = Memory("h")
    with pytest.raises(CannotOpen, match="z is nowhere"):
        see(memory, Handle(b"z", 0), 1)
    memory.others[b"z"] = np.zeros(1, np.uint8)
    assert see(memory, Handle(b"z", 0), 1).size == 1
