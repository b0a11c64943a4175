"""Compiled models train: optimisers, dropout, and what autograd promises."""

from __future__ import annotations

import copy
import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten
from torch_geometric.nn import GCNConv, SAGEConv

import gnnc
from gnnc.frontend.torch.calls.bound_program import BoundProgram
from gnnc.runtime.cpu import toolchain

from .equality import assert_interchangeable
from .models import BY_NAME, CLASSES, NODES, WIDTH, Net, close, graph, pair

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
    assert program.differentiation is None
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


def sums(x: Tensor, e: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, e[1], x[e[0]])


def sum_and_function(x: Tensor, z: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """Eager saves the second result alone."""
    y = sums(x * z, e)
    return y, y.sigmoid()


def functions_apart(x: Tensor, z: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """Each result is saved for its own backward."""
    return sums(x, e).exp(), sums(x * z, e).tanh()


@pytest.mark.parametrize(
    ("function", "edited", "followed", "raises"),
    [
        (sum_and_function, 0, [1], False),
        (sum_and_function, 0, [0, 1], False),
        (sum_and_function, 1, [0, 1], True),
        (functions_apart, 0, [1], False),
        (functions_apart, 1, [0], False),
        (functions_apart, 0, [0], True),
    ],
)
def test_results_may_be_edited_where_eager_does_not_read_them(
    function: Any, edited: int, followed: list[int], raises: bool
) -> None:
    x, e = graph()
    z = torch.randn_like(x)
    found = []
    for f in (function, gnnc.compile(function)):
        leaves = [t.clone().requires_grad_() for t in (x, z)]
        results = f(*leaves, e)
        with torch.no_grad():
            results[edited].add_(1)
        total = sum((results[k].sum() for k in followed), torch.zeros(()))
        if raises:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                total.backward()
        else:
            total.backward()
            found.append([t.grad for t in leaves])
    for ours, theirs in zip(*found, strict=True) if found else ():
        assert (ours is None) == (theirs is None)
        assert ours is None or theirs is None or close(ours, theirs)


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


def test_a_buffer_whose_new_value_has_a_part_in_the_gradient() -> None:
    """It is saved for backward, so it is no tensor that the call edits."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(WIDTH))
            self.register_buffer("mean", torch.zeros(WIDTH))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            with torch.no_grad():
                self.mean.mul_(0.9).add_(0.1 * x.mean(0))
            h = x * (self.weight * self.mean)
            return torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]])

    eager = Scaled()
    compiled = gnnc.compile(copy.deepcopy(eager))
    x, edge_index = graph()
    for _ in range(3):
        grads = []
        for model in (eager, compiled):
            model.zero_grad()
            model(x, edge_index).square().sum().backward()
            assert model.weight.grad is not None
            grads.append(model.weight.grad.clone())
        assert close(*grads)
        assert close(eager.mean, compiled.mean)


def test_buffers_that_products_and_masks_update() -> None:
    """What is stored late, or copied out of turn, is not written over what it is made from."""

    class Buffers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cov", torch.randn(64, 64) / 8)
            self.register_buffer("mask", torch.rand(NODES, WIDTH) < 0.5)

        def forward(self, x: Tensor, new: Tensor, other: Tensor) -> Tensor:
            y = torch.where(self.mask, x, 0.0) + torch.where(new, x, 0.0)
            self.mask.copy_(new)
            self.cov.copy_(self.cov @ other)
            return y

    eager = Buffers()
    compiled = gnnc.compile(copy.deepcopy(eager))
    x, _ = graph()
    other = torch.randn(64, 64) / 8
    with torch.no_grad():
        for k in range(3):
            new = (torch.arange(x.numel()).view_as(x) * (k + 3)) % 5 < 2
            assert close(compiled(x, new, other), eager(x, new, other))
            assert torch.equal(compiled.mask, eager.mask)
            assert close(compiled.cov, eager.cov)


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
            assert q.grad is None


class SingleRows(nn.Module):
    """Parameters of many shapes, none of which counts nodes or edges, and such results."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(WIDTH, 6)
        self.scalar = nn.Parameter(torch.tensor(0.3))
        self.one = nn.Parameter(torch.randn(1))
        self.row = nn.Parameter(torch.randn(1, 6))
        self.transposed = nn.Parameter(torch.randn(5, 6).t())
        self.block = nn.Parameter(torch.randn(2, 3, 1))

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        y = self.conv(x, edge_index) * self.scalar + self.one + self.row
        z = y @ self.transposed
        return {"y": y, "z": [z, z.sum(), self.block.sum() * 2]}, y.mean(0, keepdim=True)


def test_single_rows_keep_their_shapes() -> None:
    eager = SingleRows()
    model = gnnc.compile(copy.deepcopy(eager))
    x, edge_index = graph()
    for _ in range(2):
        gradients: list[list[Tensor]] = []
        results: list[list[Tensor]] = []
        for net in (eager, model):
            results.append(tree_flatten(net(x, edge_index))[0])
            loss = sum(((y * y).sum() for y in results[-1]), torch.zeros(()))
            gradients.append(list(torch.autograd.grad(loss, list(net.parameters()))))
        pairs = [*zip(*results, strict=True), *zip(*gradients, strict=True)]
        assert all(found.shape == expected.shape for expected, found in pairs)
        assert all(close(found, expected) for expected, found in pairs)
    assert not gnnc.explain(model).fallbacks
