"""The memory of the emulated device: allocations that other processes can open, as those of a GPU.

An allocation is a file without a name (memfd), which the system keeps while somebody has it open or
mapped: nothing is left of a process that was killed. Others open it by the number of the process
and of the file there, and make sure that it is this one.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cpu.memory import HostArray
from ..cpu.pool import Memory, Pool, Region
from ..cuda.device import ALIGNMENT
from ..memory import HANDLE_BYTES, CannotOpen, Handle

_NAME = struct.Struct("<qqQQQ")
"""Process, file, and what tells the file from others: device, inode, the number of the allocation
in its process."""
_FILE = "gnnc-emulated-device"


@dataclass(frozen=True, eq=False)
class Segment(Region):
    """An allocation, which lies in a file."""

    file: int
    number: int

    def close(self) -> None:
        """Give it back; who has opened it keeps it."""
        _segments.pop(self.number, None)
        super().close()
        os.close(self.file)

    @property
    def name(self) -> bytes:
        """What others open it by."""
        found = os.fstat(self.file)
        numbers = os.getpid(), self.file, found.st_dev, found.st_ino, self.number
        return _NAME.pack(*numbers).ljust(HANDLE_BYTES, b"\0")


_numbers = itertools.count(1)
_segments: dict[int, Segment] = {}
"""Those that there are, by number. Weak references would not do: the collector clears those to all
that a dying cycle holds, a lease in it and its segment too, before the lease's end gives the
segment back to the pool."""


def new_segment(size: int, colour: int) -> Segment:
    """An allocation for a pool, without a colour: it begins where its mapping does.

    Raises:
        MemoryError: there is no memory for it.
    """
    try:
        file = os.memfd_create(_FILE)
        try:
            os.ftruncate(file, size)
            mapping = mmap.mmap(file, size)
        except OSError:
            os.close(file)
            raise
    except OSError as error:
        raise MemoryError(f"no memory for {size} bytes of the emulated device: {error}") from error
    # this view ends with the statement, or the mapping could not be closed
    start = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    segment = Segment(mapping, start, size, file, next(_numbers))
    _segments[segment.number] = segment
    return segment


device_pool = Pool(new_segment)
"""What the device has in use, and what is free."""


def _anew() -> None:
    """A forked process has another device: what is free here is its parent's, to be written."""
    global device_pool
    device_pool = Pool(new_segment)
    _segments.clear()


os.register_at_fork(after_in_child=_anew)


class Opened:
    """An allocation of another process, mapped to be read. It is unmapped with the object."""

    def __init__(self, file: int, size: int) -> None:
        self._bytes = np.frombuffer(mmap.mmap(file, size, prot=mmap.PROT_READ), np.uint8)
        self.address: int = self._bytes.ctypes.data


def opened(name: bytes) -> Opened:
    """The allocation of another process that has this name.

    Raises:
        CannotOpen: the process, or the allocation, is not here.
    """
    process, number, *wanted = _NAME.unpack_from(name)
    try:
        file = os.open(f"/proc/{process}/fd/{number}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotOpen(f"file {number} of process {process}: {error.strerror}") from error
    try:
        found = os.fstat(file)
        if [found.st_dev, found.st_ino] != wanted[:2]:
            raise CannotOpen(f"file {number} of process {process} is another one by now")
        return Opened(file, found.st_size)
    except OSError as error:
        raise CannotOpen(f"file {number} of process {process}: {error}") from error
    finally:
        os.close(file)


class EmulatedMemory:
    """The memory of the emulated device. Tensors that torch has made lie elsewhere, on the host,
    where kernels of this process can use them and nobody can open them."""

    device = "cpu"
    alignment = ALIGNMENT

    def upload(self, array: NDArray[Any]) -> HostArray:
        """See Memory. A copy, on the heap: a table is nobody else's."""
        return HostArray(array.copy())

    def take(self, size: int) -> Memory:
        """See Memory."""
        return device_pool.take(size)

    def export(self, address: int) -> Handle | None:
        """See Exporting."""
        for segment in list(_segments.values()):
            if segment.address <= address < segment.address + segment.size:
                return Handle(segment.name, address - segment.address)
        return None

    def open(self, name: bytes) -> Opened:
        """See Exporting."""
        return opened(name)

    def take_exported(self, size: int) -> Memory:
        """See Exporting."""
        return self.take(size)

    def copy(self, to: int, source: int, size: int) -> None:
        """See Exporting."""
        ctypes.memmove(to, source, size)
