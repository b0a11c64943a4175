"""Memory of a device between processes: what the driver is asked for."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

from gnnc.runtime.cuda import ipc
from gnnc.runtime.cuda.errors import LaunchFailed, OutOfDeviceMemory
from gnnc.runtime.cuda.memory import DeviceMemory
from gnnc.runtime.exports import see, show
from gnnc.runtime.memory import HANDLE_BYTES, CannotOpen, Exporting, Handle, Region
from gnnc.runtime.ranks import virtual
from gnnc.runtime.ranks.communicator import Communicator
from gnnc.runtime.ranks.exchanges import ExportingExchanges
from gnnc.runtime.ranks.peers import Peers
from gnnc.runtime.ranks.reachable import why_unreachable

from .conftest import Machine
from .fakes import FakeCupy, FakeDriver

INVALID_VALUE, NO_PEER_ACCESS = 1, 217


class IpcDriver(FakeDriver):
    """Devices whose allocations are arrays of the host. All but those `without_handles` can be
    exported, and what others have exported is in `others`, by the first bytes of the handle."""

    def __init__(self) -> None:
        super().__init__(13020, [("H100", (9, 0))] * 2)
        self.cupy = FakeCupy()
        self.arrays: list[np.ndarray] = []
        self.without_handles: set[int] = set()
        self.others: dict[int, np.ndarray] = {}
        self.log: list[tuple[Any, ...]] = []
        self.refuses: dict[str, int] = {}

    def allocated(self, size: int) -> int:
        self.arrays.append(np.zeros(size, np.uint8))
        return self.arrays[-1].ctypes.data

    def _asked(self, name: str, *what: Any) -> int:
        assert len(self.cupy.current) == 1, "no device is the current one"
        self.log.append((name, *self.cupy.current, *what))
        return self.refuses.get(name, 0)

    def cuMemGetAddressRange_v2(self, base: Any, size: Any, place: ctypes.c_uint64) -> int:
        assert self.cupy.current
        for array in self.arrays:
            if 0 <= place.value - array.ctypes.data < len(array):
                base._obj.value, size._obj.value = array.ctypes.data, len(array)
                return 0
        return INVALID_VALUE

    def cuIpcGetMemHandle(self, handle: Any, base: ctypes.c_uint64) -> int:
        status = self._asked("get", base.value)
        if base.value in self.without_handles:
            return INVALID_VALUE
        handle._obj.reserved[:8] = list(base.value.to_bytes(8, "little"))
        handle._obj.reserved[63] = 1  # all of it travels
        return status

    def cuIpcOpenMemHandle_v2(self, base: Any, handle: ipc.MemHandle, flags: int) -> int:
        name = bytes(handle.reserved)
        assert name[63] == 1 and flags == 1, "peers may be other devices"
        key = int.from_bytes(name[:8], "little")
        base._obj.value = self.others[key].ctypes.data if key in self.others else 0
        return self._asked("open", key)

    def cuIpcCloseMemHandle(self, base: ctypes.c_uint64) -> int:
        return self._asked("close", base.value)

    def cuMemAlloc_v2(self, out: Any, size: ctypes.c_size_t) -> int:
        if status := self._asked("alloc", size.value):
            return status
        out._obj.value = self.allocated(size.value)
        return 0

    def cuMemcpy(self, to: ctypes.c_uint64, source: ctypes.c_uint64, size: ctypes.c_size_t) -> int:
        ctypes.memmove(to.value, source.value, size.value)
        return self._asked("copy", size.value)

    def cuStreamSynchronize(self, stream: Any) -> int:
        return self._asked("synchronize", stream)


@pytest.fixture
def found(machine: Machine) -> Any:
    driver = IpcDriver()
    machine(driver, driver.cupy)
    yield driver
    gc.collect()  # what is open is closed by this driver
    ipc._free.clear()


def name_of(base: int) -> bytes:
    return base.to_bytes(8, "little").ljust(HANDLE_BYTES - 1, b"\0") + b"\1"


def test_a_handle_is_that_of_the_whole_allocation(found: IpcDriver) -> None:
    """A tensor lies somewhere in a block of torch's allocator."""
    base, memory = found.allocated(1000), DeviceMemory("cuda:1")
    assert isinstance(memory, Exporting)
    assert memory.export(base + 768) == Handle(name_of(base), 768)
    assert memory.export(base) == Handle(name_of(base), 0)
    assert found.log == [("get", 1, base)] * 2


