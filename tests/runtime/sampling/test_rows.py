"""Rows copied by number."""

import numpy as np
import pytest

from gnnc.runtime.sampling.rows import gather


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("columns", [0, 1, 3, 200])
@pytest.mark.parametrize("threads", [1, 3])
def test_against_numpy(fine: None, dtype: type, columns: int, threads: int):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 100, (50, columns)).astype(dtype)
    for ids in (rng.integers(0, 50, 400), np.zeros(0, int)):
        made = np.full((ids.size, columns), 7, dtype)
        row = columns * x.itemsize
        gather(x.ctypes.data, 50, row, ids, made.ctypes.data, threads=threads)
        assert np.array_equal(made, x[ids])


def test_unaligned_rows():
    raw = np.arange(81, dtype=np.uint8)
    made = np.zeros(20, np.uint8)
    gather(raw.ctypes.data + 1, 20, 4, np.array([3, 0, 19]), made.ctypes.data + 3)
    assert np.array_equal(made[3:15], raw[1:].reshape(20, 4)[[3, 0, 19]].ravel())


def test_bad_ids():
    x, made = np.zeros(5), np.ones(3)
    for bad in (5, -1):
        with pytest.raises(IndexError, match=rf"ids\[1\] is {bad}, but there are 5 rows"):
            gather(x.ctypes.data, 5, 8, np.array([0, bad, 9]), made.ctypes.data)
    assert (made == 1).all()
    with pytest.raises(TypeError, match="ids must be int64"):
        gather(x.ctypes.data, 5, 8, np.array([0], np.int32), made.ctypes.data)
