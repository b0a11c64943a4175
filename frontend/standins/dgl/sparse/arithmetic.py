"""Operators of two matrices, and of a matrix and a number or a vector."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .pattern import Pattern, coalesced

if TYPE_CHECKING:
    from .matrix import SparseMatrix


def is_scalar(value: object) -> bool:
    """Whether a value is a number, or a tensor of one."""
    return isinstance(value, Number) or (isinstance(value, Tensor) and value.dim() == 0)


class Arithmetic:
    """The operators of a matrix that work on entries."""

    def __add__(self: SparseMatrix, other: Any) -> SparseMatrix:
        from .matrix import SparseMatrix

        if not isinstance(other, SparseMatrix):
            return NotImplemented
        return _added(self, other)

    def __sub__(self: SparseMatrix, other: Any) -> SparseMatrix:
        from .matrix import SparseMatrix

        if not isinstance(other, SparseMatrix):
            return NotImplemented
        return _added(self, -other)

    def __mul__(self: SparseMatrix, other: Any) -> SparseMatrix:
        if is_scalar(other):
            return self.scaled(other)
        return _multiplied(self, other)

    __rmul__ = __mul__

    def __truediv__(self: SparseMatrix, other: Any) -> SparseMatrix:
        if is_scalar(other):
            return self.like(self.val / other)
        return _divided(self, other)

    def __pow__(self: SparseMatrix, number: Any) -> SparseMatrix:
        return self.like(self.val**number) if is_scalar(number) else NotImplemented

    def __neg__(self: SparseMatrix) -> SparseMatrix:
        return self.scaled(-1)

    def neg(self: SparseMatrix) -> SparseMatrix:
        """The matrix with values of the other sign."""
        return -self

    def scaled(self: SparseMatrix, number: Any) -> SparseMatrix:
        """The matrix times a number."""
        return self.like(self.val * number)

    def inv(self: SparseMatrix) -> SparseMatrix:
        """The inverse of a square diagonal matrix. Raises `AssertionError` for others."""
        if not self.is_diag():
            raise AssertionError("Non-diagonal sparse matrix does not support inversion.")
        if self.shape[0] != self.shape[1]:
            raise AssertionError(f"Expect a square matrix, got shape {self.shape}")
        if self.val.dim() != 1:
            raise AssertionError("inv only supports 1D nonzero val")
        return self.like(1.0 / self.val)


def _fitting(left: SparseMatrix, right: SparseMatrix, what: str) -> None:
    if left.shape[0] != right.shape[0] or left.shape[1] != right.shape[1]:
        raise RuntimeError(
            f"{what} of matrices of different shapes: {tuple(left.shape)} and {tuple(right.shape)}"
        )
    if left.dtype != right.dtype:
        raise RuntimeError(f"{what} of values of different types: {left.dtype} and {right.dtype}")


def _added(left: SparseMatrix, right: SparseMatrix) -> SparseMatrix:
    from .pending import added

    _fitting(left, right, "The sum")
    if left.is_diag() and right.is_diag():
        return left.like(left.val + right.val)
    return added(left, right)


def together(left: SparseMatrix, right: SparseMatrix) -> SparseMatrix:
    """The sum of two matrices, each place once, in the order of rows."""
    from .matrix import SparseMatrix

    row, col = torch.cat([left.row, right.row]), torch.cat([left.col, right.col])
    both = Pattern(row, col, left.shape)
    return SparseMatrix(*coalesced(both, torch.cat([left.val, right.val])))


def _multiplied(left: SparseMatrix, right: SparseMatrix) -> SparseMatrix:
    """The entries at places that both have, in the order of rows."""
    from .matrix import SparseMatrix

    if not isinstance(right, SparseMatrix):
        raise TypeError(f"a matrix times {type(right).__name__}: it is no matrix and no number")
    _fitting(left, right, "The product of entries")
    if left.is_diag() and right.is_diag():
        return left.like(left.val * right.val)
    _without_duplicates("SpSpMul", left, right)
    keys, order = left._pattern.keys().sort()
    others, order_of_others = right._pattern.keys().sort()
    places = torch.searchsorted(others, keys)
    padded = torch.cat([others, others.new_full((1,), -1)])
    both = padded[places] == keys
    mine, theirs = order[both], order_of_others[places[both]]
    pattern = Pattern(left.row[mine], left.col[mine], left.shape)
    return SparseMatrix(pattern, left.val[mine] * right.val[theirs])


def _divided(left: SparseMatrix, right: Any) -> SparseMatrix:
    """Quotients at the same places, in the order of `left`."""
    from .matrix import SparseMatrix

    if not isinstance(right, SparseMatrix):
        raise TypeError(f"a matrix over {type(right).__name__}: it is no matrix and no number")
    _fitting(left, right, "The quotient")
    if left._pattern is right._pattern or (left.is_diag() and right.is_diag()):
        return left.like(left.val / right.val)
    _without_duplicates("SpSpDiv", left, right)
    keys, order = left._pattern.keys().sort()
    others, order_of_others = right._pattern.keys().sort()
    if not torch.equal(keys, others):
        raise RuntimeError("Cannot divide two COO matrices with different sparsities.")
    return left.like(left.val / right.val[order_of_others[order.argsort()]])


def _without_duplicates(what: str, *matrices: SparseMatrix) -> None:
    if any(m.has_duplicate() for m in matrices):
        raise RuntimeError(
            f"{what} does not support matrices with duplicate indices. Call A = A.coalesce() to "
            "dedup first."
        )


def broadcast(matrix: SparseMatrix, v: Tensor, operation: Any) -> SparseMatrix:
    """Entries and the number of a vector for their column, `(columns,)` or `(1, columns)`, or for
    their row, `(rows, 1)`. Raises `AssertionError` for other shapes."""
    v = v.view(1, -1) if v.dim() == 1 else v
    rows, columns = matrix.shape
    if v.dim() == 2 and v.shape[0] == 1 and v.shape[1] == columns and rows != 1:
        of_entry = v.view(-1)[matrix.col]
    elif v.dim() == 2 and v.shape[1] == 1 and v.shape[0] == rows:
        of_entry = v.view(-1)[matrix.row]
    elif v.dim() == 2 and v.shape[0] == rows == 1 and v.shape[1] == columns:
        of_entry = v.view(-1)[matrix.col]
    else:
        raise AssertionError(
            f"Dimension mismatch for broadcasting. Got A.shape = {tuple(matrix.shape)} and "
            f"v.shape = {tuple(v.shape)}."
        )
    if matrix.val.dim() > 1:
        of_entry = of_entry.view(-1, 1)
    return matrix.like(operation(matrix.val, of_entry))
