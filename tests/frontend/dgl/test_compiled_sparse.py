"""Models as DGL's examples have them for `dgl.sparse`, compiled over matrices of `gnnc.dgl.sparse`:
the values and gradients of the same code in eager, one program for matrices of all sizes. (What the
eager code computes is compared with dense formulas in `standins/dgl/test_sparse.py`.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import gnnc
import gnnc.dgl.sparse as dglsp

from .compiled import check, dgl, graph, run

WIDTH, HEADS = 6, 2


def square(n: int, m: int, e: int) -> Any:
    """Adjacency with some loops, and no place twice."""
    keys = torch.randperm(n * n)[:e]
    return dglsp.from_coo(keys // n, keys % n, shape=(n, n))


def incidence(n: int, m: int, e: int) -> Any:
    """Nodes and hyperedges, each of which has another."""
    keys = torch.cat(
        [torch.randperm(n * m)[:e], torch.arange(n) * m + torch.arange(n) % m]
    ).unique()
    return dglsp.from_coo(keys // m, keys % m, shape=(n, m))


class Model(nn.Module):
    """A function of a matrix with these values, of features, and of layers."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        self.first, self.second = nn.Linear(WIDTH, 4), nn.Linear(4, 4)
        self.left, self.right = nn.Parameter(torch.randn(2, HEADS)), nn.Linear(2 * 4, 1)

    def forward(self, A: Any, val: Tensor, X: Tensor) -> Tensor:
        return self.function(self, dglsp.val_like(A, val), X)


def gcn(model: Model, A: Any, X: Tensor) -> Tensor:
    """The matrix is normalised in the call."""
    A_hat = A + dglsp.identity(A.shape, dtype=A.dtype)
    D = dglsp.diag(A_hat.sum(0)) ** -0.5
    for layer in (model.first, model.second):
        X = D @ A_hat @ D @ layer(X).relu()
    return X


def sgc(model: Model, A: Any, X: Tensor) -> Tensor:
    D = dglsp.diag(A.smax(1) + 1).inv()
    for _ in range(2):
        X = D @ A @ X
    return model.first(X)


def appnp(model: Model, A: Any, X: Tensor) -> Tensor:
    Z = Z_0 = model.first(X)
    for _ in range(3):
        A_drop = dglsp.val_like(A, A.val * 0.9)
        Z = (1 - 0.1) * A_drop @ Z + 0.1 * Z_0
    return Z


def gat(model: Model, A: Any, X: Tensor) -> Tensor:
    Z = model.first(X).view(X.shape[0], 2, HEADS)
    e = (Z * model.left).sum(1)[A.row] + (Z * model.left.sin()).sum(1)[A.col]
    attention = dglsp.val_like(A, F.leaky_relu(e) * A.val.unsqueeze(1)).softmax()
    return dglsp.bspmm(attention, Z).flatten(1)


def twirls(model: Model, A: Any, X: Tensor) -> Tensor:
    Y = Y0 = model.first(X)
    I = dglsp.identity(A.shape, dtype=A.dtype)  # noqa: E741
    D = 1.5 * dglsp.diag(A.sum(1)) + I
    for _ in range(2):
        Y = 0.5 * Y + 0.5 * (D**-1) @ (1.5 * A @ Y + Y0)
    distance = torch.linalg.vector_norm(Y[A.row] - Y[A.col], dim=1)
    weighted = dglsp.val_like(A, torch.clamp(0.5 / (distance + 1e-3), 0.0, 1.0))
    return (dglsp.diag(weighted.sum(1)) + I) @ Y


def transformer(model: Model, A: Any, X: Tensor) -> Tensor:
    q = model.first(X)
    attention = dglsp.sddmm(A, q, model.second(q).T) / 2.0
    return attention.softmax() @ q - (-A).T @ q


def weighted(model: Model, A: Any, X: Tensor) -> Tensor:
    h = model.first(X)
    scaled = dglsp.sp_div_v(dglsp.sp_mul_v(A, h[:, :1]), h[:, 1] ** 2 + 1)
    return scaled @ h + torch.stack([A.smean(1), A.smin(0), A.sprod(1), A.smax(0)], 1)


def laplacian(H: Any) -> Any:
    d_V, d_E = H.sum(1), H.sum(0)
    W = dglsp.identity((d_E.shape[0], d_E.shape[0]), dtype=H.dtype)
    D = dglsp.diag(d_V**-0.5)
    return D @ H @ W @ dglsp.diag(d_E**-1) @ H.T @ D


def hypergraph(model: Model, H: Any, X: Tensor) -> Tensor:
    """The Laplacian is a product of sparse matrices that no one makes."""
    L = laplacian(H)
    return L @ model.second((2 * L - L.T) @ model.first(X)).relu()


def hypergraph_attention(model: Model, H: Any, X: Tensor) -> Tensor:
    Z = model.first(X)
    Z_edges = H.T @ Z
    sim = model.right(torch.cat([Z[H.row], Z_edges[H.col]], 1))
    H_att = dglsp.val_like(H, F.leaky_relu(sim, 0.2).squeeze(1)).softmax()
    return laplacian(H_att) @ Z


