"""Sparse matrices of torch and SciPy, as adjacency and as features: compiled as a whole, with the
values and gradients that torch has for them.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric import nn as pyg
from torch_geometric.utils import add_self_loops, to_edge_index

import gnnc
from gnnc.frontend.torch.importer.errors import of_library

from .layouts import LAYOUTS, quiet  # noqa: F401


def dense(n: int, m: int, seed: int = 0) -> Tensor:
    """A matrix of which three numbers in ten are not 0; some rows and columns are empty."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, m, generator=g, dtype=torch.float64)
    x *= torch.rand(n, m, generator=g) < 0.3
    x[1] = 0
    x[:, 2] = 0
    return x


def twice(x: Tensor) -> Tensor:
    """COO with each entry in two parts."""
    x = x.to_sparse_coo()
    ends, values = x.indices(), x.values()
    return torch.sparse_coo_tensor(
        torch.cat([ends, ends], 1), torch.cat([values * 0.25, values * 0.75]), x.shape
    )


def gradients(f: Callable[..., Tensor], args: tuple[Any, ...], given: Any) -> list[Tensor]:
    """The result, and the gradients of the dense tensors and of the parameters."""
    mine = [
        x.clone().requires_grad_()
        if isinstance(x, Tensor) and x.layout is torch.strided and x.is_floating_point()
        else x
        for x in args
    ]
    y = f(*mine)
    weight = torch.cos(torch.arange(y.numel(), dtype=y.dtype)).view(y.shape)
    leaves = [x for x in mine if isinstance(x, Tensor) and x.requires_grad]
    leaves += [] if given is None else list(given.parameters())
    grads = torch.autograd.grad((y * weight).sum(), leaves, allow_unused=True)
    return [y, *(g for g in grads if g is not None)]


def compared(f: Any, calls: list[tuple[Any, ...]], want: list[tuple[Any, ...]] = []) -> None:
    """One program for all calls; `want` are those of eager, where they differ."""
    module = f if isinstance(f, nn.Module) else None
    compiled = gnnc.compile(copy.deepcopy(f) if module else f)
    for args, plain in zip(calls, want or calls, strict=True):
        expected = gradients(f, plain, module)
        got = gradients(compiled, args, compiled if module else None)
        assert len(got) == len(expected)
        for x, y in zip(got, expected, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-11)
    report = gnnc.explain(compiled)
    assert report.fallbacks == [] and report.kernels


FUNCTIONS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "mm": lambda a, x: torch.mm(a, x.relu()) * 2,
    "operator": lambda a, x: a @ x + x.sum(),
    "sparse.mm": lambda a, x: torch.sparse.mm(a, x).tanh(),
    "linear": lambda a, x: F.linear(a, x.t(), x[0]).relu(),
    "a vector": lambda a, x: a @ x[:, 0],
    "there and back": lambda a, x: a.t() @ (a @ x),
    "from the right": lambda a, x: (x.t()[:, : a.size(0)] @ a) * 2 if a.size(0) < 9 else x,
    "its values": lambda a, x: a.values().sum() * x,
    "its layout": lambda a, x: x * 2 if a.layout == torch.strided else x * 3,
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, layout: str) -> None:
    compared(
        FUNCTIONS[name],
        [(LAYOUTS[layout](dense(n, m, n)), dense(m, 4) + 1) for n, m in ((5, 7), (6, 9), (8, 10))],
    )


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_reductions(reduce: str) -> None:
    def f(a: Tensor, x: Tensor) -> Tensor:
        return torch.sparse.mm(a, x, reduce) * 2

    compared(f, [(dense(n, 7, n).to_sparse_csr(), dense(7, 4) + 1) for n in (5, 8)])


