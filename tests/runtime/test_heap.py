"""What a loss outside compiled code frees costs few page faults in the next epoch."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from gnnc.runtime.heap import HUGE_PAGES, PLAIN_TORCH

PAGES = 1024 * 1024 // os.sysconf("SC_PAGESIZE")
"""Small pages in a MiB."""

EPOCHS = """
import resource
import gnnc
import torch
import torch.nn.functional as F
from gnnc.runtime.heap import use_huge_pages

def faults(megabytes):
    x = torch.ones(megabytes * 4096, 64, requires_grad=True)
    y = torch.zeros(len(x), dtype=torch.int64)
    for _ in range(25):  # the heap settles
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        F.cross_entropy(x, y).backward()
        x.grad = None
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(3), faults(24), use_huge_pages())
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
@pytest.mark.skipif(not huge_pages_are_given(), reason="this system has no transparent huge pages")
def test_later_epochs_map_huge_pages_or_none():
    short, long, done = answer(EPOCHS)
    assert done == "True"
    assert int(short) < PAGES
    # three arrays; the ends of each lie in small pages
    assert int(long) < 3 * 24 * PAGES / 4


ASKED = "from gnnc.runtime.heap import use_huge_pages; print(use_huge_pages())"


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
