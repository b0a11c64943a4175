"""Memory of a device between processes: what one process has allocated others open by a handle of
the driver, and read in their kernels. It may lie on their own device or on another one of the
machine that theirs can reach.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import defaultdict
from typing import ClassVar

from ..memory import HANDLE_BYTES, CannotOpen, Handle
from .device import current_device
from .driver import Driver, driver

_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the only flag that there is


class MemHandle(ctypes.Structure):
    """`CUipcMemHandle`."""

    _fields_: ClassVar = [("reserved", ctypes.c_ubyte * HANDLE_BYTES)]


def export(device: int, address: int) -> Handle | None:
    """The handle of the whole allocation that an address is in, and how far in that is. None where
    the driver has no handles for it: of memory from stream-ordered pools (`cudaMallocAsync`), of
    mapped physical memory (torch's `expandable_segments`), of the host.

    A handle is asked for each time, and not kept: an allocation that is freed, and made again at
    the same place, has another one.
    """
    library = driver().library
    base, size, handle = ctypes.c_uint64(), ctypes.c_size_t(), MemHandle()
    with current_device(device):
        place = ctypes.c_uint64(address)
        if library.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), place):
            return None
        if library.cuIpcGetMemHandle(ctypes.byref(handle), base):
            return None
    return Handle(bytes(handle.reserved), address - base.value)


class Opened:
    """An allocation of another process, open for the kernels of a device as long as this object
    lives."""

    def __init__(self, device: int, name: bytes) -> None:
        found, base = driver(), ctypes.c_uint64()
        handle = MemHandle.from_buffer_copy(name)
        with current_device(device):
            status = found.library.cuIpcOpenMemHandle_v2(ctypes.byref(base), handle, _PEER_ACCESS)
        if status:
            raise CannotOpen(f"cuIpcOpenMemHandle: {found.message(status)}")
        self.address = base.value
        weakref.finalize(self, _close, found, device, base.value)


def _close(found: Driver, device: int, base: int) -> None:
    """Nobody reads there: ranks settle before they let others go on. A driver that is at its end
    has closed everything."""
    with current_device(device):
        found.library.cuIpcCloseMemHandle(ctypes.c_uint64(base))


class Block:
    """Memory of the driver's own, which goes back to those that are free."""

    def __init__(self, device: int, address: int, size: int) -> None:
        self.address = address
        weakref.finalize(self, _free[device, size].append, address)


_free: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
"""Blocks by device and bytes. None is given back to the driver, for others may have it open, and
CUDA leaves undefined what these read then."""


def block(device: int, size: int) -> Block:
    """So many bytes that can be exported, whatever allocator torch has.

    Raises:
        OutOfDeviceMemory: the device has no more.
    """
    if free := _free[device, size]:
        return Block(device, free.pop(), size)
    found, address = driver(), ctypes.c_uint64()
    with current_device(device):
        status = found.library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
    found.check(status, "cuMemAlloc of rows that other ranks read")
    return Block(device, address.value, size)


def copy(device: int, to: int, source: int, size: int) -> None:
    """Copy bytes between any two places, and wait until they are there.

    Raises:
        LaunchFailed: the driver refuses.
    """
    found = driver()
    places = ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size)
    with current_device(device):
        found.check(found.library.cuMemcpy(*places), "cuMemcpy of rows that other ranks read")
        # a copy within a device is begun on its default stream, and not waited for
        found.check(found.library.cuStreamSynchronize(None), "rows that other ranks read")
