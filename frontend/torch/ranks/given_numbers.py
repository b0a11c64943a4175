"""The few numbers that a call is given beside rows: rates of learning, bounds, weights of classes.

All ranks are to give the same ones. Where they do not, as where one has another rate, their
parameters would part without a word, so each call compares a checksum of them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from torch import Tensor

from ....runtime.ranks.communicator import Communicator
from ..importer.binding import FromTensor, RowsBinding

MOST = 64
"""Longer arguments are not compared: their checksum would take time in each call."""


def are_few(r: RowsBinding, updated: Collection[str]) -> bool:
    """Whether an argument has such numbers: given, and neither learnt nor changed by the call
    (`updated`)."""
    one_row = isinstance(r.source, FromTensor) and r.source.row_axis is None
    return one_row and math.prod(r.shape) <= MOST and not r.needs_grad and r.name not in updated


def checksum(numbers: Sequence[Tensor]) -> int:
    """A number that others hardly share, 0 or more. What lies on other devices is left out."""
    once = {id(x): x for x in numbers if x.device.type == "cpu"}  # parameters share their rates
    return zlib.crc32(b"".join(x.detach().numpy().tobytes() for x in once.values()))


def agree_on_gradients(communicator: Communicator, given: Mapping[str, Tensor | None]) -> None:
    """Compares the gradients of results that are the same on all ranks, None where there is none.
    All ranks call it, with the same names.

    Raises:
        Disagreement: naming the result.
    """
    each = [0 if d is None or not d.any() else checksum([d.contiguous()]) for d in given.values()]
    both = np.array([*each, *(-x for x in each)], np.int64)
    most = communicator.all_reduce(both, "max")
    for i, (name, mine) in enumerate(zip(given, each, strict=True)):
        if most[i] != -most[i + len(each)]:
            communicator.agree(
                f"the gradient of {name}, a result that is the same on all ranks and takes the "
                "gradient of one process (shares of it are not added up)",
                f"numbers with the checksum {mine}",
            )


def agree(communicator: Communicator, names: Sequence[str], numbers: Sequence[Tensor]) -> None:
    """Finds out which of them ranks differ in.

    Raises:
        Disagreement: naming the argument.
    """
    for name, x in zip(names, numbers, strict=True):
        communicator.agree(f"{name}, an argument of a call", str(x.detach().cpu().tolist()))
