"""What torch's functions make of sparse matrices, in terms of their entries.

`OPERATIONS` has each function that may be traced with a `Matrix` among its arguments; any other
fails there, and the call runs in torch. The same functions take matrices out of graphs: `Entries`
are those of a matrix whose parts are nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .matrix import Matrix


class Entries(NamedTuple):
    """A matrix of which the parts are tensors, or nodes of a graph (see `Matrix`). Of a combination
    `times` gives the product with a weight (combinations.py)."""

    row: Any
    col: Any
    value: Any
    shape: tuple[Any, Any]
    like: torch.layout
    ordered: bool = True
    times: Callable[[Any], Any] | None = None


def is_matrix(x: object) -> bool:
    """Whether this is a matrix or the entries of one."""
    return isinstance(x, Entries | Matrix)


OPERATIONS: dict[Any, Callable[..., Any]] = {}


def _of(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def define(body: Callable[..., Any]) -> Callable[..., Any]:
        OPERATIONS.update(dict.fromkeys(functions, body))
        return body

    return define


_ALL = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)


def _need(a: Any, *layouts: torch.layout) -> None:
    """Raises RuntimeError unless a matrix has one of these layouts and its entries their order."""
    if a.like not in layouts or not a.ordered:
        order = "" if a.ordered else ", not coalesced"
        raise RuntimeError(f"entries of a tensor in {a.like}{order}, for {layouts}")


def plain(a: Any) -> None:
    """Raises RuntimeError for a combination, of which there are no entries."""
    if isinstance(a, Entries) and a.times is not None:
        raise RuntimeError("features that are combined already are only multiplied with weights")


# ---------------------------------------------------------------- products


@_of(torch.mm, torch.matmul, torch.mv, Tensor.mm, Tensor.matmul, Tensor.mv, Tensor.__matmul__)
def matmul(a: Any, x: Any) -> Any:
    """A matrix times a dense tensor, m or m x F, or F x n times a matrix."""
    if is_matrix(a):
        return product(a, x, "sum")
    return product(transposed(x), a.t(), "sum").t()


@_of(torch.sparse.mm)
def product(a: Any, x: Any, reduce: str = "sum") -> Any:
    """A matrix times a dense tensor, the terms of a row reduced in another way than by a sum.

    Raises:
        RuntimeError: the shapes or types do not fit, or both are sparse.
    """
    if is_matrix(x):
        raise RuntimeError("a product of two sparse matrices")
    if reduce != "sum" and a.like is torch.strided:
        raise RuntimeError("a product of a dense tensor that is reduced otherwise")
    if isinstance(a, Matrix) and a.shape[1] != x.shape[0]:
        raise RuntimeError(f"a matrix of {a.shape[1]} columns times {x.shape[0]} rows")
    if isinstance(a, Matrix) and a.dtype != x.dtype:
        raise RuntimeError(f"a matrix of {a.dtype} times a tensor of {x.dtype}")
    if isinstance(a, Entries) and a.times is not None:
        return a.times(x)
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    return torch.ops.gnnc.sparse_matmul(a.row, a.col, a.value, x, a.shape[0], reduce)


@_of(F.linear)
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Sparse features times a dense weight."""
    out = product(input, weight.t(), "sum")
    return out if bias is None else out + bias


@_of(torch.addmm, torch.sparse.addmm)
def addmm(input: Any, mat1: Any, mat2: Any) -> Any:
    """A product added to something."""
    return input + product(mat1, mat2, "sum")


