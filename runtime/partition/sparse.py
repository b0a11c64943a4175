"""SciPy's sparse matrices and graph functions as the partitioner uses them, typed here once.

A matrix is square, in CSR format, with int32 entries, its lines in sorted order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse  # pyright: ignore[reportMissingTypeStubs]
from scipy.sparse import csgraph  # pyright: ignore[reportMissingTypeStubs]

from .edges import Int32, Int64

Matrix = Any


def matrix(rows: Int64, columns: Int64, size: int) -> Matrix:
    """The matrix with 1 where there is at least one pair."""
    ones = np.ones(len(rows), np.int32)
    found: Any = sparse.coo_array((ones, (rows, columns)), (size, size))
    return with_ones(found.tocsr())


def with_ones(found: Matrix) -> Matrix:
    """The matrix, in place, in sorted order and with ones where it has something."""
    found.sort_indices()
    found.data[:] = 1
    return found


def choices(chosen: NDArray[Any], count: int) -> Any:
    """A line a choice with a 1 in the column of what is chosen, of `count`; int32."""
    ones, rows = np.ones(len(chosen), np.int32), np.arange(len(chosen))
    return sparse.csr_array((ones, (rows, chosen)), (len(chosen), count))


def components(neighbours: Matrix) -> tuple[int, Int32]:
    """The number of connected components of a symmetric matrix, and that of each line, int32."""
    found: Any = csgraph
    count, labels = found.connected_components(neighbours, directed=False)
    return int(count), labels.astype(np.int32)


def narrow_order(neighbours: Matrix) -> Int64:
    """The lines of a symmetric matrix in the reverse Cuthill-McKee order, int64."""
    found: Any = csgraph
    return found.reverse_cuthill_mckee(neighbours, symmetric_mode=True).astype(np.int64)
