"""The C library keeps what an epoch frees for the next one, unless the user has said otherwise."""

import os
import subprocess
import sys

import pytest

from gnnc.runtime.heap import KEPT, LONGEST

ROUNDS = f"""
import ctypes, gc, resource, sys
from gnnc.runtime import heap
made = heap.keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
length = {LONGEST} * 3 // 4

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def epoch():
    blocks = [libc.malloc(length) for _ in range(3)]
    for block in blocks:
        ctypes.memset(block, 1, length)
    for block in blocks:
        libc.free(block)

for _ in range(4):
    before = faults()
    epoch()
    again = faults() - before
heap.give_back()
before = faults()
epoch()
print(made, again, faults() - before)
"""


def run(**environment: str) -> tuple[str, int, int]:
    """Whether the setting was made, page faults of a later epoch, and of one after `give_back`."""
    env = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    env.pop("GLIBC_TUNABLES", None)
    answer = subprocess.run(
        [sys.executable, "-c", ROUNDS],
        env=env | environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.split()
    return answer[0], int(answer[1]), int(answer[2])


def test_an_epoch_finds_the_memory_of_the_one_before():
    made, again, returned = run()
    if made == "False":
        pytest.skip("not glibc")
    assert KEPT >= 3 * LONGEST * 3 // 4
    assert again < 10
    # at least one fault each huge page, where the system gives them without being asked
    assert returned > 30


@pytest.mark.parametrize(
    "name, value",
    [
        ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072"),
    ],
)
def test_settings_of_the_user_stand(name: str, value: str):
    made, again, _ = run(**{name: value})
    assert made == "False"
    assert again > 30
