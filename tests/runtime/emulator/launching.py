"""Kernels that are written in tests, launched as a program would launch them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from gnnc.runtime.emulator import Emulator, build

ORDERS = range(4)
"""In order, backwards, and two that are shuffled."""

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3
)

Size = int | tuple[int, ...]


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, that kernels may only read."""
    array.flags.writeable = False
    return array


@contextmanager
def allowed(emulator: Emulator, arrays: list[np.ndarray]) -> Iterator[None]:
    for array in arrays:
        emulator.allow(array.ctypes.data, array.nbytes, array.flags.writeable)
    try:
        yield
    finally:
        emulator.forget()


def launch(emulator: Emulator, kernel: str, *args, grid: Size = 1, block: Size = 32, shared=0):
    """What `emulated_launch` returns. Arguments are arrays and NumPy's numbers."""
    values = [np.uint64(a.ctypes.data) if isinstance(a, np.ndarray) and a.ndim else a for a in args]
    cells = [np.array(value) for value in values]
    pointers = (ctypes.c_void_p * max(len(cells), 1))(*[cell.ctypes.data for cell in cells])
    sizes = [(*((s,) if isinstance(s, int) else s), 1, 1)[:3] for s in (grid, block)]
    call = _LAUNCH(emulator.launch)
    handle = emulator.handle(kernel)
    return call(handle, *sizes[0], *sizes[1], shared, None, ctypes.addressof(pointers), None)


def run(device: str, *args, order: int = 0, **how) -> None:
    """Launch the kernel named `k` of a text, with its arrays allowed."""
    emulator = Emulator(build(device))
    emulator.order = order
    with allowed(emulator, [a for a in args if isinstance(a, np.ndarray) and a.ndim]):
        launch(emulator, "k", *args, **how)
    emulator.check()


def line(device: str, mark: str) -> int:
    """The number of the line that ends in the comment ``// mark``."""
    (found,) = [i for i, t in enumerate(device.splitlines(), 1) if t.endswith(f"// {mark}")]
    return found