def test_values_with_a_gradient() -> None:
    """Of a matrix that is made of values, as torch hands their gradient through it."""
    ends = dense(6, 8).to_sparse_coo().coalesce().indices()
    x = dense(8, 3) + 1
    compiled = gnnc.compile(lambda a, x: (a @ x).tanh())
    results = []
    for f in (lambda a, x: (a @ x).tanh(), compiled):
        w = torch.linspace(-1, 1, ends.size(1), dtype=torch.float64).requires_grad_()
        y = f(torch.sparse_coo_tensor(ends, w, (6, 8), is_coalesced=True), x)
        results.append((y, *torch.autograd.grad(y.square().sum(), w)))
    assert gnnc.explain(compiled).fallbacks == []
    for got, want in zip(*reversed(results), strict=True):
        torch.testing.assert_close(got, want)


def test_a_matrix_that_is_written_to() -> None:
    compiled = gnnc.compile(lambda a, x: a @ x.relu())
    a, x = dense(6, 8).to_sparse_csr(), dense(8, 3) + 1
    for change in (
        lambda: None,
        lambda: a.values().mul_(2),
        lambda: a.col_indices().copy_(a.col_indices().flip(0) * 0 + 3),
        lambda: x.add_(1),
    ):
        change()
        torch.testing.assert_close(compiled(a, x), a @ x.relu())
    assert gnnc.explain(compiled).fallbacks == []


def test_what_is_left_to_torch() -> None:
    """Messages say what; numbers are torch's."""
    a, x = dense(5, 7).to_sparse_csr(), dense(7, 4)
    compiled = gnnc.compile(lambda a, x: a.to_dense() @ x)
    torch.testing.assert_close(compiled(a, x), a @ x)
    assert any("to_dense" in m or "sparse" in m.lower() for m in gnnc.explain(compiled).fallbacks)
    leaf = dense(5, 7).to_sparse_coo().requires_grad_()
    compiled = gnnc.compile(lambda a, x: torch.sparse.mm(a, x))
    compiled(leaf, x).sum().backward()
    assert leaf.grad is not None and leaf.grad.layout is torch.sparse_coo
    assert "wants a gradient itself" in gnnc.explain(compiled).fallbacks[0]
    compiled = gnnc.compile(lambda a, x: torch.sort(a @ x.relu(), 0)[0].relu())
    torch.testing.assert_close(compiled(a, x), torch.sort(a @ x.relu(), 0)[0].relu())
    with pytest.raises(RuntimeError):  # torch converts no types here, nor do we
        gnnc.compile(lambda a, x: a @ x)(a, x.float())


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """What a function returns, or that it raises."""
    try:
        out = f(*args)
    except Exception as error:
        return type(error)
    return "a function" if callable(out) else out


def alike(got: Any, want: Any) -> bool:
    """Whether two outcomes are the same: kinds of tensors, layouts and numbers."""
    if isinstance(want, type):
        return isinstance(got, type)
    if isinstance(want, tuple | list):
        return len(got) == len(want) and all(map(alike, got, want))
    if not isinstance(want, Tensor):
        return bool(got == want)
    if type(got) is not type(want) or (got.layout, got.dtype) != (want.layout, want.dtype):
        return False
    x, y = got.to_dense(), want.to_dense()
    return x.shape == y.shape and torch.allclose(x, y, rtol=1e-9, atol=1e-11, equal_nan=True)


ASKED: dict[str, Callable[[Any, Tensor], Any]] = {
    "numbers": lambda a, x: x * a.numel() + a.dim(),
    "its transpose as a result": lambda a, x: (a.t(), x + 1),
    "itself without a gradient": lambda a, x: a.detach(),
    "its data": lambda a, x: a.data @ x,
    "T": lambda a, x: a.T @ x,
    "is it CSR": lambda a, x: x * 2 if a.is_sparse_csr else x * 3,
    "is it COO": lambda a, x: x * 2 if a.is_sparse else x * 3,
    "rows of CSR": lambda a, x: a.crow_indices() * 2,
    "columns of CSR": lambda a, x: a.col_indices() * 2,
    "rows of CSC": lambda a, x: a.row_indices() * 2,
    "ends of COO": lambda a, x: a.indices() * 2,
    "entries of COO": lambda a, x: a._values() * 2,
    "coalesced": lambda a, x: a.coalesce().values() * 2,
    "entries of the transpose": lambda a, x: a.t().values() * 2,
    "sorted entries of the transpose": lambda a, x: a.t().coalesce().values() * 2,
}


