"""The emulated device's memory, which other processes open."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnc.runtime.cpu.pool import Pool
from gnnc.runtime.emulator.memory import EmulatedMemory, new_segment, opened
from gnnc.runtime.memory import HANDLE_BYTES, CannotOpen, Exporting, Handle

OTHER = """
import ctypes, sys
from gnnc.runtime.emulator.memory import EmulatedMemory
memory = EmulatedMemory()
"""
SHOWS = (
    OTHER
    + """
lease = memory.take(1 << 16)
ctypes.memset(lease.address, 7, 1 << 16)
found = memory.export(lease.address + 300)
print(found.name.hex(), found.offset, flush=True)
for line in sys.stdin:
    ctypes.memset(lease.address, int(line), 1 << 16)
    print("written", flush=True)
"""
)
READS = (
    OTHER
    + """
seen = memory.open(bytes.fromhex(sys.argv[1]))
print(ctypes.string_at(seen.address + int(sys.argv[2]), 5).hex(), flush=True)
ctypes.memset(seen.address, 0, 1)
print("wrote")
"""
)


class Other:
    """A process that shows memory."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", SHOWS]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        name, offset = self.said().split()
        self.handle = Handle(bytes.fromhex(name), int(offset))

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def write(self, byte: int) -> None:
        assert self.process.stdin is not None
        print(byte, file=self.process.stdin, flush=True)
        assert self.said() == "written\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def test_what_another_process_writes_is_read_and_outlives_it() -> None:
    other = Other()
    assert len(other.handle.name) == HANDLE_BYTES and other.handle.offset == 300
    seen = EmulatedMemory().open(other.handle.name)
    place = seen.address + other.handle.offset
    assert ctypes.string_at(place, 4) == bytes([7] * 4)
    other.write(9)
    assert ctypes.string_at(place, 4) == bytes([9] * 4)
    other.kill()
    assert ctypes.string_at(place, 4) == bytes([9] * 4), "a reader never loses its footing"
    with pytest.raises(CannotOpen, match=f"process {other.process.pid}: No such file"):
        opened(other.handle.name)


def test_it_is_opened_to_be_read() -> None:
    """Who writes there is ended by the system."""
    lease = EmulatedMemory().take(4096)
    ctypes.memset(lease.address, 5, 4096)
    found = EmulatedMemory().export(lease.address + 16)
    assert found is not None
    command = [sys.executable, "-c", READS, found.name.hex(), str(found.offset)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.stdout, result.returncode) == ("0505050505\n", -signal.SIGSEGV)
    assert ctypes.string_at(lease.address, 1) == b"\5"


def test_memory_of_torch_and_of_the_heap_has_no_handle() -> None:
    memory, array = EmulatedMemory(), np.arange(5)
    assert memory.export(memory.upload(array).address) is None
    assert memory.export(array.ctypes.data) is None
    assert isinstance(memory, Exporting)


def test_an_allocation_that_is_made_anew_is_another_one() -> None:
    pool, memory = Pool(new_segment), EmulatedMemory()
    names: list[bytes] = []
    for _ in range(2):
        lease = pool.take(1 << 16)
        found = memory.export(lease.address)
        assert found is not None and found.offset == 0
        again = memory.export(lease.address + 100)
        assert again == Handle(found.name, 100)
        names.append(found.name)
        address = lease.address
        del lease
        pool.release()
        assert memory.export(address) is None
    assert names[0] != names[1]
    with pytest.raises(CannotOpen, match=f"process {os.getpid()}"):
        opened(names[0])


def test_a_file_that_took_the_place_of_another_is_not_opened(tmp_path: Path) -> None:
    pool, memory = Pool(new_segment), EmulatedMemory()
    lease = pool.take(4096)
    found = memory.export(lease.address)
    assert found is not None
    file = int.from_bytes(found.name[8:16], "little")
    del lease
    pool.release()
    number = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)
    try:
        os.dup2(number, file)  # where they are not the same already
        with pytest.raises(CannotOpen, match="is another one by now"):
            opened(found.name)
    finally:
        for each in {number, file}:
            os.close(each)


def test_an_allocation_that_a_cycle_gave_back_has_a_name() -> None:
    """The collector clears weak references to all that dies with a cycle, and what it gives back
    lives on."""
    pool, memory = Pool(new_segment), EmulatedMemory()
    cycle: list[Any] = [pool.take(4096)]
    address = cycle[0].address
    cycle.append(cycle)
    del cycle
    gc.collect()
    lease = pool.take(4096)
    assert lease.address == address
    assert memory.export(address) is not None
    del lease
    pool.release()


def test_what_is_freed_stays_for_those_that_have_it_open() -> None:
    pool, memory = Pool(new_segment), EmulatedMemory()
    lease = pool.take(4096)
    ctypes.memset(lease.address, 3, 4096)
    found = memory.export(lease.address)
    assert found is not None
    seen = memory.open(found.name)
    del lease
    pool.release()
    assert ctypes.string_at(seen.address, 3) == b"\3\3\3"


def test_files_are_closed() -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    before, pool, memory = files(), Pool(new_segment), EmulatedMemory()
    leases = [pool.take(4096 << k) for k in range(5)]
    handles = [memory.export(lease.address) for lease in leases]
    seen = [memory.open(h.name) for h in handles if h is not None]
    assert len(seen) == 5
    del leases, seen
    pool.release()
    assert files() == before


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_device_of_its_own() -> None:
    memory = EmulatedMemory()
    address = memory.take(1 << 16).address  # and free again
    child = os.fork()
    if child == 0:
        ctypes.memset(memory.take(1 << 16).address, 1, 1 << 16)
        os._exit(0)
    lease = memory.take(1 << 16)
    assert lease.address == address
    ctypes.memset(address, 2, 1 << 16)
    assert os.waitpid(child, 0)[1] == 0
    assert ctypes.string_at(address, 1 << 16) == b"\2" * (1 << 16)


def test_a_device_without_memory() -> None:
    with pytest.raises(MemoryError, match="no memory for 4611686018427387904 bytes of the"):
        new_segment(1 << 62, 0)
