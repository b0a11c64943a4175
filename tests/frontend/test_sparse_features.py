"""Dense features that are mostly zeros are taken as sparse where that costs less, with the numbers
of dense ones; otherwise, and where more than products is computed with them, they stay dense.
"""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import gnnc
from gnnc.frontend.targets import default_target
from gnnc.frontend.torch.sparse import features, speeds
from gnnc.frontend.torch.sparse.graphs import Product
from gnnc.passes.targets import target_named

N, C = 500, 800


def drawn(share: float, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(N, C, generator=g, dtype=dtype)
    return x * (torch.rand(N, C, generator=g) < share)


def edges() -> Tensor:
    return torch.randint(0, N, (2, 2000), generator=torch.Generator().manual_seed(1))


class Model(nn.Module):
    def __init__(self, conv: Callable[[int, int], nn.Module], width: int = 32) -> None:
        super().__init__()
        self.first, self.second = conv(C, width), GCNConv(width, 3)

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        return self.second(self.first(x, e).relu(), e)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the products of each graph with features that may be sparse were taken so."""
    out: list[bool] = []

    def noted(products: list[Product]) -> bool:
        out.append(pays(products))
        return out[-1]

    pays = features.pays
    monkeypatch.setattr(features, "pays", noted)
    return out


def check(model: nn.Module, x: Tensor) -> None:
    """Values and gradients of the compiled model are torch's."""
    compiled, e = gnnc.compile(copy.deepcopy(model)), edges()
    for _ in range(2):
        want, got = model(x, e), compiled(x, e)
        torch.testing.assert_close(got, want)
        weight = torch.cos(torch.arange(want.numel(), dtype=want.dtype)).view(want.shape)
        grads = [
            torch.autograd.grad((y * weight).sum(), list(m.parameters()))
            for m, y in ((model, want), (compiled, got))
        ]
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(b, a)
    assert gnnc.explain(compiled).fallbacks == []


@pytest.mark.parametrize("share, sparse", [(0.004, True), (0.4, False)])
def test_gcn(share: float, sparse: bool, taken: list[bool]) -> None:
    torch.manual_seed(0)
    check(Model(GCNConv).double(), drawn(share))
    assert taken == [sparse]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite(value: float, taken: list[bool]) -> None:
    """Infinity times 0 is NaN, of which a product by entries knows nothing."""
    x = drawn(0.004)
    x[3, 5] = value
    torch.manual_seed(0)
    model = Model(GCNConv).double()
    compiled = gnnc.compile(copy.deepcopy(model))
    torch.testing.assert_close(compiled(x, edges()), model(x, edges()), equal_nan=True)
    assert taken == []


def test_features_that_change(taken: list[bool]) -> None:
    """In place they are counted again; new ones at each call are not looked at for ever."""
    torch.manual_seed(0)
    model, e = Model(GCNConv).double(), edges()
    compiled, x = gnnc.compile(copy.deepcopy(model)), drawn(0.004)
    for change in (lambda: None, lambda: x.mul_(2), lambda: x.copy_(drawn(0.9, 3))):
        change()
        torch.testing.assert_close(compiled(x, e), model(x, e))
    for seed in range(8):
        x = drawn(0.004, seed)
        torch.testing.assert_close(compiled(x, e), model(x, e))
    assert gnnc.explain(compiled).fallbacks == []


class Holding(nn.Module):
    """A model that has its features itself."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.conv = GCNConv(C, 8)
        self.register_buffer("x", x)

    def forward(self, e: Tensor) -> Tensor:
        return self.conv(self.x, e)


def test_wherever_features_come_from(taken: list[bool]) -> None:
    """PyG's data, a buffer, a variable around a function, a container."""
    torch.manual_seed(0)
    x, e, conv = drawn(0.004), edges(), GCNConv(C, 8).double()
    holding = Holding(x).double()
    functions: list[tuple[Callable[..., Tensor], tuple[Any, ...]]] = [
        (lambda data: conv(data.x, data.edge_index), (Data(x=x, edge_index=e),)),
        (holding.forward, (e,)),
        (lambda: conv(x, e), ()),
        (lambda parts: conv(parts["x"][0], e), ({"x": [x]},)),
    ]
    for function, args in functions:
        torch.testing.assert_close(gnnc.compile(function, fullgraph=True)(*args), function(*args))
    assert taken == [True] * len(functions)


def test_features_that_are_dense_at_first(taken: list[bool]) -> None:
    torch.manual_seed(0)
    model, e = Model(GCNConv).double(), edges()
    compiled = gnnc.compile(copy.deepcopy(model), fullgraph=True)
    for seed, share in enumerate((0.9, 0.004, 0.9)):
        x = drawn(share, seed)
        torch.testing.assert_close(compiled(x, e), model(x, e))
    assert taken == [True]


def test_a_width_that_is_guarded(taken: list[bool]) -> None:
    """Where columns beside features are cut off a weight, other widths make another program."""

    def beside(x: Tensor, d: Tensor, w: Tensor) -> Tensor:
        return torch.cat([x, d], dim=1) @ w

    compiled, w = gnnc.compile(beside, fullgraph=True), torch.randn(C, 3, dtype=torch.float64)
    for width in (4, 9):
        x, d = drawn(0.004)[:, width:].contiguous(), torch.rand(N, width, dtype=torch.float64)
        torch.testing.assert_close(compiled(x, d, w), beside(x, d, w))
    assert taken == [True, True]


def test_it_can_be_forbidden(taken: list[bool]) -> None:
    torch.manual_seed(0)
    compiled = gnnc.compile(Model(GCNConv).double(), sparse_features=False)
    compiled(drawn(0.004), edges())
    assert taken == [] and gnnc.explain(compiled).choices == []


def test_a_step_of_training(taken: list[bool]) -> None:
    """Also where some module of the process has, or once had, a hook."""
    nn.Linear(2, 2).register_forward_hook(lambda *_: None)
    torch.manual_seed(0)
    x, e, y = drawn(0.004), edges(), torch.arange(N) % 3
    models = [Model(GCNConv).double()]
    models.append(copy.deepcopy(models[0]))
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in models]
    step = gnnc.train_step(lambda x, e, y: F.cross_entropy(models[1](x, e), y), optimizers[1])
    for _ in range(4):
        optimizers[0].zero_grad()
        loss = F.cross_entropy(models[0](x, e), y)
        loss.backward()
        optimizers[0].step()
        torch.testing.assert_close(step(x, e, y), loss.detach())
    for a, b in zip(*(m.parameters() for m in models), strict=True):
        torch.testing.assert_close(b, a)
    assert taken == [True] and gnnc.explain(step).fallbacks == []
    (choice,) = gnnc.explain(step).choices
    assert choice.startswith("features are taken as sparse: 0.0039")


