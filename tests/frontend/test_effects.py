"""What a program does besides its results: assertions, hooks, printing, checkpoints."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import GCNConv

import gnnc

from .asserting import Asserting
from .eagerly import assert_as_eager, gradients
from .models import WIDTH, graph

X, EDGES = graph()
GCN = GCNConv(WIDTH, WIDTH)


@pytest.mark.parametrize("fill", [0.5, -1.0, 1.0])
def test_assertions_on_tensors(fill: float) -> None:
    weight = torch.full((EDGES.shape[1],), fill)
    model = assert_as_eager(Asserting, lambda m: m(X, EDGES, weight))
    assert gnnc.explain(model).fallbacks == []


def test_the_message_of_an_assertion() -> None:
    with pytest.raises(AssertionError, match="negative weights"):
        gnnc.compile(Asserting())(X, EDGES, -torch.ones(EDGES.shape[1]))


def test_assertions_that_run_in_torch() -> None:
    class InTorch(Asserting):
        def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
            assert (torch.cumsum(x, 0).sort(0)[0] >= -100).all(), "low"
            return self.conv(x, edge_index, weight)

    weight = torch.ones(EDGES.shape[1])
    assert_as_eager(InTorch, lambda m: (m(X, EDGES, weight), m(X - 1000, EDGES, weight)))


def test_a_part_in_torch_that_raises_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    def function(x: Tensor, edge_index: Tensor) -> Tensor:
        h = GCN(x, edge_index)
        return GCN(h * h.take(edge_index[0, :1] + 10**6), edge_index)

    compiled = gnnc.compile(function)
    for f in (function, compiled):
        with pytest.raises(IndexError, match="out of range"):
            f(X, EDGES)
    assert gnnc.explain(compiled).fallbacks
    assert "Traceback" not in capfd.readouterr().err


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.lin = GCNConv(WIDTH, WIDTH), nn.Linear(WIDTH, 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.lin(self.conv(x, edge_index))


def forward_hook(m: Any) -> Any:
    m.lin.register_forward_hook(lambda _m, _i, out: 2 * out)
    return m(X, EDGES)


def pre_hook(m: Any) -> Any:
    handle = m.lin.register_forward_pre_hook(lambda _m, given: (2 * given[0],))
    with_hook = m(X, EDGES)
    handle.remove()
    return with_hook, m(X, EDGES)


def hook_of_the_whole(m: Any) -> Any:
    m.register_forward_hook(lambda _m, _i, out: 2 * out)
    return m(X, EDGES)


def backward_hook(m: Any) -> Any:
    seen: list[Any] = []
    m.lin.register_full_backward_hook(lambda _m, _given, out: seen.append(out))
    m(X, EDGES).sum().backward()
    return seen


def hook_of_all_modules(m: Any) -> Any:
    seen: list[str] = []
    hook = lambda module, _i, _o: seen.append(type(module).__name__)  # noqa: E731
    handle = nn.modules.module.register_module_forward_hook(hook)
    try:
        return m(X, EDGES), seen
    finally:
        handle.remove()


def hook_of_a_parameter(m: Any) -> Any:
    m.lin.weight.register_hook(lambda d: 2 * d)
    m(X, EDGES).sum().backward()
    return gradients(m)


def another_forward(m: Any) -> Any:
    m.lin.forward = lambda x: 3 * x
    return m(X, EDGES)


def another_forward_of_the_whole(m: Any) -> Any:
    m.forward = lambda x, edge_index: 3 * x
    return m(X, EDGES)


def another_layer(m: Any) -> Any:
    m.lin = nn.ReLU()
    return m(X, EDGES)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "change",
    [
        *(forward_hook, pre_hook, hook_of_the_whole, backward_hook, hook_of_all_modules),
        *(hook_of_a_parameter, another_forward, another_forward_of_the_whole, another_layer),
    ],
)
def test_what_changes_after_the_first_call(change: Callable[[Any], Any]) -> None:
    def run(model: nn.Module) -> Any:
        return model(X, EDGES), change(model)

    assert_as_eager(Two, run)


def test_warnings_and_prints() -> None:
    class Talking(Two):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            warnings.warn("careful", stacklevel=1)
            print("printed")
            return super().forward(x, edge_index)

    def run(model: nn.Module) -> Any:
        said: list[Any] = []
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    said.append(model(X, EDGES))
            said.append([str(w.message) for w in caught if "careful" in str(w.message)])
            said.append(out.getvalue())
        return said

    assert_as_eager(Talking, run)


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.conv, self.norm = GCNConv(WIDTH, 8), nn.BatchNorm1d(8)
        self.last, self.reentrant = GCNConv(8, 4), reentrant

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.conv(x, edge_index)
        h = checkpoint(self.norm, h, use_reentrant=self.reentrant).relu()
        return checkpoint(self.last, h, edge_index, use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_inside(reentrant: bool) -> None:
    def run(model: Any) -> Any:
        model(X, EDGES).square().sum().backward()
        found = gradients(model)
        del found["conv.bias"]  # 0 but for rounding, in front of a norm
        return found, dict(model.named_buffers())

    assert_as_eager(lambda: Checkpointed(reentrant), run)


class InPlace(nn.Module):
    """A block of layers, of which each computes again what backward reads."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(GCNConv(WIDTH, WIDTH) for _ in range(3))
        self.norm = nn.LayerNorm(WIDTH)

    def layer(self, conv: nn.Module, x: Tensor, edge_index: Tensor) -> Tensor:
        return x + conv(self.norm(x).relu_(), edge_index)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs:
            x = checkpoint(self.layer, conv, x, edge_index, use_reentrant=False)
        return x


