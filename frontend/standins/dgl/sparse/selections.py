"""Some rows or columns of a matrix, and its entries in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..lookup import grouped
from .pattern import Pattern, coalesced

if TYPE_CHECKING:
    from .matrix import SparseMatrix


class Selections:
    """Methods of a matrix that choose or join entries."""

    def coalesce(self: SparseMatrix) -> SparseMatrix:
        """Each place once, in the order of rows, with the sum of the values there."""
        from .matrix import SparseMatrix

        return SparseMatrix(*coalesced(self._pattern, self.val))

    def has_duplicate(self: SparseMatrix) -> bool:
        """Whether two entries are at one place."""
        return self._pattern.duplicates()

    def index_select(self: SparseMatrix, dim: int, index: Tensor) -> SparseMatrix:
        """The rows (`dim=0`) or columns (`dim=1`) of these numbers, in their order."""
        if not isinstance(index, Tensor):
            raise TypeError(f"{type(index).__name__} is unsupported input type.")
        lines, count = self._lines(dim)
        index = index.long()
        if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < count:
            raise IndexError(f"index_select: index is out of range, dim {dim} has {count}")
        chosen = grouped(lines, count, index)
        places = torch.arange(index.shape[0], device=index.device)
        lengths = torch.bincount(lines, minlength=count)[index]
        return self._chosen(dim, chosen, places.repeat_interleave(lengths), index.shape[0])

    def range_select(self: SparseMatrix, dim: int, index: slice) -> SparseMatrix:
        """The rows (`dim=0`) or columns (`dim=1`) of a slice."""
        if not isinstance(index, slice):
            raise TypeError(f"{type(index).__name__} is unsupported input type.")
        if index.step not in (None, 1):
            raise NotImplementedError(
                f"range_select({dim}, {index}): a slice has steps of 1, as in DGL. Take other rows "
                f"or columns by their numbers, index_select({dim}, torch.arange(..))."
            )
        ids = range(self._lines(dim)[1])[index]
        return self.index_select(dim, torch.arange(ids.start, ids.stop, device=self.device))

    def compact(
        self: SparseMatrix, dim: int, leading_indices: Tensor | None = None
    ) -> tuple[SparseMatrix, Tensor]:
        """The matrix without the rows (`dim=0`) or columns (`dim=1`) that have no entry, and the
        old number of each. Those of `leading_indices` come first, in their order, in any case."""
        lines, count = self._lines(dim)
        leading = lines.new_zeros(0)
        if leading_indices is not None:
            leading = torch.as_tensor(leading_indices, device=lines.device).long()
        others = lines.new_ones(count).index_fill(0, leading, 0).bool()
        used = torch.zeros_like(others).index_fill(0, lines, True)
        old = torch.cat([leading, (used & others).nonzero().flatten()])
        new = lines.new_zeros(count)
        new[old] = torch.arange(old.shape[0], device=old.device)
        entries = torch.arange(self.nnz, device=lines.device)
        return self._chosen(dim, entries, new[lines], old.shape[0]), old

    def sample(
        self: SparseMatrix,
        dim: int,
        fanout: int,
        ids: Tensor | None = None,
        replace: bool = False,
        bias: bool = False,
    ) -> SparseMatrix:
        """At most `fanout` random entries of each row (`dim=0`) or column (`dim=1`) of `ids`, or
        of all; with `replace` that many, where there is one. `bias` draws by values.

        Draws are those of torch's generator, and so others than DGL's.
        """
        if ids is None:
            ids = torch.arange(self._lines(dim)[1], device=self.device)
        part = self.index_select(dim, ids)
        lines, count = part._lines(dim)
        weights = part.val.detach().double() if bias else torch.ones_like(lines).double()
        kept = (weights > 0).nonzero().flatten()
        rows, weights = lines[kept], weights[kept]
        chosen = _drawn(rows, weights, count, fanout, replace)
        entries = kept[chosen]
        return part._chosen(dim, entries, lines[entries], count)

    def _lines(self: SparseMatrix, dim: int) -> tuple[Tensor, int]:
        """The rows or columns of the entries, and how many there are."""
        if dim not in (0, 1):
            raise ValueError("The selection dimension should be 0 or 1.")
        return (self.row, self.shape[0]) if dim == 0 else (self.col, self.shape[1])

    def _chosen(
        self: SparseMatrix, dim: int, entries: Tensor, lines: Tensor, count: int
    ) -> SparseMatrix:
        """Some entries, in other rows or columns."""
        from .matrix import SparseMatrix

        rows, columns = self.shape
        if dim == 0:
            pattern = Pattern(lines, self.col[entries], (count, columns))
        else:
            pattern = Pattern(self.row[entries], lines, (rows, count))
        return SparseMatrix(pattern, self.val[entries])


def _drawn(rows: Tensor, weights: Tensor, count: int, fanout: int, replace: bool) -> Tensor:
    """Which of some entries are drawn: at most `fanout` of each row, by weight."""
    lengths = torch.bincount(rows, minlength=count)
    if not replace:
        # The least of exponential variables with these rates are a draw without replacement.
        times = torch.empty_like(weights).exponential_() / weights
        order = times.argsort()
        order = order[rows[order].argsort(stable=True)]
        starts = lengths.cumsum(0) - lengths
        rank = torch.arange(rows.shape[0], device=rows.device) - starts[rows[order]]
        return order[rank < fanout]
    order = rows.argsort(stable=True)
    below = weights[order].cumsum(0)
    ends = lengths.cumsum(0)
    full = (lengths > 0).nonzero().flatten().repeat_interleave(fanout)
    low = torch.cat([below.new_zeros(1), below])[ends[full] - lengths[full]]
    high = below[ends[full] - 1]
    points = low + torch.rand_like(low) * (high - low)
    places = torch.searchsorted(below, points, right=True)
    return order[places.clamp(max=ends[full] - 1)]
