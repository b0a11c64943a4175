"""torch and compiled programs serve each other with what they free, and take few page faults."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from gnnc.runtime.cpu.heap import HUGE_PAGES, PLAIN_TORCH

PAGES = 1024 * 1024 // os.sysconf("SC_PAGESIZE")
"""Small pages in a MiB."""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")

EPOCHS = """
import resource
import statistics
import gnnc
import torch
import torch.nn.functional as F
from gnnc.runtime.cpu.heap import heap

def faults(megabytes, epochs):
    x = torch.ones(megabytes * 4096, 64, requires_grad=True)
    y = torch.zeros(len(x), dtype=torch.int64)
    counts = []
    for _ in range(epochs):  # the heap settles
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        F.cross_entropy(x, y).backward()
        x.grad = None
        counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return int(statistics.median(counts[epochs // 2 :]))

print(faults(3, 80), faults(24, 40), faults(48, 6), heap.shared)
"""


def answer(code: str, **environment: str) -> list[str]:
    """The words that a new process prints, with torch and the C library as they are by default."""
    env = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    for name in ("GLIBC_TUNABLES", HUGE_PAGES):
        env.pop(name, None)
    return subprocess.run(
        [sys.executable, "-c", code],
        env=env | environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout.split()


def huge_pages_are_given() -> bool:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[never]" not in setting.read_text()


@glibc
@pytest.mark.skipif(not huge_pages_are_given(), reason="this system has no transparent huge pages")
def test_later_epochs_map_huge_pages_or_none():
    short, middle, long, shared = answer(EPOCHS)
    assert shared == "True"
    assert int(short) < PAGES
    assert int(middle) < PAGES
    # three arrays; the ends of each lie in small pages
    assert int(long) < 3 * 48 * PAGES / 4


IN_TURNS = """
import gnnc
import torch
from gnnc.runtime.cpu.heap import LONGEST
from gnnc.runtime.cpu.pool import take

ROUNDS = 40

def overlaps(place, places):
    return any(abs(place - other) < LONGEST for other in places)

of_program, of_torch, taken_over = [], [], 0
for _ in range(ROUNDS):
    block = take(LONGEST)
    taken_over += overlaps(block.address, of_torch)
    of_program.append(block.address)
    del block
    tensor = torch.empty(LONGEST, dtype=torch.uint8)
    taken_over += overlaps(tensor.data_ptr(), of_program)
    of_torch.append(tensor.data_ptr())
    del tensor
print(taken_over / (2 * ROUNDS))
"""


@glibc
def test_torch_takes_what_a_program_freed_and_the_other_way_round():
    """Not each time: where small blocks settle in the gap that alignment leaves, what lies behind
    it is too short for another block of that length.
    """
    (share,) = answer(IN_TURNS)
    assert float(share) > 0.5


KINDS = """
import threading
import gnnc
from gnnc.runtime.cpu.heap import LONGEST
from gnnc.runtime.cpu.pool import pool, take

found = []
def ask(size):
    found.append(type(take(size)).__name__)

ask(1000), ask(LONGEST), ask(LONGEST + 1)
thread = threading.Thread(target=ask, args=(LONGEST,))
thread.start()
thread.join()
print(*found)
"""


@glibc
def test_long_blocks_and_those_of_other_threads_come_from_the_pool():
    assert answer(KINDS) == ["Block", "Block", "Lease", "Lease"]


RELEASED = """
import gnnc
import numpy as np
from gnnc.runtime.cpu.heap import LONGEST
from gnnc.runtime.cpu.pool import take

def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1])

arrays = [np.asarray(take(LONGEST).shaped((LONGEST,), "|u1")) for _ in range(4)]
for x in arrays:
    x[:] = 7
kept, after = arrays[2], resident()
del arrays, x
freed = after - resident()
gnnc.release_memory()
print(freed, after - resident(), LONGEST // 4096, bool((kept == 7).all()))
"""


@glibc
def test_memory_is_kept_until_it_is_released():
    freed, released, block, whole = answer(RELEASED)
    assert int(freed) < int(block) / 2
    assert int(released) > 2.5 * int(block)
    assert whole == "True"


ASKED = "from gnnc.runtime.cpu.heap import heap; print(heap.shared)"


def test_torch_with_tensors_is_left_alone():
    assert answer("import torch; torch.ones(1)\n" + ASKED) == ["False"]


def test_a_user_may_refuse():
    assert answer(ASKED, **PLAIN_TORCH) == ["False"]


SETTINGS = {
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072",
}


@pytest.mark.parametrize("name, value", SETTINGS.items())
def test_settings_of_the_user_stand(name: str, value: str):
    assert answer(ASKED, **{name: value}) == ["False"]
