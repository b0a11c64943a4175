"""What goes to other ranks while nothing else does: rows of a tensor that rank 0 has as a whole, or
numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....runtime.ranks.communicator import Communicator

Int64 = NDArray[np.int64]


def given_out(x: Tensor, owned: Int64, communicator: Communicator) -> Tensor:
    """The rows `owned` of the tensor that rank 0 has, on the CPU; others give one of the same shape
    and dtype, whose numbers do not matter."""
    every = communicator.gather(owned)
    own = torch.empty(len(owned), *x.shape[1:], dtype=x.dtype)
    if every is None:
        sent, counts = _bytes(own[:0]), [0] * communicator.size
    else:
        chosen = torch.from_numpy(np.concatenate(every))
        sent, counts = _bytes(x.detach().cpu()[chosen]), [len(o) for o in every]
    communicator.start(sent, counts, _bytes(own), _of_first(len(owned), communicator), 0).wait()
    return own


def brought(own: Tensor, owned: Int64, total: int, communicator: Communicator) -> Tensor | None:
    """On rank 0 the tensor of `total` rows of which each rank has those `owned`, on the CPU; None
    on other ranks."""
    every = communicator.gather(owned)
    sent = _bytes(own.detach().cpu().contiguous())
    counts = [0] * communicator.size if every is None else [len(o) for o in every]
    found = torch.empty(sum(counts), *own.shape[1:], dtype=own.dtype)
    to_first = _of_first(len(owned), communicator)
    communicator.start(sent, to_first, _bytes(found), counts, 0).wait()
    if every is None:
        return None
    out = torch.empty(total, *own.shape[1:], dtype=own.dtype)
    out[torch.from_numpy(np.concatenate(every))] = found
    return out


def exchanged(numbers: Sequence[Int64], communicator: Communicator) -> list[Int64]:
    """The numbers that each rank has for this one, from those that it has for each."""
    size = communicator.size
    counts, told = np.array([len(x) for x in numbers]), np.empty(size, np.int64)
    communicator.start(counts, [1] * size, told, [1] * size, 0).wait()
    found = np.empty(told.sum(), np.int64)
    sent = np.ascontiguousarray(np.concatenate(numbers))
    communicator.start(sent, counts.tolist(), found, told.tolist(), 0).wait()
    return np.split(found, np.cumsum(told)[:-1])


def _of_first(count: int, communicator: Communicator) -> Sequence[int]:
    """So many rows for or from rank 0, and none of others."""
    return [count] + [0] * (communicator.size - 1)


def _bytes(x: Tensor) -> NDArray[np.uint8]:
    """The memory of a contiguous tensor, [rows, bytes of a row]: dtypes that NumPy has not cross as
    well."""
    width = math.prod(x.shape[1:])
    return x.reshape(len(x), width).view(torch.uint8).numpy().reshape(len(x), width * x.itemsize)