@pytest.mark.parametrize("layout", [*LAYOUTS, "twice"])
@pytest.mark.parametrize("name", ASKED)
def test_what_else_is_asked_of_a_matrix(name: str, layout: str) -> None:
    """It is compiled, or left to torch: as torch has it, also where that raises."""
    f, a = ASKED[name], {**LAYOUTS, "twice": twice}[layout](dense(6, 6))
    x = dense(6, 6, 1) + 1
    assert alike(outcome(gnnc.compile(f), a, x), outcome(f, a, x))


_UNSAFE = re.compile("_$|^__|^(new_tensor|numpy|register|share_memory|pin_memory|_|data_ptr)")


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_that_tensors_have(layout: str) -> None:
    """No method or attribute of torch's tensors gives anything else, or raises where torch does
    not."""
    a, x = LAYOUTS[layout](dense(6, 6)), dense(6, 6, 1) + 1
    for name in (n for n in dir(Tensor) if not _UNSAFE.search(n)):
        for f in (
            lambda a, x: getattr(a, name),
            lambda a, x: getattr(a, name)(),
            lambda a, x: getattr(a, name)() @ x,
        ):
            want = outcome(f, a, x)
            if not isinstance(want, str):
                assert alike(outcome(gnnc.compile(f), a, x), want), name


def test_a_sparse_result_says_what_to_return() -> None:
    compiled = gnnc.compile(lambda a, x: (a.t(), x + 1))
    compiled(dense(6, 6).to_sparse_csr(), dense(6, 6))
    assert "a sparse matrix is a result (return its values" in gnnc.explain(compiled).fallbacks[0]
    whole = gnnc.compile(lambda a, x: (a.t(), x + 1), fullgraph=True)
    with pytest.raises(Exception, match="a sparse matrix is a result"):
        whole(dense(6, 6).to_sparse_csr(), dense(6, 6))


def test_a_part_with_a_sparse_result_says_the_same() -> None:
    """PyG attention weights of a matrix are a matrix: a part of the call that makes one is refused
    while Dynamo compiles it, whose own words say nothing of the reason."""
    compiled = gnnc.compile(pyg.GATConv(6, 4).double())
    compiled(dense(6, 6), dense(6, 6).to_sparse_csr(), return_attention_weights=True)
    told = gnnc.explain(compiled).fallbacks
    assert any("a part runs eagerly" in m and "a sparse matrix is a result" in m for m in told)
    assert not any("functools.partial" in m for m in told)


def test_the_order_of_entries_with_added_loops_is_not_shown() -> None:
    """PyG sorts them, which is left to torch; sums over them do not mind."""

    def shown(a: Tensor, x: Tensor) -> Tensor:
        looped, _ = add_self_loops(a, fill_value=2.0)
        return to_edge_index(looped)[1] * x.sum()

    def summed(a: Tensor, x: Tensor) -> Tensor:
        looped, _ = add_self_loops(a, fill_value=2.0)
        return looped @ x

    a, x = dense(6, 6).to_sparse_csr(), dense(6, 6, 1)
    for f, compiles in ((shown, False), (summed, True)):
        compiled = gnnc.compile(f)
        torch.testing.assert_close(compiled(a, x), f(a, x))
        assert (gnnc.explain(compiled).fallbacks == []) == compiles


# ---------------------------------------------------------------- adjacency

