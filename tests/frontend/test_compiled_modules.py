"""What users do with compiled modules besides calling them on a graph."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, SAGEConv

import gnnc
from gnnc.frontend.torch.bound import BoundProgram
from gnnc.runtime import threads, toolchain

from .equality import assert_interchangeable, random_edges
from .models import BY_NAME, Stack

NODES, EDGES, WIDTH, CLASSES = 30, 90, 8, 4

# Dynamo asks for the gradient of what a hook receives, or of an argument that was computed
computed = pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"
)


class Net(nn.Module):
    """Two GCN layers."""

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.first, self.second, self.p = GCNConv(WIDTH, 8), GCNConv(8, CLASSES), p

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.first(x, edge_index).relu(), self.p, self.training)
        return self.second(h, edge_index)


def graph(seed: int = 0, nodes: int = NODES, edges: int = EDGES) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, WIDTH, generator=generator)
    return x, random_edges(seed, nodes, nodes, edges, "uniform").index


def pair(p: float = 0.0, make: Any = Net) -> tuple[nn.Module, nn.Module]:
    """An eager model and the same compiled."""
    torch.manual_seed(1)
    eager = make(p) if make is Net else make()
    return eager, gnnc.compile(copy.deepcopy(eager))


def close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- training


@pytest.mark.parametrize("name", ["gcn-gcn", "gin-gin", "sage-elu"])
def test_fifty_steps_of_adam_give_the_same_losses(name: str) -> None:
    eager = BY_NAME[name].model(WIDTH, CLASSES, torch.float32)
    compiled = gnnc.compile(copy.deepcopy(eager))
    x, edge_index = graph()
    y = torch.arange(NODES) % CLASSES
    curves = []
    for model in (eager, compiled):
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        losses = []
        for _ in range(50):
            optimiser.zero_grad()
            loss = F.cross_entropy(model(x, edge_index), y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        curves.append(torch.tensor(losses))
    assert float((curves[0] - curves[1]).abs().max()) < 1e-3
    assert curves[1][-1] < curves[1][0]
    assert gnnc.explain(compiled).fallbacks == []


def test_a_new_graph_or_mode_compiles_little() -> None:
    _, model = pair()
    x, edge_index = graph()
    model(x, edge_index).sum().backward()
    report, before = gnnc.explain(model), toolchain.stats().compiled
    assert report.graphs == 1
    for k in range(20):
        model(*graph(k, 5 + 3 * k, 10 + 7 * k)).sum().backward()
    assert report.graphs == 1
    assert toolchain.stats().compiled == before


def test_a_new_width_is_a_new_program() -> None:
    @gnnc.compile
    def total(x: Tensor, edge_index: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])

    _, edge_index = graph()
    for width, graphs in ((4, 1), (7, 2), (4, 2), (7, 2)):
        x = torch.randn(NODES, width)
        want = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        assert close(total(x, edge_index), want)
        assert gnnc.explain(total).graphs == graphs


# ---------------------------------------------------------------- dropout


def test_dropout_has_one_mask_in_both_directions() -> None:
    class Drop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, 64, root_weight=False)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return F.dropout(x, 0.3, self.training) + 0 * self.conv(x, edge_index).sum()

    model = gnnc.compile(Drop())
    _, edge_index = graph(edges=4000, nodes=2000)
    x = torch.ones(2000, WIDTH, requires_grad=True)
    torch.manual_seed(5)
    first = model(x, edge_index)
    first.sum().backward()
    assert x.grad is not None
    kept = first.detach() > 0.5
    assert torch.equal(kept, x.grad > 0.5)
    assert torch.allclose(x.grad[kept], torch.tensor(1 / 0.7))
    rate = 1 - kept.float().mean().item()
    assert abs(rate - 0.3) < 0.02
    second = model(x, edge_index)
    assert not torch.equal(first > 0.5, second > 0.5)
    torch.manual_seed(5)
    assert torch.equal(model(x, edge_index), first)
    assert torch.allclose(model.eval()(x, edge_index), x)


def test_dropout_sites_of_one_call_differ() -> None:
    @gnnc.compile
    def twice(x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        y = x.index_select(0, edge_index[0])
        return F.dropout(x, 0.5), F.dropout(x, 0.5) + 0 * y.sum()

    x, edge_index = torch.ones(500, WIDTH), graph(nodes=500)[1]
    a, b = twice(x, edge_index)
    assert 0.2 < ((a > 0) == (b > 0)).float().mean() < 0.8
    for column in range(WIDTH - 1):
        same = ((a[:, column] > 0) == (a[:, column + 1] > 0)).float().mean()
        assert 0.3 < same < 0.7


def test_dropout_leaves_the_expectation() -> None:
    torch.manual_seed(1)
    model = gnnc.compile(Net(0.5))
    x, edge_index = graph()
    with torch.no_grad():
        mean = torch.stack([model(x, edge_index) for _ in range(800)]).mean(0)
        want = model.eval()(x, edge_index)
    assert float((mean - want).abs().max()) < 0.25 * float(want.abs().max())


# ---------------------------------------------------------------- autograd


def test_no_grad_saves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[BoundProgram] = []

    def record(*args: Any) -> BoundProgram:
        made.append(BoundProgram(*args))
        return made[-1]

    monkeypatch.setattr(sys.modules["gnnc.frontend.torch.compile"], "BoundProgram", record)
    eager, model = pair()
    x, edge_index = graph()
    with torch.no_grad():
        y = model(x, edge_index)
    (program,) = made
    assert program.signature.saved == ()
    assert "backward" not in program.program.phases
    assert not y.requires_grad
    assert y.grad_fn is None
    assert close(y, eager(x, edge_index))
    assert not any(k.startswith("backward") for k in gnnc.explain(model).kernels)
    with torch.inference_mode():
        assert close(model(x, edge_index), y)
    model(x, edge_index).sum().backward()
    assert any(k.startswith("backward") for k in gnnc.explain(model).kernels)


def test_two_forwards_before_a_backward() -> None:
    eager, model = pair()
    (x, e), (z, f) = graph(1), graph(2, 50, 200)
    for m in (eager, model):
        a, b = m(x, e), m(z, f)
        (a.sum() + (b * b).sum()).backward()
    for p, q in zip(eager.parameters(), model.parameters(), strict=True):
        assert p.grad is not None and q.grad is not None
        assert close(p.grad, q.grad)


def test_backward_twice() -> None:
    eager, model = pair()
    x, edge_index = graph()
    grads = []
    for m in (eager, model):
        y = m(x, edge_index).square().sum()
        y.backward(retain_graph=True)
        y.backward()
        grads.append([p.grad.clone() for p in m.parameters()])
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()
    assert all(close(a, b) for a, b in zip(*grads, strict=True))


def test_double_backward_is_refused() -> None:
    _, model = pair()
    x, edge_index = graph()
    x.requires_grad_()
    (g,) = torch.autograd.grad(model(x, edge_index).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|twice|grad"):
        g.square().sum().backward()


@pytest.mark.parametrize("wanted", ["x", "parameters", "bias", "nothing"])
def test_gradients_for_some_inputs_only(wanted: str) -> None:
    eager, model = pair()
    x, edge_index = graph()
    results = []
    for m in (eager, model):
        z = x.clone().requires_grad_(wanted == "x")
        for name, p in m.named_parameters():
            p.requires_grad_(wanted == "parameters" or wanted == "bias" and name == "first.bias")
        y = m(z, edge_index)
        assert y.requires_grad == (wanted != "nothing")
        if wanted != "nothing":
            y.square().sum().backward()
        results.append([z.grad, *(p.grad for p in m.parameters())])
    for a, b in zip(*results, strict=True):
        assert (a is None) == (b is None)
        assert a is None or close(a, b)


def test_an_edit_between_forward_and_backward_is_noticed() -> None:
    _, model = pair()
    x, edge_index = graph()
    y = model(x, edge_index)
    with torch.no_grad():
        model.second.lin.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_result_with_its_own_value_in_backward() -> None:
    """The derivative of ReLU reads the result, which is also the caller's."""

    class Relu(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, 8)

        def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
            y = self.conv(x, edge_index).relu()
            return y, y.sum(dim=0)

    eager, model = pair(make=Relu)
    x, edge_index = graph()
    assert_interchangeable(eager, model, (x.requires_grad_(), edge_index))
    y, _ = model(x, edge_index)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_number_taken_from_a_tensor_has_no_gradient() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, 8)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            y = self.conv(x, edge_index)
            return y * y.max().item()

    eager, model = pair(make=Scaled)
    x, edge_index = graph()
    assert_interchangeable(eager, model, (x.requires_grad_(), edge_index))


