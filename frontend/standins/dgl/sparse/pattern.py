"""Where the entries of a sparse matrix are."""

from __future__ import annotations

import torch
from torch import Tensor

from ..reduce import counts

Shape = tuple[int, int]
Compressed = tuple[Tensor, Tensor, Tensor | None]
"""Pointers, indices, and which entry each is (None where the order is that of the entries)."""


class Pattern:
    """The places of entries: `row` and `col`, `int64` of `(nnz,)`, in a matrix of `shape`.

    `diagonal` says that the matrix was made as a diagonal one, with all of its diagonal. Matrices
    of other values share the pattern, and what has been found out about it.
    """

    def __init__(self, row: Tensor, col: Tensor, shape: Shape, diagonal: bool = False):
        self.row, self.col, self.diagonal = row, col, diagonal
        self._rows, self._columns = shape  # numbers in a tuple are constants to a tracer
        self._duplicates: bool | None = False if diagonal else None

    @property
    def shape(self) -> Shape:
        """How many rows and columns there are."""
        return self._rows, self._columns

    def transposed(self) -> Pattern:
        """The pattern of the transpose."""
        return Pattern(self.col, self.row, self.shape[::-1], self.diagonal)

    def keys(self) -> Tensor:
        """A number for each place, in the order of rows, then columns."""
        return self.row * self._columns + self.col

    def duplicates(self) -> bool:
        """Whether two entries are at one place."""
        if self._duplicates is None:
            keys = self.keys()
            self._duplicates = keys.unique().shape[0] != keys.shape[0]
        return self._duplicates

    def compressed(self) -> Compressed:
        """The entries by row; those of a row stay in their order."""
        order = self.row.argsort(stable=True)
        starts = torch.cat([self.row.new_zeros(1), counts(self.row, self._rows).cumsum(0)])
        if bool((order[1:] > order[:-1]).all()):
            return starts, self.col, None
        return starts, self.col.index_select(0, order), order


def diagonal(shape: Shape, device: torch.device) -> Pattern:
    """The places of a diagonal."""
    rows, columns = shape
    # Where a tracer can, it is to know that both are one size.
    ids = torch.arange(rows if rows == columns else min(shape), device=device)
    return Pattern(ids, ids, shape, True)


def coalesced(pattern: Pattern, val: Tensor) -> tuple[Pattern, Tensor]:
    """Each place once, in the order of rows, with the sum of the values there."""
    keys, places = pattern.keys().unique(return_inverse=True)
    columns = pattern.shape[1]
    total = val.new_zeros((keys.shape[0], *val.shape[1:])).index_add(0, places, val)
    made = Pattern(keys // columns, keys % columns, pattern.shape)
    made._duplicates = False
    return made, total
