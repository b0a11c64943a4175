"""The first numbers of a table that no rank has as a whole: each rank draws its own rows, which are
the same however many ranks there are."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ....runtime.ranks.communicator import Communicator

BLOCK = 1024
"""Rows that are drawn together."""


def drawn(x: nn.Parameter, owned: NDArray[np.int64], seed: int, padding: int | None) -> Tensor:
    """The rows `owned`, ascending, of the parameter of a `nn.Embedding`, from the standard normal
    distribution as torch draws them; the row `padding` is 0."""
    out = torch.empty(len(owned), *x.shape[1:], dtype=x.dtype)
    generator = torch.Generator()
    blocks, first = np.unique(owned // BLOCK, return_index=True)
    for block, low, high in zip(blocks, first, [*first[1:], len(owned)], strict=True):
        generator.manual_seed(seed + int(block))
        rows = torch.empty(BLOCK, *x.shape[1:], dtype=x.dtype).normal_(generator=generator)
        out[low:high] = rows[torch.from_numpy(owned[low:high] - block * BLOCK)]
    if padding is not None:
        out[torch.from_numpy(owned == padding)] = 0.0
    return out


def seed_of_all(communicator: Communicator) -> int:
    """A number of rank 0's generator, on all ranks, whose generators all go on by one number."""
    return communicator.broadcast(int(torch.randint(2**62, ())))
