"""Features stay sparse where a model drops, scales, reads and sums their rows before a product."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import (
    ChebConv,
    GATConv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    SGConv,
    TAGConv,
)

import gnnc
from gnnc.frontend.torch.sparse import features

N, C = 450, 700

CONVS: dict[str, Callable[[], nn.Module]] = {
    "cheb": lambda: ChebConv(C, 8, K=3),
    "gat": lambda: GATConv(C, 4, heads=2),
    "gin": lambda: GINConv(nn.Sequential(nn.Linear(C, 8), nn.ReLU()), train_eps=True),
    "graph": lambda: GraphConv(C, 8),
    "sage": lambda: SAGEConv(C, 8),
    "sg": lambda: SGConv(C, 8, K=2),
    "tag": lambda: TAGConv(C, 8, K=2),
}


def drawn(seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(N, C, generator=g, dtype=torch.float64)
    x = x * (torch.rand(N, C, generator=g) < 0.004)
    x[5] = 0.0
    return x


def edges() -> Tensor:
    return torch.randint(0, N, (2, 2000), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A True for each graph that was compiled with sparse features."""
    out: list[bool] = []

    def sparse(products: Any) -> bool:
        out.append(True)
        return True

    monkeypatch.setattr(features, "pays", sparse)
    return out


def check(model: nn.Module, *args: Any, whole: bool = True) -> None:
    """Values and gradients of the compiled model are torch's."""
    compiled = gnnc.compile(copy.deepcopy(model), fullgraph=whole)
    for _ in range(2):
        want, got = model(*args), compiled(*args)
        torch.testing.assert_close(got, want, equal_nan=True)
        for m, y in ((model, want), (compiled, got)):
            m.zero_grad()
            (y * torch.cos(torch.arange(y.numel(), dtype=y.dtype)).view(y.shape)).sum().backward()
        for a, b in zip(model.parameters(), compiled.parameters(), strict=True):
            torch.testing.assert_close(b.grad, a.grad, equal_nan=True)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CONVS)
def test_layers(name: str, taken: list[bool]) -> None:
    torch.manual_seed(0)
    check(CONVS[name]().double(), drawn(), edges())
    assert taken == [True]


class Program(nn.Module):
    """A weight for what a function makes of features."""

    def __init__(self, function: Callable[..., Tensor], width: int = C) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.randn(width, 3, dtype=torch.float64))
        self.scale = nn.Parameter(torch.tensor([1.5], dtype=torch.float64))

    def forward(self, x: Tensor, *args: Tensor) -> Tensor:
        return self.function(x, self.weight, self.scale, *args)


DENSE = torch.linspace(-1, 1, N * 4, dtype=torch.float64).view(N, 4)
COLUMN = torch.linspace(1, 2, N, dtype=torch.float64).view(N, 1)
ROWS = torch.arange(N).flip(0)[:100]
NARROW: dict[str, tuple[Callable[..., Tensor], int]] = {
    "over sums": (lambda x, w, s: (x / x.sum(-1, keepdim=True).clamp(min=1e-3)) @ w, C),
    "over norms": (lambda x, w, s: F.normalize(x) @ w, C),
    "over 1-norms": (lambda x, w, s: F.normalize(x, p=1.0, dim=-1) @ w, C),
    "scaled": (lambda x, w, s: (2 * x * s + x / 3 - (-x)) @ w, C),
    "scaled rows": (lambda x, w, s: (x * (x @ w).sum(1, keepdim=True)) @ w, C),
    "some rows": (
        lambda x, w, s: x[:70] @ w + x[ROWS[:70]] @ w + x.index_select(0, ROWS)[30:] @ w,
        C,
    ),
    "columns behind": (lambda x, w, s: torch.cat([x, DENSE], dim=1) @ w, C + 4),
    "columns around": (lambda x, w, s: torch.cat([DENSE * s, x, x.relu()], -1) @ w, 2 * C + 4),
    "each number": (lambda x, w, s: F.relu(x).log1p().square().tanh() @ w + x.abs().sqrt() @ w, C),
    "a linear layer": (lambda x, w, s: F.linear(x + x, w.t(), s.expand(3)), C),
    "a vector, rows scaled": (lambda x, w, s: (x * COLUMN + x / COLUMN[:1]) @ w[:, 0], C),
    "rows from the end": (lambda x, w, s: x[ROWS - N] @ w, C),
    "a vector": (lambda x, w, s: (x + x * s) @ w[:, 0], C),
    "a sum of Python": (lambda x, w, s: sum([x, 2 * x]) @ w, C),
    "by another name": (lambda x, w, s: x.double().to(w.dtype).to("cpu") @ w, C),
    "new tensors": (lambda x, w, s: x @ w + x.new_ones(x.size(0), 1) * x.new_full((3,), 2.0), C),
    "as it is": (lambda x, w, s: F.dropout(x.clone().contiguous(), 0.5, False) @ w, C),
}