ON_GRAPHS = [gcn, sgc, appnp, gat, twirls, transformer, weighted]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("function", ON_GRAPHS)
def test_graphs(function: Callable[..., Tensor]) -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        A = square(n, m, min(e, n * n // 2))
        return A, torch.rand(A.nnz) + 0.5, torch.randn(n, WIDTH)

    check(Model(function), args)


@pytest.mark.parametrize("function", [hypergraph, hypergraph_attention])
def test_hypergraphs(function: Callable[..., Tensor]) -> None:
    def args(n: int, m: int, e: int) -> tuple[Any, ...]:
        H = incidence(n, m, min(e, n * m // 2))
        return H, torch.rand(H.nnz) + 0.5, torch.randn(n, WIDTH)

    check(Model(function), args)


@pytest.mark.parametrize("library", [dgl, gnnc.dgl], ids=["dgl", "gnnc.dgl"])
def test_the_adjacency_of_a_graph(library: Any) -> None:
    """DGL's own `adj` needs a library that torch is too new for: the call is compared with sums."""
    layer = nn.Linear(WIDTH, 4)

    def call(g: Any, w: Tensor, x: Tensor) -> Tensor:
        g.edata["w"] = w
        return g.adj(eweight_name="w").T @ layer(x)

    def summed(g: Any, w: Tensor, x: Tensor) -> Tensor:
        src, dst = g.edges()
        rows = w.unsqueeze(1) * layer(x)[src]
        return torch.zeros(x.shape[0], 4).index_add(0, dst, rows)

    compiled = gnnc.compile(call)
    for n, e in ((20, 70), (33, 150), (9, 12)):
        real = graph(n, e)
        g = real if library is dgl else gnnc.dgl.from_dgl(real)
        args = g, torch.rand(g.num_edges()), torch.randn(n, WIDTH)
        torch.testing.assert_close(run(compiled, layer, args), run(summed, layer, args))
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and len(report.programs) == 1


def test_entries_of_sums_and_products_are_made_in_torch() -> None:
    """Which there are depends on data, so that is told; the numbers are those of eager code."""

    def call(A: Any, val: Tensor, X: Tensor) -> Tensor:
        A = dglsp.val_like(A, val)
        both = A @ A + A
        return both.softmax() @ X + (A * A.T).sum(1).unsqueeze(1)

    compiled = gnnc.compile(call)
    for sizes in ((12, 0, 30), (20, 0, 60)):
        A = square(*sizes)
        args = A, torch.rand(A.nnz) + 0.5, torch.randn(sizes[0], 4)
        torch.testing.assert_close(run(compiled, None, args), run(call, None, args))
    assert any("unique" in told or "sort" in told for told in gnnc.explain(compiled).fallbacks)


def test_a_module_that_keeps_its_matrix() -> None:
    class Kept(nn.Module):
        def __init__(self, H: Any) -> None:
            super().__init__()
            self.L, self.layer = laplacian(H), nn.Linear(WIDTH, 4)

        def forward(self, X: Tensor) -> Tensor:
            return self.L @ self.layer(X).relu()

    model = Kept(incidence(20, 8, 60).double())
    compiled = gnnc.compile(model)
    args = (torch.randn(20, WIDTH),)
    eager = lambda *a: Kept.forward(model, *a)  # noqa: E731
    torch.testing.assert_close(run(compiled, model, args), run(eager, model, args))
    model.L = laplacian(incidence(31, 12, 90).double())
    args = (torch.randn(31, WIDTH),)
    torch.testing.assert_close(run(compiled, model, args), run(eager, model, args))
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and len(report.programs) == 1


def test_a_matrix_that_a_call_returns() -> None:
    def call(A: Any, X: Tensor) -> tuple[Any, Any]:
        return dglsp.val_like(A, A.val * X[A.row, 0]), A + A.T

    A, X = square(9, 0, 20).double(), torch.randn(9, 2)
    for found, expected in zip(gnnc.compile(call)(A, X), call(A, X), strict=True):
        torch.testing.assert_close(found.to_dense(), expected.to_dense())
        assert found.nnz == expected.nnz and tuple(found.shape) == (9, 9)


@pytest.mark.parametrize(
    "left, right, refused",
    [
        ((2,), (), "the value shape of lhs_mat should be 1-D"),
        ((), (2,), "the value shape of rhs_mat should be 1-D"),
        ((2,), (2,), "the value shape of lhs_mat should be 1-D"),
        ((), (), "lhs_mat and rhs_mat should have the same dtype"),
    ],
)
@pytest.mark.parametrize("twice", [False, True])
def test_products_that_dgl_refuses(
    left: tuple[int, ...], right: tuple[int, ...], refused: str, twice: bool
) -> None:
    """A product with dense features could be computed from the parts, without asking."""

    def product(v: Tensor, w: Tensor, X: Tensor) -> Tensor:
        ends = torch.tensor([[0, 1, 2, 2], [1, 0, 2, 0]])
        A, B = dglsp.spmatrix(ends, v, (3, 3)), dglsp.spmatrix(ends, w, (3, 3))
        return ((A + A if twice else A) @ B) @ X

    dtype = torch.float32 if left or right else torch.float64
    v = torch.randn(4, *left, dtype=torch.float32)
    args = v, torch.randn(4, *right, dtype=dtype), torch.randn(3, 5, 2)
    for f in (product, gnnc.compile(product)):
        with pytest.raises(RuntimeError, match=refused):
            f(*args)


def test_products_of_matrices_with_duplicates() -> None:
    def function(model: Model, A: Any, X: Tensor) -> Tensor:
        return (A.T @ A) @ model.first(X)

    def make(n: int, m: int, e: int) -> tuple[Any, ...]:
        A = dglsp.from_coo(*(torch.randint(n, (2 * e,)) % 5 for _ in range(2)), shape=(n, n))
        return A, torch.randn(A.nnz), torch.randn(n, WIDTH)

    check(Model(function), make)