def test_a_buffer_that_counts() -> None:
    """Backward reads the counter as it was when the call began."""

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, 8)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            self.calls += 1
            return self.conv(x, edge_index) * self.calls

    eager, model = pair(make=Counting)
    for k in range(3):
        x, edge_index = graph(k)
        assert_interchangeable(eager, model, (x.requires_grad_(), edge_index))


def test_some_outputs_unused() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = GCNConv(WIDTH, 8), GCNConv(WIDTH, 8)

        def forward(self, x: Tensor, e: Tensor) -> dict[str, Any]:
            return {"a": self.a(x, e), "b": [self.b(x, e), x, 3]}

    eager, model = pair(make=Two)
    x, edge_index = graph()
    for m in (eager, model):
        out = m(x, edge_index)
        assert out["b"][1] is x and out["b"][2] == 3
        out["a"].sum().backward()
    for (k, p), q in zip(eager.named_parameters(), model.parameters(), strict=True):
        if k.startswith("a."):
            assert close(p.grad, q.grad)
        else:
            assert p.grad is None
            assert q.grad is None or not q.grad.any()


# ---------------------------------------------------------------- modules


def test_train_and_eval() -> None:
    def make() -> nn.Module:
        return Stack([GCNConv(WIDTH, 8), GCNConv(8, CLASSES)], norms=[nn.BatchNorm1d(8)])

    eager, model = pair(make=make)
    x, edge_index = graph()
    for training in (True, False, True, False, False):
        eager.train(training), model.train(training)
        assert close(eager(x, edge_index), model(x, edge_index))
        for a, b in zip(eager.buffers(), model.buffers(), strict=True):
            assert torch.allclose(a, b)
    assert gnnc.explain(model).graphs == 2