def test_a_row_that_is_divided_by_zero(taken: list[bool]) -> None:
    """Of no entries, and of numbers that torch finds to be none: NaN, as 0 / 0 is."""
    model = Program(lambda x, w, s: (x / x.sum(1, keepdim=True)) @ w)
    compiled, x = gnnc.compile(copy.deepcopy(model)), drawn()
    want = model(x)
    assert bool(want[5].isnan().all()) and not bool(want.isnan().all())
    torch.testing.assert_close(compiled(x), want, equal_nan=True)
    assert taken == [True]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", NARROW)
def test_programs(name: str, taken: list[bool]) -> None:
    torch.manual_seed(0)
    function, width = NARROW[name]
    check(Program(function, width), drawn())
    assert taken == [True]


def scale_edited(x: Tensor, w: Tensor, s: Tensor) -> Tensor:
    t = s * 2
    y = x * t
    t.mul_(3)
    return y @ w


def columns_edited(x: Tensor, w: Tensor, s: Tensor) -> Tensor:
    d = DENSE * s
    y = torch.cat([x, d], 1)[:, :C]
    z = torch.cat([x[:, :-4], d], 1)
    d.add_(1)
    return (y + z) @ w


def rows_edited(x: Tensor, w: Tensor, s: Tensor) -> Tensor:
    rows = ROWS.clone()
    y = x[rows]
    rows.mul_(0)
    return y @ w * s


def scaled_without_gradient(x: Tensor, w: Tensor, s: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * s
    return y @ w


WIDE: dict[str, Callable[..., Tensor]] = {
    "a row from all": lambda x, w, s: (x[:1] - x) @ w,
    "one row by many": lambda x, w, s: (x[:1] * COLUMN) @ w,
    "columns of integers": lambda x, w, s: torch.cat([x[:, :-4], (5 * DENSE).long()], 1) @ w,
    "integers behind": lambda x, w, s: (
        torch.cat([x, (5 * DENSE).long()], 1) @ torch.cat([w, w[:4]])
    ),
    "over nothing": lambda x, w, s: (x / 0) @ w,
    "by infinity": lambda x, w, s: (x * float("inf")) @ w,
    "all dropped": lambda x, w, s: F.dropout(x, 1.0) @ w + s,
    "a scale that is edited": scale_edited,
    "columns that are edited": columns_edited,
    "numbers of rows that are edited": rows_edited,
    "scaled without gradient": scaled_without_gradient,
    "a number added": lambda x, w, s: (x + 1) @ w,
    "dense rows added": lambda x, w, s: (x + DENSE[:, :1]) @ w,
    "other columns": lambda x, w, s: (x * w[:, 0]) @ w,
    "sums of columns": lambda x, w, s: x.sum(0) @ w,
    "every number": lambda x, w, s: x.exp() @ w,
    "an element": lambda x, w, s: x[0, 0] * w,
    "a mask of rows": lambda x, w, s: x[DENSE[:, 0] > 0] @ w,
    "rows below": lambda x, w, s: torch.cat([x, x]) @ w,
    "a transposed sum": lambda x, w, s: (x + x).t() @ DENSE * s + w.sum(),
    "of sums": lambda x, w, s: (x + x).abs() @ w,
    "with itself": lambda x, w, s: (x * x) @ w,
    "the greatest": lambda x, w, s: x.amax(1).sum() * w,
    "given back": lambda x, w, s: x * s,
    "another type": lambda x, w, s: x.long().sum() * w,
    "edited": lambda x, w, s: x.clone().mul_(2) @ w,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", WIDE)
def test_what_needs_all_numbers_stays_dense(name: str, taken: list[bool]) -> None:
    torch.manual_seed(0)
    check(Program(WIDE[name]), drawn(), whole=False)
    assert taken == []


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, s: torch.kthvalue(x @ w, 3, 0)[0] + (x @ w).relu(),
        lambda x, w, s: torch.cat([x, DENSE[:, :0]], 1) @ w,
    ],
)
def test_a_part_that_runs_in_torch(function: Callable[..., Tensor], taken: list[bool]) -> None:
    check(Program(function), drawn(), whole=False)
    assert taken == [True]


