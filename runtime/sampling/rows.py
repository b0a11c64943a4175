"""Rows of features for the nodes of a batch, copied by the thread that asks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import kernels


def gather(
    source: int, rows: int, row_bytes: int, ids: NDArray[Any], target: int, *, threads: int = 1
) -> None:
    """Copies rows `ids` of an array to another one, both given by address and contiguous.

    Args:
        source, target: addresses of arrays with `rows` and `len(ids)` rows of `row_bytes` bytes.
        ids: shape (n,), int64.

    Raises:
        IndexError: an id is no row.
        TypeError: ids of another dtype.
    """
    if ids.dtype != np.int64:
        raise TypeError(f"ids must be int64, got {ids.dtype}")
    ids = np.ascontiguousarray(ids)
    call = kernels.library().gnnc_gather_rows
    bad = call(source, rows, row_bytes, ids.ctypes.data, ids.size, target, threads)
    if bad != kernels.OK:
        raise IndexError(f"ids[{bad}] is {int(ids[bad])}, but there are {rows} rows")