def test_batch_norm_refuses_one_row_as_torch_does() -> None:
    def make() -> nn.Module:
        return Stack([GCNConv(WIDTH, 8), GCNConv(8, CLASSES)], norms=[nn.BatchNorm1d(8)])

    eager, model = pair(make=make)
    for first in (False, True):
        if first:
            model(*graph())
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            model(torch.randn(1, WIDTH), torch.zeros(2, 1, dtype=torch.long))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        eager(torch.randn(1, WIDTH), torch.zeros(2, 1, dtype=torch.long))


def test_state_dict_copy_and_pickle() -> None:
    eager, model = pair()
    x, edge_index = graph()
    want = eager(x, edge_index)
    model(x, edge_index)
    assert list(model.state_dict()) == list(eager.state_dict())
    assert close(copy.deepcopy(model)(x, edge_index), want)
    again = pickle.loads(pickle.dumps(model))
    assert close(again(x, edge_index), want)
    assert close(gnnc.compile(again)(x, edge_index), want)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.second.bias.add_(1)
    assert close(other(x, edge_index), want + 1)
    assert close(model(x, edge_index), want)
    gnnc.compile(other)
    assert close(other(x, edge_index), want + 1)
    with torch.no_grad():
        for p in eager.parameters():
            p.add_(0.1)
    model.load_state_dict(eager.state_dict())
    assert close(model(x, edge_index), eager(x, edge_index))
    model.double()
    assert close(model(x.double(), edge_index).float(), eager(x, edge_index))