@_of(torch.sparse.sum, torch._sparse_sum)
def total(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of the rows, or columns, or all of it, as a dense tensor."""
    plain(input)
    value = input.value if dtype is None else input.value.to(dtype)
    dims = {d % 2 for d in (range(2) if dim is None else [dim] if isinstance(dim, int) else dim)}
    if len(dims) == 2:
        return value.sum()
    kept, index = (0, input.row) if dims == {1} else (1, input.col)
    return torch.ops.gnnc.segment_reduce(value, index, 0, input.shape[kept], "sum")


# ---------------------------------------------------------------- other matrices

_TURNED = {
    torch.strided: torch.strided,
    torch.sparse_csr: torch.sparse_csc,
    torch.sparse_csc: torch.sparse_csr,
    torch.sparse_coo: torch.sparse_coo,
}


@_of(Tensor.T.__get__)
def reversed_dims(a: Any) -> Any:
    """The transpose, by a name that torch refuses for CSR and CSC."""
    if a.like in (torch.sparse_csr, torch.sparse_csc):
        raise RuntimeError(f"T of a matrix in {a.like}: use t()")
    return transposed(a)


@_of(torch.t, Tensor.t)
def transposed(a: Any) -> Any:
    """Rows as columns. The entries of COO are in another order then, and torch does not sort them
    either: it is not coalesced."""
    plain(a)
    ordered = a.ordered and a.like is not torch.sparse_coo
    return type(a)(a.col, a.row, a.value, (a.shape[1], a.shape[0]), _TURNED[a.like], ordered)


@_of(torch.detach, Tensor.detach, torch._C._autograd._get_data_attr)
def detached(a: Any) -> Any:
    """The entries without a gradient."""
    return with_values(a, a.value.detach())


@_of(Tensor.coalesce)
def coalesced(a: Any) -> Any:
    """The same: several entries at one place are their sum to products, and nothing compiled shows
    entries that have no order."""
    if a.like is not torch.sparse_coo:
        raise RuntimeError(f"coalesce of a matrix in {a.like}")
    return a


def built(row: Any, col: Any, value: Any, rows: Any, columns: Any, like: torch.layout) -> Any:
    """A matrix of entries, which are in the order of `like`."""
    cls = Matrix if isinstance(row, Tensor) else Entries
    return cls(row, col, value, (rows, columns), like)


def built_loosely(
    row: Any, col: Any, value: Any, rows: Any, columns: Any, like: torch.layout
) -> Any:
    """The same of entries in another order, which no result may show: `graphs.py` looks."""
    return built(row, col, value, rows, columns, like)


def ends(a: Any) -> Any:
    """Rows and columns of the entries, 2 x nnz, whatever the layout."""
    _need(a, *_ALL)
    return torch.stack([a.row, a.col])


def with_values(a: Any, value: Any) -> Any:
    """The same matrix with other entries, in the order of `ends`."""
    plain(a)
    return type(a)(a.row, a.col, value, a.shape, a.like, a.ordered)


for _own in (built, built_loosely, ends, with_values):
    torch._dynamo.allow_in_graph(_own)
    OPERATIONS[_own] = _own

# ---------------------------------------------------------------- parts


@_of(Tensor.numel, Tensor.nelement, torch.numel)
def numel(a: Any) -> Any:
    """All numbers, also those that are 0."""
    plain(a)
    return a.shape[0] * a.shape[1]


@_of(Tensor.values)
def values(a: Any) -> Any:
    """The entries."""
    _need(a, *_ALL)
    return a.value


@_of(Tensor._values)
def coo_values(a: Any) -> Any:
    """The entries of COO."""
    _need(a, torch.sparse_coo)
    return a.value


@_of(Tensor.indices, Tensor._indices)
def indices(a: Any) -> Any:
    """Rows and columns of the entries of COO, 2 x nnz."""
    _need(a, torch.sparse_coo)
    return ends(a)


@_of(Tensor.crow_indices)
def crow_indices(a: Any) -> Any:
    """Where the entries of each row of CSR begin."""
    _need(a, torch.sparse_csr)
    return torch.ops.gnnc.pointer(a.row, a.shape[0])


@_of(Tensor.ccol_indices)
def ccol_indices(a: Any) -> Any:
    """Where the entries of each column of CSC begin."""
    _need(a, torch.sparse_csc)
    return torch.ops.gnnc.pointer(a.col, a.shape[1])


@_of(Tensor.col_indices)
def col_indices(a: Any) -> Any:
    """The column of each entry of CSR."""
    _need(a, torch.sparse_csr)
    return a.col


@_of(Tensor.row_indices)
def row_indices(a: Any) -> Any:
    """The row of each entry of CSC."""
    _need(a, torch.sparse_csc)
    return a.row
