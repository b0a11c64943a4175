"""Messages to other processes whose tensors and arrays are memory that all share.

Both are copied to shared memory once, when they are first sent; tensors that are shared already
(`share_memory_`) stay where they are. torch.multiprocessing moves the others, and gives their old
memory back, in which arrays of NumPy that were made of them still read. They go as descriptors of
files whose names are gone at once: nothing is left in /dev/shm however processes end, and no
resource tracker removes what others use.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
import torch.multiprocessing as shared  # teaches pickle to send tensors as shared memory
from numpy.typing import NDArray
from torch import UntypedStorage
from torch.multiprocessing.reductions import reduce_storage

LEAST_BYTES = 1 << 16
"""Smaller arrays are sent by value."""


class Sharing:
    """Makes messages; the shared copies of tensors and arrays live as long as this.

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
        self._storages: dict[int, tuple[UntypedStorage, UntypedStorage]] = {}

    def message(self, value: object) -> bytes:
        """To be read once, by `pickle.loads` in one process that this one has spawned."""
        buffer = io.BytesIO()
        own = {np.ndarray: self._reduced_array, UntypedStorage: self._reduced_storage}
        _Pickler(buffer, own).dump(value)
        return buffer.getvalue()

    def _reduced_storage(self, storage: UntypedStorage) -> Any:
        """Of tensors on the host."""
        if storage.is_shared() or not storage.nbytes():
            return reduce_storage(storage)
        if (key := storage._cdata) not in self._storages:
            copy = torch.UntypedStorage._new_shared(storage.nbytes())
            copy.copy_(storage)
            self._storages[key] = storage, copy  # the storage too: its key is its own
        return reduce_storage(self._storages[key][1])

    def _reduced_array(self, array: NDArray[Any]) -> Any:
        if array.nbytes < LEAST_BYTES or array.dtype.hasobject:
            return array.__reduce__()
        if id(array) not in self._copies:
            copy = torch.empty(array.nbytes, dtype=torch.uint8).share_memory_()
            copy.numpy()[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._copies[id(array)] = array, copy  # the array too: its id is its own
        return _array, (self._copies[id(array)][1], array.dtype, array.shape)


class _Pickler(ForkingPickler):
    def __init__(self, file: io.BytesIO, reduced: Mapping[type, Callable[[Any], Any]]) -> None:
        super().__init__(file)
        self.dispatch_table.update(reduced)


def _array(memory: torch.Tensor, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    return memory.numpy().view(dtype).reshape(shape)