def test_the_speeds_of_a_machine_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A product that costs as much for each number as for each entry pays by entries, whatever the
    target's figures are; these hold where nothing was measured."""
    monkeypatch.setenv("GNNC_CACHE", str(tmp_path))
    assert speeds.target() == target_named(default_target())
    half = [Product(numbers=1000, entries=500, width=32, number_bytes=4)]
    assert not features.pays(half)
    with monkeypatch.context() as patch:
        patch.setattr(speeds, "_seconds", lambda x, width: x._nnz() if x.is_sparse else x.numel())
        measured = speeds.calibrate()
    assert speeds.target().speeds == measured
    assert features.pays(half) and not features.pays([replace(half[0], entries=1100)])


class Linear(nn.Module):
    """A weight for features, which are given in a dictionary and given back."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(C, 3, dtype=torch.float64))

    def forward(self, x: dict[str, Tensor], log: list[str]) -> tuple[Tensor, Tensor]:
        y = x["in"] @ self.weight
        log.append("called")
        x["out"], x["again"] = y, x["in"]
        return y, x["in"]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "pays", lambda products: True)


@pytest.mark.usefixtures("always")
def test_containers_and_results_are_the_users_own() -> None:
    model = gnnc.compile(Linear())
    for _ in range(2):
        x, log = drawn(0.004), list[str]()
        given = {"in": x}
        y, same = model(given, log)
        assert log == ["called"] and list(given) == ["in", "out", "again"]
        assert same is x and given["again"] is x and given["out"] is y
        torch.testing.assert_close(y, x @ model.weight)


@pytest.mark.usefixtures("always")
def test_features_are_not_kept_alive() -> None:
    x = drawn(0.004)
    model, gone = gnnc.compile(Linear()), weakref.ref(x)
    model({"in": x}, [])
    del x
    gc.collect()
    assert gone() is None


@pytest.mark.usefixtures("always")
def test_at_first_in_inference_mode() -> None:
    model, x = gnnc.compile(Linear()), drawn(0.004)
    with torch.inference_mode():
        model({"in": x}, [])
    model({"in": x}, [])[0].sum().backward()
    assert model.weight.grad is not None
    want = x.sum(0, keepdim=True).t().expand(C, 3)
    torch.testing.assert_close(model.weight.grad, want)


@pytest.mark.usefixtures("always")
def test_memory_that_the_model_writes_to() -> None:
    class Decayed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("memory", drawn(0.004))

        def forward(self, x: Tensor, w: Tensor) -> Tensor:
            self.memory.mul_(0.5)
            return x @ w

    eager, w = Decayed(), torch.randn(C, 3, dtype=torch.float64)
    model = gnnc.compile(copy.deepcopy(eager))
    for _ in range(3):
        torch.testing.assert_close(model(model.memory, w), eager(eager.memory, w))


@pytest.mark.usefixtures("always")
def test_transforms_of_functions() -> None:
    model = GCNConv(C, 3).double()
    parameters, x, e = dict(model.named_parameters()), drawn(0.004), edges()

    def loss(target: nn.Module, p: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(target, p, (x, e)).square().sum()

    for sparse in (True, False):
        compiled = gnnc.compile(copy.deepcopy(model), sparse_features=sparse)
        got, want = (
            torch.func.grad(lambda p, m=m: loss(m, p))(parameters) for m in (compiled, model)
        )
        torch.testing.assert_close(got, want)
