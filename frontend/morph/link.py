"""A link of limited rate, which stands for an accelerator's where there is none."""

from collections.abc import Mapping
from functools import singledispatch
from time import perf_counter, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray


class RateLimitedLink:
    """Copies the arrays of a batch, and takes as long as a link of this rate would.

    Usable as the operator of (move, {link}). `bytes_moved` counts what went over it.
    """

    def __init__(self, bytes_per_second: float, *, latency: float = 0.0) -> None:
        if not bytes_per_second > 0:
            raise ValueError(f"bytes_per_second: a link has a rate, not {bytes_per_second}")
        if latency < 0:
            raise ValueError(f"latency: seconds of each move, not {latency}")
        self._rate = bytes_per_second
        self._latency = latency
        self.bytes_moved = 0

    def __call__(self, payload: object) -> object:
        """A copy of an array, a mapping, list or tuple of these, or of a batch of `gnnc.loader`."""
        start = perf_counter()
        result, size = copied(payload)
        self.bytes_moved += size
        left = self._latency + size / self._rate - (perf_counter() - start)
        if left > 0:
            sleep(left)
        return result


@singledispatch
def copied(value: object) -> tuple[object, int]:
    """A copy of what moves and its bytes. Libraries register how their batches are copied; what
    is of no registered type, a number or a name, is no load."""
    return value, 0


@copied.register(np.ndarray)
def _(value: NDArray[Any]) -> tuple[object, int]:
    return value.copy(), value.nbytes


@copied.register(Mapping)
def _(value: Mapping[object, object]) -> tuple[object, int]:
    pairs = {k: copied(v) for k, v in value.items()}
    return {k: v for k, (v, _) in pairs.items()}, sum(size for _, size in pairs.values())


@copied.register(list)
@copied.register(tuple)
def _(value: list[object] | tuple[object, ...]) -> tuple[object, int]:
    parts = [copied(v) for v in value]
    values = [v for v, _ in parts]
    return (values if isinstance(value, list) else tuple(values)), sum(s for _, s in parts)