ADJACENCY: dict[str, Callable[[], nn.Module]] = {
    "GCN": lambda: pyg.GCNConv(6, 5),
    "GCN without normalisation": lambda: pyg.GCNConv(6, 5, normalize=False),
    "SAGE": lambda: pyg.SAGEConv(6, 5),
    "SAGE max": lambda: pyg.SAGEConv(6, 5, aggr="max"),
    "GAT": lambda: pyg.GATConv(6, 5, heads=2),
    "GAT without loops": lambda: pyg.GATConv(6, 5, add_self_loops=False),
    "GATv2": lambda: pyg.GATv2Conv(6, 5, add_self_loops=False),
    "GIN": lambda: pyg.GINConv(nn.Linear(6, 5)),
    "GraphConv": lambda: pyg.GraphConv(6, 5),
    "APPNP": lambda: pyg.APPNP(3, 0.1),
    "SG": lambda: pyg.SGConv(6, 5, K=2),
    "TAG": lambda: pyg.TAGConv(6, 5),
    "LE": lambda: pyg.LEConv(6, 5),
    "gated": lambda: pyg.GatedGraphConv(6, 2),
}


def adjacency(n: int, layout: str) -> Tensor:
    """The transposed adjacency of a graph with loops and isolated nodes, its weights positive."""
    return LAYOUTS[layout](dense(n, n, n).abs())


@pytest.fixture
def printed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyG prints how a class of layers propagates once a process, for its first instance. If that
    reduces by what takes no matrix (`aggr="median"`), those that do fail on one ever after."""
    for layer in vars(pyg).values():
        if isinstance(layer, type) and (printed := vars(layer).get("_jinja_propagate")):
            monkeypatch.setattr(layer, "propagate", pyg.MessagePassing.propagate)
            monkeypatch.delitem(sys.modules, printed.__module__, raising=False)


@pytest.mark.usefixtures("printed_anew")
@pytest.mark.one_in(3)
@pytest.mark.parametrize("layout", ["csr", "coo"])
@pytest.mark.parametrize("name", ADJACENCY)
def test_adjacency(name: str, layout: str) -> None:
    torch.manual_seed(0)
    model = ADJACENCY[name]().double()
    compared(model, [(dense(n, 6) + 1, adjacency(n, layout)) for n in (12, 15)])


# ---------------------------------------------------------------- features


class OnFeatures(nn.Module):
    """Two layers, of which the first has sparse features."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Any, e: Tensor) -> Tensor:
        h = self.first(x, e) if isinstance(self.first, pyg.MessagePassing) else self.first(x)
        return self.second(h.relu(), e)


