"""What a loss outside compiled code frees costs few page faults in the next epoch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gnnc.runtime.heap import HUGE_PAGES, PLAIN_TORCH

EPOCHS = """
import resource
import gnnc
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
f = gnnc.compile(lambda x: x * 2)

def faults(megabytes):
    x = torch.ones(megabytes * 4096, 64, requires_grad=True)
    y = torch.zeros(len(x), dtype=torch.int64)
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        F.cross_entropy(x, y).backward()
        x.grad = None
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(gnnc.frontend.torch.compile.heap.keep_short_blocks.cache_info().currsize)
print(faults(3), faults(24))
"""

PAGES = 1024 * 1024 // os.sysconf("SC_PAGESIZE")
"""Small pages in a MiB."""


def epochs(**environment: str) -> tuple[bool, int, int]:
    """Whether glibc was told anything, and the page faults of a later epoch with results of 3 and
    of 24 MiB.
    """
    env = {name: value for name, value in os.environ.items() if "MALLOC" not in name}
    for name in ("GLIBC_TUNABLES", HUGE_PAGES):
        env.pop(name, None)
    told, short, long = subprocess.run(
        [sys.executable, "-c", EPOCHS],
        env=env | environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout.split()
    return told == "1", int(short), int(long)


def huge_pages_are_given() -> bool:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[never]" not in setting.read_text()


@pytest.mark.skipif(not huge_pages_are_given(), reason="this system has no transparent huge pages")
def test_later_epochs_map_huge_pages_or_none():
    told, short, long = epochs()
    assert told
    assert short < PAGES
    # three arrays; the ends of each lie in small pages
    assert long < 3 * 24 * PAGES / 4


def test_without_huge_pages_nothing_is_changed():
    assert not epochs(**PLAIN_TORCH)[0]


@pytest.mark.parametrize(
    "name, value",
    [
        ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=131072"),
    ],
)
def test_settings_of_the_user_stand(name: str, value: str):
    code = "from gnnc.runtime import heap; print(heap.keep_short_blocks())"
    env = {**os.environ, name: value}
    answer = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)
    assert answer.stdout == b"False\n"
