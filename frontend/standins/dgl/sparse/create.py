"""Matrices from tensors, and as sparse tensors of torch."""

from __future__ import annotations

import torch
from torch import Tensor

from .matrix import SparseMatrix
from .pattern import Pattern, Shape, diagonal


def spmatrix(
    indices: Tensor, val: Tensor | None = None, shape: Shape | None = None
) -> SparseMatrix:
    """Of rows and columns, `(2, nnz)`, and values, `(nnz,)` or `(nnz, D)`, or ones.

    Without `shape` there are as many rows and columns as the indices need. Raises
    `AssertionError` for other values, `RuntimeError` for other indices, `IndexError` for indices
    that `shape` has no place for.
    """
    if indices.dim() != 2 or indices.shape[0] != 2:
        raise RuntimeError(f"indices must be of shape (2, nnz), got {tuple(indices.shape)}")
    return from_coo(indices[0], indices[1], val, shape)


def from_coo(
    row: Tensor, col: Tensor, val: Tensor | None = None, shape: Shape | None = None
) -> SparseMatrix:
    """As `spmatrix`, of rows and columns one by one."""
    row, col = row.long(), col.long()
    if row.dim() != 1 or row.shape != col.shape:
        raise RuntimeError(
            f"row and col must be of one shape (nnz,), got {tuple(row.shape)} and "
            f"{tuple(col.shape)}"
        )
    if shape is None:
        shape = int(row.max()) + 1, int(col.max()) + 1
    rows, columns = shape
    if not torch.compiler.is_dynamo_compiling() and row.numel():
        _check_range("row", row, rows)
        _check_range("col", col, columns)
    return SparseMatrix(Pattern(row, col, (rows, columns)), _values(val, row))


def _check_range(name: str, ids: Tensor, count: int) -> None:
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= count:
        raise IndexError(f"{name} has the number {low if low < 0 else high}, shape {count} of it")


def _values(val: Tensor | None, row: Tensor) -> Tensor:
    if val is None:
        return torch.ones(row.shape[0], device=row.device)
    if val.dim() > 2 or val.dim() == 0:
        raise AssertionError("The values of a SparseMatrix can only be scalars or vectors.")
    if val.shape[0] != row.shape[0]:
        raise RuntimeError(f"there are {row.shape[0]} entries, but val has {val.shape[0]}")
    return val


def from_csr(
    indptr: Tensor, indices: Tensor, val: Tensor | None = None, shape: Shape | None = None
) -> SparseMatrix:
    """Of pointers, `(rows + 1,)`, and the columns of each row one after the other, `(nnz,)`."""
    if shape is None:
        shape = indptr.shape[0] - 1, int(indices.max()) + 1
    return from_coo(_lines(indptr, indices, shape[0]), indices, val, shape)


def from_csc(
    indptr: Tensor, indices: Tensor, val: Tensor | None = None, shape: Shape | None = None
) -> SparseMatrix:
    """Of pointers, `(columns + 1,)`, and the rows of each column one after the other, `(nnz,)`."""
    if shape is None:
        shape = int(indices.max()) + 1, indptr.shape[0] - 1
    return from_coo(indices, _lines(indptr, indices, shape[1]), val, shape)


def _lines(indptr: Tensor, indices: Tensor, count: int) -> Tensor:
    """The row of each entry, where rows have pointers."""
    if indptr.shape[0] != count + 1:
        raise RuntimeError(f"indptr has {indptr.shape[0]} pointers, {count} + 1 are needed")
    numbers = torch.arange(count, device=indptr.device)
    return numbers.repeat_interleave(indptr.diff(), output_size=indices.shape[0])


def val_like(mat: SparseMatrix, val: Tensor) -> SparseMatrix:
    """A matrix with other values, `(nnz,)` or `(nnz, D)`, at the places of the entries of `mat`."""
    if val.dim() > 2 or val.dim() == 0:
        raise AssertionError("The values of a SparseMatrix can only be scalars or vectors.")
    return mat.like(val)


def diag(val: Tensor, shape: Shape | None = None) -> SparseMatrix:
    """A diagonal matrix of the values `(N,)` or `(N, D)`; one of `shape` has `N` as the lesser."""
    if val.dim() > 2 or val.dim() == 0:
        raise AssertionError("The values of a DiagMatrix can only be scalars or vectors.")
    rows, columns = (val.shape[0], val.shape[0]) if shape is None else shape
    pattern = diagonal((rows, columns), val.device)
    if val.shape[0] != pattern.row.shape[0]:
        raise AssertionError(
            "Expect len(val) to be min(shape) for a diagonal matrix, got "
            f"{val.shape[0]} for len(val) and {shape} for shape."
        )
    return SparseMatrix(pattern, val)


def identity(
    shape: Shape,
    d: int | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> SparseMatrix:
    """A matrix with ones on the diagonal, each `d` times if that is given."""
    rows, columns = shape
    count = rows if rows == columns else min(rows, columns)
    val = torch.ones((count,) if d is None else (count, d), dtype=dtype, device=device)
    return diag(val, (rows, columns))


def from_torch_sparse(torch_sparse_tensor: Tensor) -> SparseMatrix:
    """Of a sparse tensor of torch, COO, CSR or CSC; one that is not coalesced stays so."""
    t = torch_sparse_tensor
    if t.layout == torch.sparse_coo:
        return spmatrix(t._indices(), t._values(), (t.shape[0], t.shape[1]))
    if t.layout == torch.sparse_csr:
        return from_csr(t.crow_indices(), t.col_indices(), t.values(), (t.shape[0], t.shape[1]))
    if t.layout == torch.sparse_csc:
        return from_csc(t.ccol_indices(), t.row_indices(), t.values(), (t.shape[0], t.shape[1]))
    raise AssertionError(
        f"Cannot convert Pytorch sparse tensor with layout {t.layout} to DGL sparse."
    )


def to_torch_sparse_coo(spmat: SparseMatrix) -> Tensor:
    """The matrix as a COO tensor of torch."""
    size = (*spmat.shape, *spmat.val.shape[1:])
    return torch.sparse_coo_tensor(spmat.indices(), spmat.val, size, check_invariants=False)


def to_torch_sparse_csr(spmat: SparseMatrix) -> Tensor:
    """The matrix as a CSR tensor of torch."""
    return _compressed(spmat, spmat.csr(), torch.sparse_csr_tensor)


def to_torch_sparse_csc(spmat: SparseMatrix) -> Tensor:
    """The matrix as a CSC tensor of torch."""
    return _compressed(spmat, spmat.csc(), torch.sparse_csc_tensor)


def _compressed(spmat: SparseMatrix, parts: tuple[Tensor, Tensor, Tensor | None], make) -> Tensor:
    starts, indices, order = parts
    val = spmat.val if order is None else spmat.val.index_select(0, order)
    size = (*spmat.shape, *spmat.val.shape[1:])
    return make(starts, indices, val, size, check_invariants=False)