@computed
def test_hooks_run() -> None:
    eager, model = pair()
    x, edge_index = graph()
    seen: list[str] = []
    model.register_forward_pre_hook(lambda m, args: seen.append("pre"))
    model.register_forward_hook(lambda m, args, y: seen.append("post"))
    model.first.register_forward_hook(lambda m, args, y: 2 * y)
    eager.first.register_forward_hook(lambda m, args, y: 2 * y)
    y = model(x, edge_index)
    assert seen == ["pre", "post"]
    assert close(y, eager(x, edge_index))
    grads: list[Tensor] = []
    model.first.lin.weight.register_hook(grads.append)
    y.sum().backward()
    assert len(grads) == 1


def test_as_a_decorator() -> None:
    @gnnc.compile
    class Whole(Net):
        pass

    @gnnc.compile(fullgraph=True)
    class Strict(Net):
        pass

    class Child(Whole):  # type: ignore[misc, valid-type]
        pass

    x, edge_index = graph()
    for cls in (Whole, Strict):
        model = cls()
        y = model(x, edge_index)
        assert gnnc.explain(model).graphs == 1
        assert close(y, nn.Module.__call__(copy.deepcopy(model), x, edge_index))
    with pytest.raises(ValueError, match="was not compiled"):
        gnnc.explain(Child())

    @gnnc.compile
    def spread(x: Tensor, edge_index: Tensor, *, scale: float = 1.0) -> Tensor:
        """Doc."""
        src, dst = edge_index
        return torch.zeros_like(x).index_add(0, dst, scale * x[src])

    assert spread.__name__ == "spread" and spread.__doc__ == "Doc."
    src, dst = edge_index
    want = torch.zeros_like(x).index_add(0, dst, 2 * x[src])
    assert close(spread(x, edge_index, scale=2.0), want)
    assert gnnc.explain(spread).graphs == 1
    with pytest.raises(TypeError, match="module, a module class or a function"):
        gnnc.compile(3)
    with pytest.raises(TypeError, match="no_such_option"):
        gnnc.compile(Net(), no_such_option=1)


def test_many_modules_of_one_class() -> None:
    """Dynamo's limit on recompilations is for each module."""
    x, edge_index = graph()
    with torch.no_grad():
        for _ in range(70):
            model = gnnc.compile(SAGEConv(WIDTH, 2))
            model(x, edge_index)
            assert gnnc.explain(model).graphs == 1


def test_cached_gcn() -> None:
    torch.manual_seed(0)
    eager = GCNConv(WIDTH, CLASSES, cached=True)
    model = gnnc.compile(copy.deepcopy(eager))
    x, edge_index = graph()
    for _ in range(3):
        for m in (eager, model):
            m.zero_grad()
            m(x, edge_index).square().sum().backward()
        assert close(model(x, edge_index), eager(x, edge_index))
        assert close(model.lin.weight.grad, eager.lin.weight.grad)


# ---------------------------------------------------------------- inputs


@pytest.mark.parametrize(
    "make", [Net, lambda: SAGEConv(WIDTH, 4), lambda: GINConv(nn.Linear(8, 3))]
)
@pytest.mark.parametrize("bad", [NODES, NODES + 10**6, -1])
def test_an_index_out_of_range(make: Any, bad: int) -> None:
    _, model = pair(make=make)
    x, edge_index = graph()
    model(x, edge_index)
    for row in (0, 1):
        wrong = edge_index.clone()
        wrong[row, 3] = bad
        with pytest.raises(IndexError, match=rf"^edge_index.*{bad}"):
            model(x, wrong)
    assert gnnc.explain(model).fallbacks == []


def test_an_index_out_of_range_in_the_first_call() -> None:
    _, model = pair()
    x, edge_index = graph()
    edge_index[1, 0] = NODES
    with pytest.raises(IndexError, match="edge_index"):
        model(x, edge_index)