FEATURES: dict[str, Callable[[], nn.Module]] = {
    "GCN": lambda: OnFeatures(pyg.GCNConv(20, 6), pyg.GCNConv(6, 3)),
    "APPNP": lambda: OnFeatures(nn.Linear(20, 6), pyg.APPNP(3, 0.1)),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("layout", [*LAYOUTS, "scipy", "twice"])
@pytest.mark.parametrize("name", FEATURES)
def test_features(name: str, layout: str) -> None:
    torch.manual_seed(0)
    model = FEATURES[name]().double()
    make = {**LAYOUTS, "twice": twice, "scipy": lambda x: sparse.csr_matrix(x.numpy())}[layout]
    calls, plain = [], []
    for n in (12, 15):
        x = dense(n, 20)
        e = torch.randint(0, n, (2, 40), generator=torch.Generator().manual_seed(n))
        calls.append((make(x), e))
        plain.append((x.to_sparse_csr(), e))
    compared(model, calls, plain)


@pytest.mark.parametrize(
    "asks",
    [
        sparse.issparse,
        sparse.isspmatrix_csr,
        lambda a: isinstance(a, sparse.csr_array),
        lambda a: isinstance(a, (dict, sparse.spmatrix)) and not isinstance(a, sparse.coo_matrix),
        torch.is_tensor,
        lambda a: isinstance(a, Tensor) or issubclass(type(a), Tensor),
        lambda a: any(kind is a.__class__ for kind in (sparse.csr_matrix, sparse.coo_matrix)),
        lambda a: hasattr(a, "tocoo"),
        lambda a: hasattr(a, "layout") and a.layout is torch.sparse_csr,
        lambda a: getattr(a, "requires_grad", None) is None and a.shape[0] == a.shape[a.ndim - 1],
    ],
)
def test_a_matrix_of_scipy_says_what_it_is(asks: Callable[[Any], bool]) -> None:
    def weighted(x: Tensor, a: Any) -> Tensor:
        return x * 2 if asks(a) else x + 1

    a = sparse.random(5, 5, 0.4, format="csr", random_state=0)
    compiled, x = gnnc.compile(weighted), dense(5, 4)
    of_torch = torch.sparse_csr_tensor(*map(torch.as_tensor, (a.indptr, a.indices, a.data)), (5, 5))
    for matrix in (a, sparse.csr_array(a), a.tocoo(), of_torch):
        assert torch.equal(compiled(x, matrix), weighted(x, matrix))
    assert not gnnc.explain(compiled).fallbacks


def test_what_only_matrices_of_scipy_have() -> None:
    def weighted(x: Tensor, a: Any) -> Tensor:
        degrees = torch.as_tensor(a.tocoo().data).sum()
        return x * degrees + a.nnz

    a = sparse.random(5, 5, 0.4, format="csr", random_state=0)
    compiled, x = gnnc.compile(weighted), dense(5, 4)
    for _ in range(2):
        assert torch.equal(compiled(x, a), weighted(x, a))
    assert any("runs eagerly on a matrix of SciPy" in m for m in gnnc.explain(compiled).fallbacks)
    for asks in (lambda a: a.no_such, lambda a: a.dim(), len):
        with pytest.raises((AttributeError, TypeError)) as own:
            asks(a)
        with pytest.raises(own.type, match=re.escape(str(own.value))):
            gnnc.compile(lambda x, a, asks=asks: x * asks(a))(x, a)


def test_a_folder_of_users_is_no_library() -> None:
    """Be it called as one: code there asks of SciPy's matrices, and layers' code of torch's."""
    assert of_library(nn.__file__) and of_library(pyg.__file__)
    assert not of_library("/home/me/torch/dgl/train.py")


def test_a_type_of_numbers_is_scipys() -> None:
    a = sparse.random(5, 5, 0.4, format="csr", random_state=0)
    compiled = gnnc.compile(lambda x, a: x * 2 if a.dtype == torch.float64 else x)
    x = dense(5, 4)
    assert torch.equal(compiled(x, a), x)


def test_a_layer_takes_a_matrix_of_scipy_for_one_of_torch() -> None:
    """It asks too, and knows no other."""
    a, x = sparse.random(5, 5, 0.4, format="csr", random_state=0), dense(5, 6)
    layer = pyg.GraphConv(6, 5).double()
    compiled = gnnc.compile(lambda x, a: layer(x, a) if not torch.is_tensor(a) else x)
    of_torch = torch.sparse_csr_tensor(*map(torch.as_tensor, (a.indptr, a.indices, a.data)), (5, 5))
    torch.testing.assert_close(compiled(x, a), layer(x, of_torch))
    assert not gnnc.explain(compiled).fallbacks


def test_products_whose_sizes_are_read_from_data() -> None:
    matrix = dense(12, 12).to_sparse_csr()
    mask = torch.rand(12, generator=torch.Generator().manual_seed(0)) < 0.5

    def wide(a: Tensor, labels: Tensor, w: Tensor) -> Tensor:
        marked = w.new_zeros(labels.size(0), int(labels.max()) + 1)
        return (a @ marked.scatter_(1, labels.view(-1, 1), 1.0)).sum(1) * w

    def of_rows(a: Tensor, x: Tensor) -> Tensor:
        chosen = x[mask]
        return a @ (x @ chosen.t()) @ chosen

    def labelled(a: Tensor, labels: Tensor) -> Tensor:
        return pyg.LabelPropagation(2, 0.9)(labels, a, mask=mask)

    labels = torch.randint(3, (12,), generator=torch.Generator().manual_seed(1))
    w = torch.ones(12, dtype=torch.float64)
    for f, args in (
        (wide, (matrix, labels, w)),
        (of_rows, (matrix, w.view(-1, 1))),
        (labelled, (torch.eye(12).to_sparse_csr(), labels)),
    ):
        want, got = f(*args), gnnc.compile(f)(*args)
        assert torch.allclose(want, got)