def test_checkpoints_of_what_has_rules_are_in_one_program() -> None:
    def run(model: Any) -> Any:
        x = X.clone().requires_grad_()
        out = model(x, EDGES)
        out.square().sum().backward()
        return out, x.grad, gradients(model)

    report = gnnc.explain(assert_as_eager(InPlace, run))
    assert (report.graphs, report.fallbacks) == (1, [])


class Partly(nn.Module):
    """A layer in which torch runs a part."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(WIDTH, 4)

    def layer(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index).sort(0)[0]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return checkpoint(self.layer, x.tanh(), edge_index, use_reentrant=False).exp()


def test_a_checkpoint_with_a_part_in_torch_stays_one() -> None:
    def run(model: Any) -> Any:
        model(X, EDGES).square().sum().backward()
        return gradients(model)

    report = gnnc.explain(assert_as_eager(Partly, run))
    assert any(f.startswith("checkpoint: ") for f in report.fallbacks)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_around(reentrant: bool) -> None:
    def run(model: Any) -> Any:
        x = X.clone().requires_grad_()
        checkpoint(model, x, EDGES, use_reentrant=reentrant).square().sum().backward()
        return x.grad, gradients(model), dict(model.named_buffers())

    assert_as_eager(Normed, run)


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm1d(WIDTH), GCNConv(WIDTH, 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(self.norm(x), edge_index)


SCRIPT = """
import torch, gnnc
from torch_geometric.nn import FastRGCNConv, GCNConv, HeteroLinear
x, e, t = torch.randn(9, 4), torch.randint(0, 9, (2, 30)), torch.randint(0, 3, (30,))
gnnc.compile(GCNConv(4, 4))(x, e)
for layer, args in (
    (GCNConv(4, 4), (x, e)),
    (FastRGCNConv(4, 4, 3), (x, e, t)),
    (HeteroLinear(4, 4, 3), (x, t[:9])),
    (torch.nn.BatchNorm1d(4).eval(), (x,)),
):
    scripted = torch.jit.script(layer)
    assert torch.allclose(scripted(*args), layer(*args), atol=1e-5)
"""


def test_layers_can_be_scripted_after_a_compilation() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], check=True)
