"""Messages to other processes whose tensors and arrays are memory that all share.

Tensors go as torch.multiprocessing has them: they are moved to shared memory once, when they are
first sent. Arrays of NumPy are copied there once. Both go as descriptors of files whose names are
gone at once: nothing is left in /dev/shm however processes end, and no resource tracker removes
what others use.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as shared  # teaches pickle to send tensors as shared memory
from numpy.typing import NDArray

LEAST_BYTES = 1 << 16
"""Smaller arrays are sent by value."""


class Sharing:
    """Makes messages; the shared copies of arrays live as long as this.

    Raises:
        RuntimeError: torch is told to share memory under names, which outlives killed processes.
    """

    def __init__(self) -> None:
        if shared.get_sharing_strategy() != "file_descriptor":
            raise RuntimeError(
                "torch.multiprocessing's sharing strategy has to be file_descriptor: shared memory"
                " that has a name outlives processes that are killed"
            )
        self._copies: dict[int, tuple[NDArray[Any], torch.Tensor]] = {}

    def message(self, value: object) -> bytes:
        """To be read once, by `pickle.loads` in one process that this one has spawned."""
        buffer = io.BytesIO()
        _Pickler(buffer, self._reduced).dump(value)
        return buffer.getvalue()

    def _reduced(self, array: NDArray[Any]) -> Any:
        if array.nbytes < LEAST_BYTES or array.dtype.hasobject:
            return array.__reduce__()
        if id(array) not in self._copies:
            copy = torch.empty(array.nbytes, dtype=torch.uint8).share_memory_()
            copy.numpy()[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._copies[id(array)] = array, copy  # the array too: its id is its own
        return _array, (self._copies[id(array)][1], array.dtype, array.shape)


class _Pickler(ForkingPickler):
    def __init__(self, file: io.BytesIO, reduced: Callable[[NDArray[Any]], Any]) -> None:
        super().__init__(file)
        self.dispatch_table[np.ndarray] = reduced


def _array(memory: torch.Tensor, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    return memory.numpy().view(dtype).reshape(shape)
