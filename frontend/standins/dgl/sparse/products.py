"""Products of matrices: sparse and dense, sampled, and sparse with sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..lookup import ranges
from ..reduce import counts, reduce_messages
from .pattern import Pattern, coalesced

if TYPE_CHECKING:
    from .matrix import SparseMatrix


class Products:
    """The `@` of a matrix."""

    def __matmul__(self: SparseMatrix, other: Any) -> Any:
        from .matrix import SparseMatrix

        if isinstance(other, Tensor):
            return self.times(other)
        if isinstance(other, SparseMatrix):
            return multiplied(self, other)
        raise AssertionError(
            f"Expect arg2 to be a torch Tensor or SparseMatrix object, got {type(other)}."
        )

    def times(self: SparseMatrix, X: Tensor) -> Tensor:
        """The product with a dense matrix: `(columns, N)` or `(columns,)`, and `(columns, N, K)`
        for values of `(nnz, K)`."""
        _check_dense(self, X)
        val = self.val if X.dim() == 1 else self.val.unsqueeze(1)
        return reduce_messages(val * X.index_select(0, self.col), self.row, self.shape[0], "sum")

    def _left_scaled(self: SparseMatrix, diagonal: Tensor) -> SparseMatrix:
        """The product of a diagonal and the matrix."""
        return self.like(diagonal.index_select(0, self.row) * self.val)

    def _right_scaled(self: SparseMatrix, diagonal: Tensor) -> SparseMatrix:
        """The product of the matrix and a diagonal."""
        return self.like(diagonal.index_select(0, self.col) * self.val)


def _check_dense(A: SparseMatrix, X: Tensor) -> None:
    batched = X.dim() == 3 or A.val.dim() == 2
    fits = A.shape[1] == X.shape[0] and X.dim() <= 3
    if batched:
        fits = fits and X.dim() == A.val.dim() + 1 and X.shape[2] == A.val.shape[1]
    if not fits:
        raise RuntimeError(
            f"SpMM: Invalid input shapes. sparse_mat: {tuple(A.shape)}, sparse_val: "
            f"{tuple(A.val.shape)}, dense_mat: {tuple(X.shape)}. Valid input shapes (sparse_mat, "
            "dense_mat) are: (1) (n, m) and (m, k); (2) (n, m) and (m,); (3) (n, m, b) and "
            "(m, k, b)."
        )
    if A.dtype != X.dtype:
        raise RuntimeError(
            f"SpMM: the non-zero values are of {A.dtype}, the dense matrix of {X.dtype}."
        )


def multiplied(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """The product of two sparse matrices, whose values are one number an entry."""
    from .pending import product

    if A.shape[1] != B.shape[0]:
        raise RuntimeError(
            "SpSpMM: the second dim of lhs_mat should be equal to the first dim of the second "
            f"matrix, got {tuple(A.shape)} and {tuple(B.shape)}"
        )
    _check_values(A, B)
    if A.is_diag() and B.is_diag():
        return _of_diagonals(A, B)
    if A.is_diag() and A.shape[0] == A.shape[1]:
        return B._left_scaled(A.val)
    if B.is_diag() and B.shape[0] == B.shape[1]:
        return A._right_scaled(B.val)
    return product(A, B)


def _check_values(A: SparseMatrix, B: SparseMatrix) -> None:
    for side, matrix in (("lhs_mat", A), ("rhs_mat", B)):
        if not matrix._has_numbers():
            raise RuntimeError(f"SpSpMM: the value shape of {side} should be 1-D")
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"SpSpMM: lhs_mat and rhs_mat should have the same dtype: {A.dtype}, {B.dtype}"
        )


def _of_diagonals(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """Where one is not square, the diagonal of the product may be longer than theirs."""
    from .create import diag

    shape = A.shape[0], B.shape[1]
    if A.shape[0] == A.shape[1] == B.shape[1]:
        return A.like(A.val * B.val)
    common, rows = min(*A.shape, B.shape[1]), min(shape)
    val = A.val[:common] * B.val[:common]
    return diag(torch.cat([val, val.new_zeros(rows - common)]), shape)


def expanded(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """The product, entry by entry, each place once, in the order of rows."""
    from .matrix import SparseMatrix

    by_row = B.row.argsort(stable=True)
    in_row = counts(B.row, B.shape[0])
    lengths = in_row.index_select(0, A.col)
    starts = (in_row.cumsum(0) - in_row).index_select(0, A.col)
    mine = torch.arange(A.nnz, device=A.device).repeat_interleave(lengths)
    theirs = by_row[ranges(starts, lengths)]
    pattern = Pattern(A.row[mine], B.col[theirs], (A.shape[0], B.shape[1]))
    return SparseMatrix(*coalesced(pattern, A.val[mine] * B.val[theirs]))


def sampled(A: SparseMatrix, X1: Tensor, X2: Tensor) -> SparseMatrix:
    """`(X1 @ X2) * A` at the entries of `A`: `(L, M)` and `(M, N)`, `(L,)` and `(N,)`, or with a
    last dimension of `K`, for which values are `(nnz,)` or `(nnz, K)`."""
    X1 = X1.unsqueeze(1) if X1.dim() == 1 else X1
    X2 = X2.unsqueeze(0) if X2.dim() == 1 else X2
    fits = X1.dim() == X2.dim() <= 3 and X1.shape[0] == A.shape[0] and X1.shape[1] == X2.shape[0]
    fits = fits and X2.shape[1] == A.shape[1]
    if fits and X1.dim() == 3:
        fits = X1.shape[2] == X2.shape[2] and (A.val.dim() == 1 or A.val.shape[1] == X1.shape[2])
    if not fits:
        raise RuntimeError(
            f"SDDMM: Invalid input shapes. sparse_mat: {tuple(A.shape)}, sparse_val: "
            f"{tuple(A.val.shape)}, mat1: {tuple(X1.shape)}, mat2: {tuple(X2.shape)}."
        )
    if X1.dtype != X2.dtype:
        raise RuntimeError(
            f"SDDMM: the two dense matrices should have the same dtype: {X1.dtype}, {X2.dtype}"
        )
    left, right = X1.index_select(0, A.row), X2.transpose(0, 1).index_select(0, A.col)
    found = (left * right).sum(1)
    val = A.val.unsqueeze(-1) if A.val.dim() < found.dim() else A.val
    return A.like(found * val)