@pytest.mark.filterwarnings("ignore:Sparse")
def test_an_adjacency_matrix_times_features(taken: list[bool]) -> None:
    e = edges()
    a = torch.sparse_coo_tensor(e, torch.rand(e.shape[1], dtype=torch.float64), (N, N))
    check(Program(lambda x, w, s, a: (a @ x + x) @ w), drawn(), a.to_sparse_csr())
    assert taken == [True]


def test_the_greatest_of_neighbours_stays_dense(taken: list[bool]) -> None:
    torch.manual_seed(0)
    check(SAGEConv(C, 8, aggr="max").double(), drawn(), edges())
    assert taken == []


class Dropped(nn.Module):
    def __init__(self, conv: type[nn.Module], times: int = 1) -> None:
        super().__init__()
        self.conv, self.times = conv(C, 6), times

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        for _ in range(self.times):
            x = F.dropout(x, 0.4, self.training)
        return self.conv(x, e)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("conv", [GCNConv, SAGEConv])
def test_dropout_is_that_of_dense_features(
    conv: type[nn.Module], times: int, taken: list[bool]
) -> None:
    torch.manual_seed(0)
    model = Dropped(conv, times).double()
    x, e = drawn(), edges()
    models = [
        gnnc.compile(copy.deepcopy(model), sparse_features=sparse) for sparse in (True, False)
    ]
    for seed in range(3):
        outs: list[Tensor] = []
        for m in models:
            torch.manual_seed(seed)
            m.zero_grad()
            outs.append(m(x, e))
            outs[-1].square().sum().backward()
        torch.testing.assert_close(*outs, rtol=1e-12, atol=1e-12)
        for a, b in zip(*(m.parameters() for m in models), strict=True):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-10, atol=1e-10)
        assert not torch.allclose(outs[0], model.eval()(x, e))
    assert taken == [True]


def test_second_derivatives_have_the_same_mask(taken: list[bool]) -> None:
    torch.manual_seed(0)
    model = Dropped(GCNConv).double()
    x, e = drawn(), edges()
    found: list[Tensor] = []
    for sparse in (True, False):
        compiled = gnnc.compile(copy.deepcopy(model), sparse_features=sparse)
        torch.manual_seed(4)
        weights = list(compiled.parameters())
        out = compiled(x, e).pow(3).sum()
        grads = torch.autograd.grad(out, weights, create_graph=True)
        found += torch.autograd.grad(sum(g.square().sum() for g in grads), weights)
    half = len(found) // 2
    torch.testing.assert_close(found[:half], found[half:])
    assert taken == [True]


def test_a_step_of_training_with_dropout(taken: list[bool]) -> None:
    torch.manual_seed(0)
    model = Dropped(SAGEConv).double()
    x, e = drawn(), edges()
    losses: list[list[float]] = []
    for sparse in (True, False):
        m = copy.deepcopy(model)
        optimizer = torch.optim.Adam(m.parameters(), lr=0.01)
        step = gnnc.train_step(
            lambda x, e, m=m: m(x, e).square().mean(), optimizer, sparse_features=sparse
        )
        torch.manual_seed(3)
        losses.append([float(step(x, e)) for _ in range(5)])
        assert gnnc.explain(step).fallbacks == []
    assert losses[0] == pytest.approx(losses[1], rel=1e-10)
    assert taken == [True]
