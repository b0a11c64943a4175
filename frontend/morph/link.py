"""A link of limited rate, which stands for an accelerator's where there is none."""

from collections.abc import Mapping
from time import perf_counter, sleep
from typing import Any, cast

import numpy as np


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
        """A copy of an array, or of a mapping, list or tuple of arrays and what lies between."""
        start = perf_counter()
        result, size = _copied(payload)
        self.bytes_moved += size
        left = self._latency + size / self._rate - (perf_counter() - start)
        if left > 0:
            sleep(left)
        return result


def _copied(value: object) -> tuple[object, int]:
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return array.copy(), array.nbytes
    if isinstance(value, Mapping):
        pairs = {k: _copied(v) for k, v in cast("Mapping[object, object]", value).items()}
        return {k: v for k, (v, _) in pairs.items()}, sum(size for _, size in pairs.values())
    if isinstance(value, list | tuple):
        parts = [_copied(v) for v in cast("list[object] | tuple[object, ...]", value)]
        values = [v for v, _ in parts]
        return (values if isinstance(value, list) else tuple(values)), sum(s for _, s in parts)
    return value, 0