def test_an_edit_in_place_of_the_graph_is_seen() -> None:
    eager, model = pair()
    x, edge_index = graph()
    for _ in range(3):
        assert close(model(x, edge_index), eager(x, edge_index))
        edge_index[0] = (edge_index[0] + 1) % NODES
    edge_index[0, 0] = NODES
    with pytest.raises(IndexError, match="edge_index"):
        model(x, edge_index)


@pytest.mark.parametrize(
    "change",
    [
        lambda x, e: (x[:, :-1], e),
        lambda x, e: (x, e.float()),
        lambda x, e: (x.long(), e),
        lambda x, e: (x.double(), e),
        lambda x, e: (x, e[:1]),
    ],
    ids=["narrow", "float edges", "integer features", "double features", "one row of edges"],
)
@pytest.mark.parametrize("first", [True, False])
def test_wrong_input_raises_as_in_torch(change: Any, first: bool) -> None:
    eager, model = pair()
    x, edge_index = graph()
    if not first:
        model(x, edge_index)
    with pytest.raises(Exception) as expected:
        eager(*change(x, edge_index))
    with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)) as found:
        model(*change(x, edge_index))
    assert str(found.value), expected


def test_lengths_that_do_not_meet() -> None:
    model = gnnc.compile(GCNConv(WIDTH, 4))
    x, edge_index = graph()
    for _ in range(2):
        with pytest.raises(
            ValueError, match="edge_index and edge_weight meet row by row: 90 and 89"
        ):
            model(x, edge_index, torch.rand(EDGES - 1))
        model(x, edge_index, torch.rand(EDGES))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_runs_in_torch(dtype: torch.dtype) -> None:
    eager, model = pair(make=lambda: SAGEConv(WIDTH, 4))
    x, edge_index = graph()
    eager, model, x = eager.to(dtype), model.to(dtype), x.to(dtype)
    y = model(x, edge_index)
    assert y.dtype == dtype
    assert torch.equal(y, eager(x, edge_index))
    (message,) = gnnc.explain(model).fallbacks
    assert "float" in message
    y.float().sum().backward()


def test_autocast_runs_in_torch() -> None:
    eager, model = pair()
    x, edge_index = graph()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(x, edge_index)
        assert torch.equal(y, eager(x, edge_index))
    assert any("autocast" in f for f in gnnc.explain(model).fallbacks)
    assert close(model(x, edge_index), eager(x, edge_index))


@pytest.mark.parametrize(
    "change",
    [
        lambda x, e: (x.T.contiguous().T, e),
        lambda x, e: (torch.cat([x, x], dim=1)[:, 3:11], e),
        lambda x, e: (x[torch.arange(NODES)][::1], e.T.contiguous().T),
        lambda x, e: (x, e.repeat_interleave(2, dim=1)[:, ::2]),
        lambda x, e: (x, e.int()),
        lambda x, e: (x, torch.cat([e, e])[1:3].flip(0)),
        lambda x, e: (x[:1].expand(NODES, WIDTH), e),
        lambda x, e: (torch.cat([torch.zeros(1), x.flatten()])[1:].view(NODES, WIDTH), e),
        lambda x, e: (x.clone().requires_grad_() * 2, e),
    ],
    ids=[
        "columns first",
        "columns of a wider matrix",
        "edges first",
        "strided edges",
        "int32",
        "flipped",
        "expanded",
        "unaligned",
        "not a leaf",
    ],
)
@computed
def test_any_layout_of_inputs(change: Any) -> None:
    eager, model = pair(make=lambda: SAGEConv(WIDTH, 4))
    for k in range(2):
        x, edge_index = change(*graph(k))
        assert close(model(x, edge_index), eager(x, edge_index))
    assert gnnc.explain(model).fallbacks == []
    x = graph()[0].requires_grad_()
    for m in (eager, model):
        m(change(x, edge_index)[0], edge_index).square().sum().backward()
        grad, x.grad = x.grad, None
    assert grad is not None
    for p, q in zip(eager.parameters(), model.parameters(), strict=True):
        assert close(p.grad, q.grad)


