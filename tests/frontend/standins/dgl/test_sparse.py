"""`gnnc.dgl.sparse` against dense tensors and torch's sparse ones, and DGL's documentation.

DGL's own matrices need a C++ library for each version of torch, and 2.1 has none for torch 2.3 and
later: so what it documents, and its C++ says, is written out here as dense formulas.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import gnnc.dgl
import gnnc.dgl.sparse as dglsp
from gnnc.dgl.sparse import SparseMatrix

ROWS, COLUMNS, ENTRIES = 6, 5, 11


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def places(rows: int = ROWS, columns: int = COLUMNS, seed: int = 0) -> tuple[Tensor, Tensor]:
    """In no order, none twice, and none in the last row and column."""
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randperm((rows - 1) * (columns - 1), generator=generator)[:ENTRIES]
    return keys // (columns - 1), keys % (columns - 1)


def matrix(
    rows: int = ROWS, columns: int = COLUMNS, width: int | None = None, seed: int = 0
) -> SparseMatrix:
    size = (ENTRIES,) if width is None else (ENTRIES, width)
    val = drawn(*size, seed=seed + 1).requires_grad_()
    return dglsp.from_coo(*places(rows, columns, seed), val, (rows, columns))


def dense(A: SparseMatrix) -> Tensor:
    """Entries at one place are added up."""
    full = A.val.new_zeros((*A.shape, *A.val.shape[1:]))
    return full.index_put((A.row, A.col), A.val, accumulate=True)


def same(got: Any, wanted: Tensor, *leaves: Tensor) -> None:
    """Equal values, and equal gradients of a weighted sum."""
    got = dense(got) if isinstance(got, SparseMatrix) else got
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-12)
    if leaves:
        weights = drawn(*wanted.shape, seed=9)
        found, expected = (
            torch.autograd.grad((x * weights).sum(), leaves, retain_graph=True)
            for x in (got, wanted)
        )
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_forms_of_one_matrix() -> None:
    A = matrix()
    starts, columns, order = A.csr()
    assert order is not None
    others = [
        dglsp.spmatrix(torch.stack(A.coo()), A.val, A.shape),
        dglsp.from_csr(starts, columns, A.val[order], A.shape),
        dglsp.from_torch_sparse(dglsp.to_torch_sparse_coo(A)),
        dglsp.from_torch_sparse(dglsp.to_torch_sparse_csr(A)),
        dglsp.from_torch_sparse(dglsp.to_torch_sparse_csc(A)),
        A.T.transpose(),
        A.coalesce(),
    ]
    starts, rows, order = A.csc()
    assert order is not None
    others.append(dglsp.from_csc(starts, rows, A.val[order], A.shape))
    for B in others:
        assert tuple(B.shape) == (ROWS, COLUMNS) and B.nnz == ENTRIES
        same(B, dense(A).detach())
    same(A.T, dense(A).T, A.val)
    same(A.to_dense(), dense(A), A.val)
    assert others[1].csr()[2] is None


def test_shapes_and_values_that_are_not_given() -> None:
    row, col = torch.tensor([1, 1, 2]), torch.tensor([2, 4, 3])
    A = dglsp.from_coo(row, col)
    assert A.shape == (3, 5) and A.val.tolist() == [1, 1, 1] and A.dtype == torch.float32
    assert dglsp.from_csr(torch.tensor([0, 1, 2, 5]), torch.tensor([1, 2, 0, 1, 2])).shape == (3, 3)
    assert dglsp.val_like(A, torch.tensor([2, 2, 2])).long().sum() == 6
    assert repr(A) == (
        "SparseMatrix(indices=tensor([[1, 1, 2],\n"
        "                             [2, 4, 3]]),\n"
        "             values=tensor([1., 1., 1.]),\n"
        "             shape=(3, 5), nnz=3)"
    )
    assert A.double().dtype == torch.float64 and A.float() is A


@pytest.mark.parametrize("shape", [(4, 4), (4, 6), (6, 4)])
def test_diagonals(shape: tuple[int, int]) -> None:
    val = drawn(4).requires_grad_()
    D = dglsp.diag(val, shape)
    full = torch.zeros(shape, dtype=torch.float64)
    full[range(4), range(4)] = val
    assert D.is_diag() and D.T.is_diag() and (D**2).is_diag() and not matrix().is_diag()
    same(D, full, val)
    same(dglsp.identity(shape, dtype=torch.float64), torch.eye(*shape, dtype=torch.float64))
    assert dglsp.identity(shape, d=3).val.shape == (4, 3)
    E = dglsp.diag(drawn(4, seed=2), shape[::-1])
    assert (D @ E).is_diag()
    same(D @ E, full @ dense(E), val)
    same(D + dglsp.diag(val * 2, shape), full * 3, val)
    if shape == (4, 4):
        same(D.inv(), torch.diag(1 / val), val)
    A = matrix(shape[1], 6)
    same(D @ A, full @ dense(A), val, A.val)
    assert shape != (4, 4) or torch.equal((D @ A).row, A.row)
    same(A.T @ D.T, dense(A).T @ full.T, val, A.val)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("width", [None, 3])
def test_two_matrices(name: str, width: int | None) -> None:
    A, B = matrix(width=width), matrix(width=width, seed=3)
    assert not torch.equal(A.row, B.row)
    C = BINARY[name](A, B)
    same(C, BINARY[name](dense(A), dense(B)), A.val, B.val)
    assert torch.equal(C._pattern.keys(), C._pattern.keys().unique())


def test_quotients_at_the_same_places() -> None:
    A, order = matrix(), torch.randperm(ENTRIES)
    B = dglsp.from_coo(A.row[order], A.col[order], drawn(ENTRIES, seed=4), A.shape)
    wanted = torch.where(dense(A) == 0, 0, dense(A) / dense(B).masked_fill(dense(A) == 0, 1))
    same(A / B, wanted, A.val)
    assert torch.equal((A / B).row, A.row)
    same(dglsp.div(A, dglsp.val_like(A, A.val * 2)), (dense(A) != 0).double() / 2)
    with pytest.raises(RuntimeError, match="different sparsities"):
        _ = A / matrix(seed=3)


def test_numbers() -> None:
    A, number = matrix(), torch.tensor(1.5, dtype=torch.float64)
    full = dense(A)
    for B in (2 * A, A * 2, A * torch.tensor(2), torch.tensor(2) * A, dglsp.mul(2, A)):
        same(B, full * 2, A.val)
    same(A / number, full / 1.5, A.val)
    same(dglsp.power(A, 3), full**3, A.val)
    same(-A, -full, A.val)
    same(A.neg(), -full, A.val)


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("width", [None, 3])
def test_reductions(dim: int | None, width: int | None) -> None:
    A = matrix(width=width)
    full, there = dense(A), dense(dglsp.val_like(A, torch.ones_like(A.val))) > 0
    dims = (0, 1) if dim is None else (dim,)
    count = there.sum(dims)
    same(A.sum(dim), full.sum(dims), A.val)
    same(A.smean(dim), full.sum(dims) / count.clamp(min=1), A.val)
    least = full.masked_fill(~there, float("inf")).amin(dims)
    same(A.smin(dim), least.masked_fill(count == 0, 0), A.val)
    most = full.masked_fill(~there, float("-inf")).amax(dims)
    same(dglsp.reduce(A, dim, "smax"), most.masked_fill(count == 0, 0), A.val)
    product = full.masked_fill(~there, 1)
    for d in reversed(dims):
        product = product.prod(d)
    same(dglsp.sprod(A, dim), product.masked_fill(count == 0, 0), A.val)


def test_reductions_of_integers() -> None:
    A = dglsp.from_coo(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 2]), torch.tensor([1, 1, 2]))
    assert A.sum().item() == 4 and A.sum(0).tolist() == [2, 0, 2] and A.sum(1).tolist() == [1, 3]
    assert A.smax(0).tolist() == [1, 0, 2] and A.smin(1).tolist() == [1, 1]
    assert A.smean(1).tolist() == [1, 1] and A.sprod(1).tolist() == [1, 2]


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("width", [None, 3])
def test_softmax(dim: int, width: int | None) -> None:
    A = matrix(width=width)
    there = dense(dglsp.val_like(A, torch.ones_like(A.val))) > 0
    full = dense(A).masked_fill(~there, float("-inf"))
    wanted = full.softmax(dim).masked_fill(~there, 0)
    same(dglsp.softmax(A, dim), wanted, A.val)


def test_products_with_dense_matrices() -> None:
    A, X = matrix(), drawn(COLUMNS, 4, seed=5).requires_grad_()
    same(A @ X, dense(A) @ X, A.val, X)
    same(dglsp.spmm(A, X[:, 0]), dense(A) @ X[:, 0], A.val, X)
    B, Y = matrix(width=3), drawn(COLUMNS, 4, 3, seed=6).requires_grad_()
    same(dglsp.bspmm(B, Y), torch.einsum("lmk,mnk->lnk", dense(B), Y), B.val, Y)
    same(dglsp.matmul(X.T, X), X.T @ X)
    left, right = (
        drawn(ROWS, 4, seed=7).requires_grad_(),
        drawn(4, COLUMNS, seed=8).requires_grad_(),
    )
    same(dglsp.sddmm(A, left, right), (left @ right) * dense(A), A.val, left, right)
    lines = left[:, 0], right[0]
    same(dglsp.sddmm(A, *lines), torch.outer(*lines) * dense(A), A.val, left, right)
    left, right = drawn(ROWS, 4, 3, seed=7), drawn(4, COLUMNS, 3, seed=8)
    both = torch.einsum("lmk,mnk->lnk", left, right)
    same(dglsp.bsddmm(B, left, right), both * dense(B), B.val)
    same(dglsp.bsddmm(A, left, right), both * dense(A).unsqueeze(-1), A.val)


def test_products_of_sparse_matrices() -> None:
    A, B = matrix(), matrix(COLUMNS, 7, seed=3)
    same(dglsp.spspmm(A, B), dense(A) @ dense(B), A.val, B.val)
    same(A @ B @ dense(B).T, dense(A) @ dense(B) @ dense(B).T, A.val, B.val)


def test_vectors_over_rows_and_columns() -> None:
    A, B, v, w = matrix(), matrix(width=3), drawn(ROWS, 1), drawn(COLUMNS)
    there = dense(A) != 0
    same(dglsp.sp_mul_v(A, v), dense(A) * v, A.val)
    same(dglsp.sp_add_v(A, w), (dense(A) + w) * there, A.val)
    same(dglsp.sp_sub_v(A, w.view(1, -1)), (dense(A) - w) * there, A.val)
    same(dglsp.sp_div_v(B, v), dense(B) / v.unsqueeze(-1), B.val)
    same(dglsp.sp_broadcast_v(A, v, "truediv"), dense(A) / v, A.val)
    with pytest.raises(AssertionError, match="Dimension mismatch"):
        dglsp.sp_mul_v(A, drawn(ROWS, 2))


def test_duplicates() -> None:
    row, col = torch.tensor([1, 0, 0, 0, 1]), torch.tensor([1, 1, 1, 2, 2])
    A = dglsp.from_coo(row, col, torch.arange(5.0))
    assert A.has_duplicate() and not A.coalesce().has_duplicate()
    assert A.coalesce().indices().tolist() == [[0, 0, 1, 1], [1, 2, 1, 2]]
    assert A.coalesce().val.tolist() == [3, 3, 0, 4]
    with pytest.raises(RuntimeError, match="duplicate indices"):
        A * A


def test_products_of_duplicates() -> None:
    val = torch.arange(1.0, 6.0, dtype=torch.float64, requires_grad=True)
    row, col = torch.tensor([1, 0, 0, 0, 1]), torch.tensor([1, 1, 1, 2, 2])
    A = dglsp.from_coo(row, col, val, (2, 3))
    same(A @ A.T, dense(A) @ dense(A).T, val)
    same(A.T @ A, dense(A).T @ dense(A), val)
    columns, rows = drawn(3, seed=1), drawn(2, seed=2)
    same(A @ dglsp.diag(columns), dense(A) * columns, val)
    same(dglsp.diag(rows) @ A, dense(A) * rows.unsqueeze(1), val)


def test_some_rows_and_columns() -> None:
    A = matrix()
    for dim, ids in ((0, [3, 0, 3]), (1, [2, 4])):
        wanted = dense(A).index_select(dim, torch.tensor(ids))
        same(A.index_select(dim, torch.tensor(ids)), wanted, A.val)
    same(A.range_select(0, slice(1, 3)), dense(A)[1:3], A.val)
    same(A.range_select(1, slice(None, -2)), dense(A)[:, :-2], A.val)
    B, rows = A.compact(0)
    assert rows.tolist() == A.row.unique().tolist()
    same(B, dense(A)[rows], A.val)
    B, columns = A.compact(1, torch.tensor([4, 1]))
    assert columns.tolist()[:2] == [4, 1] and 4 not in A.col
    same(B, dense(A)[:, columns], A.val)


@pytest.mark.parametrize("bias", [False, True])
def test_samples(bias: bool) -> None:
    A = dglsp.val_like(matrix(), torch.arange(ENTRIES).double())
    ids = torch.tensor([2, 0])
    for dim in (0, 1):
        whole = dense(A).index_select(dim, ids)
        part = A.sample(dim, 2, ids, bias=bias)
        lines = part.row if dim == 0 else part.col
        there = (whole > 0) if bias else (A.index_select(dim, ids).to_dense() >= 0) & (whole != 0)
        assert torch.bincount(lines, minlength=2).max() <= 2 and part.nnz >= 1
        assert bool((whole[part.row, part.col] == part.val).all()) and bool(there.any())
        again = A.sample(dim, 5, ids, replace=True, bias=bias)
        counts = torch.bincount(again.row if dim == 0 else again.col, minlength=2)
        assert set(counts.tolist()) <= {0, 5}
        assert bool((whole[again.row, again.col] == again.val).all())


def test_a_graph_as_a_matrix() -> None:
    g = gnnc.dgl.graph(([0, 1, 2, 2], [1, 2, 0, 0]), num_nodes=4)
    g.edata["w"] = torch.arange(4.0)
    A = g.adj(eweight_name="w")
    assert A.shape == (4, 4) and A.val is g.edata["w"] and A.has_duplicate()
    assert g.adj().val.tolist() == [1, 1, 1, 1]


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "rows": (lambda: dglsp.from_coo(*places(), shape=(3, 5)), IndexError, "row has the number"),
    "values": (lambda: dglsp.from_coo(*places(), drawn(3)), RuntimeError, "val has 3"),
    "dimensions": (lambda: dglsp.val_like(matrix(), drawn(11, 1, 1)), AssertionError, "vectors"),
    "indices": (lambda: dglsp.spmatrix(torch.zeros(3, 4)), RuntimeError, "indices must be"),
    "diagonal": (lambda: dglsp.diag(drawn(3), (4, 4)), AssertionError, "min"),
    "inverse": (lambda: matrix().inv(), AssertionError, "Non-diagonal"),
    "dense": (lambda: matrix() @ drawn(3, 2), RuntimeError, "SpMM: Invalid input shapes"),
    "types": (lambda: matrix() @ drawn(5, 2).float(), RuntimeError, "float32"),
    "sparse": (lambda: matrix() @ matrix(), RuntimeError, "SpSpMM"),
    "sampled": (lambda: dglsp.sddmm(matrix(), drawn(6, 2), drawn(3, 5)), RuntimeError, "SDDMM"),
    "sum": (lambda: matrix() + matrix(5, 6), RuntimeError, "different shapes"),
    "number": (lambda: matrix() + 1, TypeError, "unsupported operand"),
    "order": (lambda: drawn(2, 6) @ matrix(), TypeError, "unsupported operand"),
    "function": (lambda: torch.exp(matrix()), TypeError, "to_dense"),  # pyright: ignore
    "reducer": (lambda: matrix().reduce(0, "max"), RuntimeError, "unknown reduce function max"),
    "dim": (lambda: matrix().sum(2), ValueError, "dim must be"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong(name: str) -> None:
    call, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        call()


def test_import_dgl_sparse() -> None:
    """By itself, and where DGL imports but its matrices do not."""
    code = """
import gnnc.dgl
assert gnnc.dgl.install(always=True)
import dgl.sparse as dglsp
from dgl.sparse import spmatrix
assert dglsp is gnnc.dgl.sparse and spmatrix is dglsp.spmatrix
"""
    lent = """
import sys, types
real = types.ModuleType("dgl")
real.__path__, real.DGLGraph = [], object
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "dgl":
            import importlib.machinery
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return real
    def exec_module(self, module):
        pass
sys.meta_path.insert(0, Finder())
import gnnc.dgl
assert not gnnc.dgl.install()
import dgl
import dgl.sparse as dglsp
assert dglsp is gnnc.dgl.sparse and dgl.sparse is dglsp
"""
    for script in (code, lent):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