def test_what_is_open_is_closed_on_its_device(found: IpcDriver) -> None:
    found.others[5] = np.arange(100, dtype=np.uint8)
    memory, handle = DeviceMemory("cuda:1"), Handle(name_of(5), 10)
    first, second = see(memory, handle, 4), see(memory, Handle(name_of(5), 20), 1)
    assert ctypes.string_at(first.address, 4) == bytes([10, 11, 12, 13])
    assert found.log == [("open", 1, 5)]
    del first
    gc.collect()
    assert found.log == [("open", 1, 5)] and second.size == 1
    del second
    gc.collect()
    assert found.log[1:] == [("close", 1, found.others[5].ctypes.data)]


def test_a_driver_that_refuses_is_named(found: IpcDriver) -> None:
    found.refuses["open"] = 700
    with pytest.raises(CannotOpen, match="cuIpcOpenMemHandle: CUDA_ERROR_ILLEGAL_ADDRESS: an ill"):
        DeviceMemory("cuda:0").open(name_of(1))
    gc.collect()
    assert [word for word, *_ in found.log] == ["open"], "what was not opened is not closed"


def test_memory_without_handles_is_copied_to_some_that_has(found: IpcDriver) -> None:
    """Of a stream-ordered pool, or mapped: the copy is there before anybody is told."""
    base, memory = found.allocated(64), DeviceMemory("cuda:0")
    found.without_handles.add(base)
    found.arrays[0][:] = 6
    shown = show(memory, Region(base + 8, 16))
    copy = found.arrays[1]
    assert shown.handle == Handle(name_of(copy.ctypes.data), 0) and (copy == 6).all()
    words = [word for word, *_ in found.log]
    assert words == ["get", "alloc", "copy", "synchronize", "get"]
    del shown
    gc.collect()
    show(memory, Region(base, 16))
    assert [word for word, *_ in found.log].count("alloc") == 1, "others may have it open"


def test_no_memory_and_no_copy(found: IpcDriver) -> None:
    memory = DeviceMemory("cuda:0")
    found.refuses["copy"] = 700
    x, y = found.allocated(8), found.allocated(8)
    with pytest.raises(LaunchFailed, match="cuMemcpy of rows that other ranks read"):
        memory.copy(x, y, 8)
    found.refuses["alloc"] = 2
    with pytest.raises(OutOfDeviceMemory, match="cuMemAlloc of rows that other ranks read"):
        memory.take_exported(8)


def of_processes(c: Communicator) -> Communicator:
    assert isinstance(c, Peers)
    c.shares_memory = False
    return c


def test_ranks_on_two_devices_try_and_read_each_other(found: IpcDriver) -> None:
    """The driver finds what others have exported: the fake one has it all in one process."""
    opened = found.cuIpcOpenMemHandle_v2

    def open_any(base: Any, handle: ipc.MemHandle, flags: int) -> int:
        found.others |= {a.ctypes.data: a for a in found.arrays}
        return opened(base, handle, flags)

    found.cuIpcOpenMemHandle_v2 = open_any  # type: ignore[method-assign]
    found._asked = lambda name, *what: found.refuses.get(name, 0)  # type: ignore[method-assign]

    def work(c: Communicator) -> Any:
        memory = DeviceMemory(f"cuda:{c.rank}")
        why = why_unreachable(c, "cuda", memory)
        base = found.allocated(8 * (c.rank + 1))
        found.arrays[-1][:] = c.rank
        carrier = ExportingExchanges(c, {}, memory)
        every = carrier.publish("totals", [Region(base + 2, 6)])
        read = [ctypes.string_at(r.address, r.size) for ((r),) in every]
        carrier.retire("totals")
        return why, read

    want = None, [bytes(6), b"\1" * 6]
    assert virtual.run(2, lambda c: work(of_processes(c))) == [want] * 2


def test_ranks_whose_devices_are_no_peers_are_told_so(found: IpcDriver) -> None:
    found.refuses["open"] = NO_PEER_ACCESS
    found._asked = lambda name, *what: found.refuses.get(name, 0)  # type: ignore[method-assign]

    def work(c: Communicator) -> str | None:
        return why_unreachable(of_processes(c), "cuda", DeviceMemory("cuda:0"))

    said = "rank 0 cannot open memory of rank 1: cuIpcOpenMemHandle: CUresult 217"
    assert virtual.run(2, work) == [said] * 2
