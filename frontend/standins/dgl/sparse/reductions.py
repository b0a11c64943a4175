"""One number a row or column, of the entries that are there; and softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..reduce import counts, reduce_messages, softmax_by

if TYPE_CHECKING:
    from .matrix import SparseMatrix

REDUCERS = {"sum": "sum", "smin": "min", "smax": "max", "smean": "mean", "sprod": "prod"}
"""Names of reductions, and what they are for rows that lead to one place."""


class Reductions:
    """Methods of a matrix that reduce the values of entries."""

    def reduce(self: SparseMatrix, dim: int | None = None, rtype: str = "sum") -> Tensor:
        """The sum, minimum, maximum, mean or product (`sum`, `smin`, `smax`, `smean`, `sprod`) of
        the entries of each column (`dim=0`) or row (`dim=1`), zero where there are none.

        Gives `(columns, ..)` or `(rows, ..)`, and without `dim` that of all entries.
        """
        if rtype not in REDUCERS:
            raise RuntimeError(f"unknown reduce function {rtype}: it is one of {list(REDUCERS)}")
        if dim is None:
            return _of_all(self.val, rtype)
        index, rows = self._along(dim)
        if rtype == "sprod":
            return _product(self.val, index, rows)
        if rtype == "smean" and not self.val.is_floating_point():
            zeros = self.val.new_zeros((rows, *self.val.shape[1:]))
            at = _over(index, self.val)
            return zeros.scatter_reduce(0, at, self.val, "mean", include_self=False)
        return reduce_messages(self.val, index, rows, REDUCERS[rtype])

    def _along(self: SparseMatrix, dim: int) -> tuple[Tensor, int]:
        """Which row of a result each entry leads to, and how many there are."""
        if dim not in (0, 1):
            raise ValueError(f"dim must be 0 (by columns), 1 (by rows) or None, got {dim!r}")
        return (self.col, self.shape[1]) if dim == 0 else (self.row, self.shape[0])

    def sum(self: SparseMatrix, dim: int | None = None) -> Tensor:
        """`reduce` with `sum`."""
        return self.reduce(dim, "sum")

    def smin(self: SparseMatrix, dim: int | None = None) -> Tensor:
        """`reduce` with `smin`."""
        return self.reduce(dim, "smin")

    def smax(self: SparseMatrix, dim: int | None = None) -> Tensor:
        """`reduce` with `smax`."""
        return self.reduce(dim, "smax")

    def smean(self: SparseMatrix, dim: int | None = None) -> Tensor:
        """`reduce` with `smean`."""
        return self.reduce(dim, "smean")

    def sprod(self: SparseMatrix, dim: int | None = None) -> Tensor:
        """`reduce` with `sprod`."""
        return self.reduce(dim, "sprod")

    def softmax(self: SparseMatrix, dim: int = 1) -> SparseMatrix:
        """Softmax over the entries of each row (`dim=1`) or column (`dim=0`)."""
        return self.like(softmax_by(self.val, *self._along(dim)))


def _of_all(val: Tensor, rtype: str) -> Tensor:
    if rtype == "sum":
        return val.sum(0)
    if rtype == "smean":
        return val.mean(0)
    if rtype == "sprod":
        return val.prod(0)
    return val.amin(0) if rtype == "smin" else val.amax(0)


def _product(val: Tensor, index: Tensor, rows: int) -> Tensor:
    ones = torch.ones((rows, *val.shape[1:]), dtype=val.dtype, device=val.device)
    found = ones.scatter_reduce(0, _over(index, val), val, "prod")
    empty = (counts(index, rows) == 0).reshape((-1,) + (1,) * (val.dim() - 1))
    return found.masked_fill(empty, 0)


def _over(index: Tensor, val: Tensor) -> Tensor:
    """An index of rows as one of all numbers."""
    return index.reshape((-1,) + (1,) * (val.dim() - 1)).expand_as(val)
