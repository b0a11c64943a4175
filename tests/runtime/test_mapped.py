"""Arrays that lie in files: what is read of them, what is written, what takes memory."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gnnc.runtime import mapped
from gnnc.runtime.sets import kernels


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", np.arange(60_000).reshape(2, -1))
    return tmp_path / "a.npy"


def test_what_is_written_stays_and_the_file_too(path: Path):
    array = mapped.load(path)
    array[1, 7:20_000] = -1
    mapped.give_back(array)
    assert (array[1, 7:20_000] == -1).all()
    assert array.sum() == np.arange(60_000).sum() - (np.arange(30_007, 50_000) + 1).sum()
    np.testing.assert_array_equal(np.load(path).reshape(-1), np.arange(60_000))


def test_what_nobody_wrote_to_is_read_again(path: Path):
    array = mapped.load(path)
    for _ in range(2):
        np.testing.assert_array_equal(array.reshape(-1), np.arange(60_000))
        mapped.give_back(array[1], written=False)
    mapped.give_back(np.zeros(3), written=False)


def test_which_arrays_lie_in_files(path: Path):
    array = mapped.load(path)
    assert mapped.holds(array.ctypes.data) and mapped.holds(array[1, 5:].ctypes.data)
    assert not mapped.holds(array.copy().ctypes.data)
    address = array.ctypes.data
    part = array[1]
    del array
    gc.collect()
    assert mapped.holds(part.ctypes.data)
    del part
    gc.collect()
    assert not mapped.holds(address)


def test_blocks(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mapped, "BLOCK", 8000)
    row = mapped.load(path)[1]
    blocks = list(mapped.passing(row))
    assert [first for first, _ in blocks] == list(range(0, 30_000, 1000))
    np.testing.assert_array_equal(np.concatenate([b for _, b in blocks]), row)
    ((first, other),) = mapped.passing(row.copy())
    assert first == 0 and len(other) == 30_000
    wide = mapped.load(path)  # a row is longer than a block
    assert [first for first, _ in mapped.passing(wide)] == [0, 1]


def test_errors_of_narrow_count_from_the_start(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mapped, "BLOCK", 8000)
    row = mapped.load(path)[1]
    assert (kernels.narrow(row, 60_000) == row).all()
    with pytest.raises(IndexError, match=r"ends\[25000\] is 55000, but it must be between 0 and"):
        kernels.narrow(row, 55_000, what="ends")


@pytest.mark.parametrize("text", [b"", b"0 1\n"])
def test_files_that_are_no_arrays(tmp_path: Path, text: bytes):
    (tmp_path / "b.npy").write_bytes(text)
    with pytest.raises(ValueError):
        mapped.load(tmp_path / "b.npy")
    np.savez(tmp_path / "c.npz", np.zeros(3))
    with pytest.raises(ValueError, match=r"c.npz is no .npy file: it holds several arrays"):
        mapped.load(tmp_path / "c.npz")


READ = """
import sys
import numpy as np
from pathlib import Path
from gnnc.runtime import mapped
from gnnc.runtime.sets import kernels

def peak():
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM"))

kernels.narrow(np.zeros(9, np.int64), 1)
array = mapped.load(Path(sys.argv[1]))
before = peak()
kernels.narrow(array, array.size)
print(1024 * (peak() - before) / array.size)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not give memory back")
def test_a_file_that_is_read_takes_a_block_of_memory(tmp_path: Path):
    """Of the 8 bytes of each number none, and the 4 that it is made."""
    np.save(tmp_path / "a.npy", np.arange(25_000_000))
    command = [sys.executable, "-c", READ, str(tmp_path / "a.npy")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert 4 <= float(found.stdout) + 0.1 < 6
