"""`dgl.sparse`: sparse matrices with values that can be differentiated, in plain torch.

It answers as DGL's, but for these:

- products of matrices have their entries in the order of rows and columns;
- diagonals that are not square, and matrices with several entries at one place, can be multiplied
  with other matrices;
- indices that a shape has no place for are errors;
- `sample` draws by torch's generator.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor

from .arithmetic import broadcast
from .create import (
    diag,
    from_coo,
    from_csc,
    from_csr,
    from_torch_sparse,
    identity,
    spmatrix,
    to_torch_sparse_coo,
    to_torch_sparse_csc,
    to_torch_sparse_csr,
    val_like,
)
from .matrix import SparseMatrix
from .products import sampled

__all__ = [
    "SparseMatrix",
    "add",
    "bsddmm",
    "bspmm",
    "diag",
    "div",
    "from_coo",
    "from_csc",
    "from_csr",
    "from_torch_sparse",
    "identity",
    "inv",
    "matmul",
    "mul",
    "neg",
    "power",
    "reduce",
    "sddmm",
    "smax",
    "smean",
    "smin",
    "softmax",
    "sp_add_v",
    "sp_broadcast_v",
    "sp_div_v",
    "sp_mul_v",
    "sp_sub_v",
    "spmatrix",
    "spmm",
    "sprod",
    "spspmm",
    "sub",
    "sum",
    "to_torch_sparse_coo",
    "to_torch_sparse_csc",
    "to_torch_sparse_csr",
    "val_like",
]


def _matrix(value: object, which: str) -> SparseMatrix:
    if not isinstance(value, SparseMatrix):
        raise AssertionError(f"Expect {which} to be a SparseMatrix object, got {type(value)}.")
    return value


def _tensor(value: object, which: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise AssertionError(f"Expect {which} to be a torch.Tensor, got {type(value)}.")
    return value


def spmm(A: SparseMatrix, X: Tensor) -> Tensor:
    """`A @ X` for a dense `X`, `(M, N)` or `(M,)`, with `A` of `(L, M)`."""
    return _matrix(A, "arg1").times(_tensor(X, "arg2"))


def bspmm(A: SparseMatrix, X: Tensor) -> Tensor:
    """`A @ X` for values of `(nnz, K)` and `X` of `(M, N, K)`: a product for each of the last."""
    return spmm(A, X)


def spspmm(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """`A @ B` for sparse matrices with one number an entry, and no place twice."""
    return _matrix(A, "arg1") @ _matrix(B, "arg2")


def matmul(A: Any, B: Any) -> Any:
    """`A @ B`, of which the first is sparse unless both are dense."""
    if isinstance(A, Tensor) and isinstance(B, Tensor):
        return torch.matmul(A, B)
    return _matrix(A, "arg1, with a sparse arg2,") @ B


def sddmm(A: SparseMatrix, X1: Tensor, X2: Tensor) -> SparseMatrix:
    """`(X1 @ X2) * A` at the entries of `A`, with `A` of `(L, N)`.

    `X1` is `(L, M)` or `(L,)`, `X2` is `(M, N)` or `(N,)`.
    """
    return sampled(_matrix(A, "arg1"), _tensor(X1, "arg2"), _tensor(X2, "arg3"))


def bsddmm(A: SparseMatrix, X1: Tensor, X2: Tensor) -> SparseMatrix:
    """`sddmm` of `(L, M, K)` and `(M, N, K)`: a product for each of the last."""
    return sddmm(A, X1, X2)


def add(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """`A + B`."""
    return A + B


def sub(A: SparseMatrix, B: SparseMatrix) -> SparseMatrix:
    """`A - B`."""
    return A - B


def mul(A: Any, B: Any) -> SparseMatrix:
    """`A * B`, of matrices or of a matrix and a number."""
    return A * B


def div(A: SparseMatrix, B: Any) -> SparseMatrix:
    """`A / B`, of matrices with entries at the same places, or over a number."""
    return A / B


def power(A: SparseMatrix, scalar: Any) -> SparseMatrix:
    """`A ** scalar`, of each entry."""
    return A**scalar


def neg(A: SparseMatrix) -> SparseMatrix:
    """`-A`."""
    return -A


def inv(A: SparseMatrix) -> SparseMatrix:
    """The inverse of a square diagonal matrix."""
    return A.inv()


def reduce(input: SparseMatrix, dim: int | None = None, rtype: str = "sum") -> Tensor:
    """As `SparseMatrix.reduce`."""
    return input.reduce(dim, rtype)


def sum(input: SparseMatrix, dim: int | None = None) -> Tensor:
    """The sum of the entries of columns (`dim=0`), rows (`dim=1`) or all."""
    return input.sum(dim)


def smin(input: SparseMatrix, dim: int | None = None) -> Tensor:
    """The minimum of the entries of columns (`dim=0`), rows (`dim=1`) or all."""
    return input.smin(dim)


def smax(input: SparseMatrix, dim: int | None = None) -> Tensor:
    """The maximum of the entries of columns (`dim=0`), rows (`dim=1`) or all."""
    return input.smax(dim)


def smean(input: SparseMatrix, dim: int | None = None) -> Tensor:
    """The mean of the entries of columns (`dim=0`), rows (`dim=1`) or all."""
    return input.smean(dim)


def sprod(input: SparseMatrix, dim: int | None = None) -> Tensor:
    """The product of the entries of columns (`dim=0`), rows (`dim=1`) or all."""
    return input.sprod(dim)


def softmax(input: SparseMatrix, dim: int = 1) -> SparseMatrix:
    """Softmax over the entries of each row (`dim=1`) or column (`dim=0`)."""
    return input.softmax(dim)


def sp_broadcast_v(A: SparseMatrix, v: Tensor, op: str) -> SparseMatrix:
    """Entries and a number for their column or row: `op` is add, sub, mul or truediv.

    `v` is `(columns,)`, `(1, columns)` or `(rows, 1)`.
    """
    return broadcast(A, v, getattr(operator, op))


def sp_add_v(A: SparseMatrix, v: Tensor) -> SparseMatrix:
    """`sp_broadcast_v` with `add`."""
    return broadcast(A, v, operator.add)


def sp_sub_v(A: SparseMatrix, v: Tensor) -> SparseMatrix:
    """`sp_broadcast_v` with `sub`."""
    return broadcast(A, v, operator.sub)


def sp_mul_v(A: SparseMatrix, v: Tensor) -> SparseMatrix:
    """`sp_broadcast_v` with `mul`."""
    return broadcast(A, v, operator.mul)


def sp_div_v(A: SparseMatrix, v: Tensor) -> SparseMatrix:
    """`sp_broadcast_v` with `truediv`."""
    return broadcast(A, v, operator.truediv)