# ---------------------------------------------------------------- reports and fallbacks


class Partly(nn.Module):
    """Compilable layers around one op that is not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(WIDTH, 16), SAGEConv(3, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(x, edge_index).relu()
        h = torch.topk(h, 3, dim=1).values
        return self.second(h, edge_index)


def test_an_unsupported_op_runs_in_torch_and_is_reported() -> None:
    eager, model = pair(make=Partly)
    for k in range(3):
        x, edge_index = graph(k, 20 + k)
        assert close(model(x, edge_index), eager(x, edge_index))
    model.zero_grad(), eager.zero_grad()
    for m in (eager, model):
        m(x, edge_index).square().sum().backward()
    for p, q in zip(eager.parameters(), model.parameters(), strict=True):
        assert close(p.grad, q.grad)
    report = gnnc.explain(model)
    assert len(report.fallbacks) == 1
    assert "topk" in report.fallbacks[0]
    assert Path(__file__).name in report.fallbacks[0]
    assert report.kernels
    assert "topk" in str(report)


def test_fullgraph_raises_instead() -> None:
    model = gnnc.compile(Partly(), fullgraph=True)
    with pytest.raises(Exception, match="topk"):
        model(*graph())


def test_explain() -> None:
    _, model = pair()
    assert gnnc.explain(model).graphs == 0
    model(*graph()).sum().backward()
    report = gnnc.explain(model)
    assert report.graphs == 1
    assert report.compile_seconds > 0
    assert all(Path(s).exists() and Path(s).with_suffix(".c").exists() for s in report.sources)
    text = str(report)
    assert all(k in text for k in report.kernels)
    assert "nothing runs in torch" in text
    with pytest.raises(ValueError, match="was not compiled"):
        gnnc.explain(Net())


# ---------------------------------------------------------------- processes and threads


def test_the_number_of_threads_is_torchs() -> None:
    before = torch.get_num_threads()
    try:
        for count in (3, 1):
            torch.set_num_threads(count)
            assert threads.num_threads() == count
    finally:
        torch.set_num_threads(before)


def test_numbers_do_not_depend_on_the_number_of_threads() -> None:
    model = gnnc.compile(BY_NAME["gcn-batchnorm"].model(WIDTH, CLASSES, torch.float32))
    x, edge_index = graph(3, 3000, 20000)
    edge_index[1, ::2] = 7
    results = []
    try:
        for count in (1, 2):
            threads.set_num_threads(count)
            model.zero_grad()
            z = x.clone().requires_grad_()
            y = model(z, edge_index)
            y.square().sum().backward()
            results.append([y, z.grad, *(p.grad.clone() for p in model.parameters())])
    finally:
        threads.set_num_threads(None)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


PROGRAM = """
import torch, gnnc
from torch_geometric.nn import GCNConv
from gnnc.runtime import toolchain
torch.manual_seed(0)
model = gnnc.compile(GCNConv(5, 3))
x, e = torch.randn(9, 5), torch.randint(0, 9, (2, 20))
y = model(x, e)
y.sum().backward()
print(toolchain.stats().compiled, y.sum().item(), gnnc.explain(model).graphs)
"""


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[dict[str, str]]:
    yield {**os.environ, "GNNC_CACHE": str(tmp_path / "cache")}


def test_another_process_finds_the_programs(fresh: dict[str, str]) -> None:
    answers = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROGRAM)],
            env=fresh,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "UserWarning" not in done.stderr
        answers.append(done.stdout.split())
    assert int(answers[0][0]) > 0
    assert int(answers[1][0]) == 0
    assert answers[0][1:] == answers[1][1:]


def test_without_a_compiler_models_run_in_torch(fresh: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM) + "print(gnnc.explain(model))"],
        env={**fresh, "PATH": "", "CC": "/no/such/compiler"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "runs in torch" in done.stdout
    assert "compiler" in done.stderr
