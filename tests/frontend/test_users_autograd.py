"""Programs of users that look at autograd: what has a gradient, and of what, as eager has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import HeteroData
from torch_geometric.nn import (
    HGTConv,
)
from torch_geometric.utils import scatter

import gnnc

from .contract import check
from .users import E, X, drawn, edges, gathered

# Dynamo looks at `.grad` of every argument
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


def energy(pos: Tensor, e: Tensor, w: Tensor) -> Tensor:
    d = (pos[e[0]] - pos[e[1]]).pow(2).sum(-1)
    return scatter((-d).exp() @ w if d.dim() > 1 else (-d).exp() * w, e[1], 0, pos.size(0))


class Forces(nn.Module):
    """An energy and its negative gradient, which is taken between two graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(1, 8), nn.Linear(8, 1)

    def forward(self, pos: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        d = (pos[e[0]] - pos[e[1]]).pow(2).sum(-1, keepdim=True)
        out = scatter(self.second(self.first(d).tanh()), e[1], 0, pos.size(0)).sum()
        return out, -torch.autograd.grad(out, pos, create_graph=True)[0]


def test_a_forward_that_differentiates_is_no_trace_of_ours() -> None:
    """The backward of a compiled call runs in a frame that Dynamo watches."""
    torch.manual_seed(0)
    eager = Forces()
    compiled = gnnc.compile(Forces())
    compiled.load_state_dict(eager.state_dict())
    found: list[list[Tensor]] = []
    for model in (eager, compiled):
        torch._dynamo.reset()
        out, forces = model(drawn(4, 3), E)
        (out + forces.pow(2).sum()).backward()
        found.append([out, forces, *(p.grad for p in model.parameters() if p.grad is not None)])
    torch.testing.assert_close(found[1], found[0])
    report = gnnc.explain(compiled)
    assert report.graphs >= 1
    assert not [r for r in report.fallbacks if "gnnc/" in r and "tests" not in r], report.fallbacks


def test_forces_in_a_loss() -> None:
    def loss(f: Callable[..., Tensor], pos: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        out = f(pos, E, w)
        (force,) = torch.autograd.grad(out.sum(), pos, create_graph=True)
        return torch.autograd.grad(force.pow(2).sum() + out.sum(), [pos, w])

    pos, w = drawn(4, 3), torch.tensor(1.3, requires_grad=True)
    want, got = loss(energy, pos, w), loss(gnnc.compile(energy), pos, w)
    for x, y in zip(want, got, strict=True):
        assert torch.allclose(x, y, rtol=1e-5)


def test_unused_parameters_have_no_gradient() -> None:
    def half(x: Tensor, e: Tensor, unused: Tensor, frozen: Tensor) -> Tensor:
        return gathered(x, e) + frozen.detach()

    check(half, (X, E, drawn(3), drawn(3, seed=2)))

    def apart(x: Tensor, e: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return gathered(x @ a, e), gathered(x @ b, e)

    def of_the_first(y: Any, args: Any) -> Any:
        return torch.autograd.grad(y[0].sum(), args[2:], retain_graph=True, allow_unused=True)

    def flags(y: Any, args: Any) -> Any:
        return [g is None for g in of_the_first(y, args)]

    check(apart, (X, E, drawn(3, 2), drawn(3, 2, seed=1)), after=flags)


def test_hgt_leaves_what_it_does_not_use_alone() -> None:
    graph = HeteroData()
    graph["p"].x, graph["q"].x = drawn(5, 4, grad=False), drawn(4, 4, seed=1, grad=False)
    graph["p", "to", "q"].edge_index = torch.stack([edges(5, 7)[0], edges(4, 7, 1)[1]])
    torch.manual_seed(0)
    check(HGTConv(4, 8, graph.metadata(), heads=2), (graph.x_dict, graph.edge_index_dict))


def between_results(y: Any, args: Any) -> Any:
    h, out = y
    return torch.autograd.grad(out.sum(), h, retain_graph=True, allow_unused=True)


def test_gradients_between_results() -> None:
    def two(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        h = gathered(x, e).tanh()
        return h, gathered(h, e) * h

    check(two, (X, E), after=between_results)

    def retained(y: Any, args: Any) -> Any:
        y[0].retain_grad()
        y[1].sum().backward(retain_graph=True)
        return y[0].grad

    check(two, (X, E), after=retained)


def test_gradients_inside_no_grad() -> None:
    def nested(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            h = gathered(x, e)
            with torch.enable_grad():
                k = gathered(x * 2, e)
        return h + x, k

    check(nested, (X, E))


def handed_on(x: Tensor) -> Tensor:
    """A dropout that drops nothing gives `x` itself, with its history, under no_grad too."""
    with torch.no_grad():
        return F.dropout(x, 0.0)


def edited_without_history(x: Tensor) -> Tensor:
    w = handed_on(x).t() @ torch.ones(x.size(0), 2)
    with torch.no_grad():
        w.relu_()
    return w * 2


def read_by_torch(x: Tensor) -> Tensor:
    w = torch.special.i0(handed_on(x).sin())  # which has no rule
    return (w @ torch.ones(3, 2)).sin()


def beside_torch(x: Tensor) -> Tensor:
    v = handed_on(x)
    with torch.no_grad():
        w = torch.special.i0(x)
    return ((v + w) @ torch.ones(3, 2)).sin()


@pytest.mark.parametrize("f", [edited_without_history, read_by_torch, beside_torch])
def test_what_a_dropout_hands_on_without_recording(f: Callable[[Tensor], Tensor]) -> None:
    """Examples of it show no history, to edits and to the parts of a call."""
    found: list[Tensor] = []
    for g in (f, gnnc.compile(f)):
        x = torch.arange(12.0).view(4, 3).cos().requires_grad_()
        g(x).sum().backward()
        assert x.grad is not None
        found.append(x.grad)
    torch.testing.assert_close(*found)


def test_requires_grad_of_functions_that_are_flat() -> None:
    def flat(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
        h = gathered(x, e)
        return h.sign(), h.floor(), h**0, h > 0, h

    check(flat, (X, E))


def test_batched_gradients() -> None:
    f = gnnc.compile(lambda x, e: gathered(x * x, e))

    def jacobian(g: Any) -> Tensor:
        y = g(X, E)
        return torch.autograd.grad(y, X, torch.eye(12).view(12, 4, 3), is_grads_batched=True)[0]

    assert torch.allclose(jacobian(f), jacobian(lambda x, e: gathered(x * x, e)), rtol=1e-5)


def test_a_checkpoint_around_a_norm() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x: Tensor, e: Tensor) -> Tensor:
            return gathered(checkpoint(self.norm, x, use_reentrant=False), e)

    check(Net(), (X, E))


def test_sparse_gradients_of_an_embedding() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(6, 3, sparse=True)

        def forward(self, i: Tensor, e: Tensor) -> Tensor:
            return gathered(self.table(i), e)

    torch.manual_seed(0)
    net = Net()
    check(net, (torch.tensor([0, 5, 5, 1]), E))
    assert net.table.weight.grad is not None and net.table.weight.grad.is_sparse


FLAT_BESIDE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sqrt": lambda z, x: z.sqrt() + x,
    "div": lambda z, x: x / z,
    "log": lambda z, x: z.log() * x,
    "mul by infinity": lambda z, x: x * (z + float("inf")),
}


@pytest.mark.parametrize("name", FLAT_BESIDE)
def test_slopes_of_a_result_that_nobody_differentiates(name: str) -> None:
    """A slope that is no number meets nothing there, not a 0."""

    def function(z: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return z * 2 + x, FLAT_BESIDE[name](z, x)

    def after(results: Any, arguments: Any) -> Any:
        return torch.autograd.grad(results[0].sum(), arguments, retain_graph=True)

    check(function, (torch.zeros(4, 3, requires_grad=True), X), after=after)


def test_a_copy_that_another_argument_has_a_gradient_of() -> None:
    check(lambda x, y: torch.stack([x, y])[0], (X, drawn(4, 3, seed=1)))


def test_arguments_named_as_results_and_cotangents_are() -> None:
    """gnnc's own names give way."""

    def cotangent(d_out0: Tensor, e: Tensor, w: Tensor) -> Tensor:
        return gathered(d_out0, e) * w.exp()

    def both(d_out0: Tensor, e: Tensor, out0: Tensor, d_d_out0: Tensor, saved_add: Tensor) -> Any:
        y = gathered(d_out0 * out0, e) * d_d_out0
        return y, y.exp() + saved_add

    for f, count in ((cotangent, 1), (both, 3)):
        report = check(f, (X, E, *(drawn(3, seed=k) for k in range(count))))
        assert report.fallbacks == []


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp", "jacrev"])
def test_transforms_of_torch_func_inside(transform: str) -> None:
    """Torch runs them, for what a transform gives its function has no memory of its own."""
    weights = drawn(2, 3, 2, seed=1)

    def function(x: Tensor, e: Tensor, weights: Tensor) -> Any:
        def energy(w: Tensor) -> Tensor:
            return gathered(x @ w, e).tanh().sum(0)

        w = weights[0]
        match transform:
            case "grad":
                return torch.func.grad(lambda w: energy(w).sum())(w)
            case "vmap":
                return torch.func.vmap(energy)(weights)
            case "jvp":
                return torch.func.jvp(energy, (w,), (w,))
            case _:
                return torch.func.jacrev(energy)(w)

    report = check(function, (X, E, weights))
    assert "within a transform of torch.func" in " ".join(report.fallbacks)
