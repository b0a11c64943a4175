"""Programs of users that edit tensors, or return what lies in the memory of others."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import gnnc

from .contract import assert_same, check, observe
from .users import E, X, drawn, edges, gathered

# Dynamo looks at `.grad` of every argument
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


def clamped_without_gradient(x: Tensor, e: Tensor) -> Tensor:
    h = x * 3
    with torch.no_grad():
        h.clamp_(min=0)
    return gathered(h, e)


def relu_by_position(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    h = gathered(x, e)
    y = F.relu(h, True)
    return y, h * 2


def leaky_by_position(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    h = gathered(x, e)
    y = F.leaky_relu(h, 0.1, True)
    return y * 1, h * 2


def transposed(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
    h = gathered(x, e)
    return h.t(), h.t().contiguous(), x.t().contiguous(), x.t() + 1


@pytest.mark.parametrize(
    "function",
    [clamped_without_gradient, relu_by_position, leaky_by_position, transposed],
    ids=lambda f: f.__name__,
)
def test_edits(function: Any) -> None:
    check(function, (X, E))


def test_weights_clamped_in_forward() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(drawn(3, 2, seed=3).detach())

        def forward(self, x: Tensor, e: Tensor) -> Tensor:
            with torch.no_grad():
                self.w.clamp_(min=0)
            return gathered(x @ self.w, e)

    net = Net()
    own = copy.deepcopy(net)
    check(net, (X, E), (X * 2, E))
    own(X, E)
    assert torch.equal(own.w, net.w)


@pytest.mark.parametrize(
    "activation",
    [nn.ReLU(True), nn.LeakyReLU(0.1, True), nn.ELU(inplace=True), nn.Dropout(0.0, True)],
    ids=lambda m: type(m).__name__,
)
def test_modules_that_edit_what_others_read(activation: nn.Module) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.activation = activation

        def forward(self, x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
            h = gathered(x, e)
            y = self.activation(h)
            return y + 1, h * 2

    check(Net(), (X, E))


@pytest.mark.parametrize("later", [False, True])
def test_a_dropout_of_nothing_behind_an_edit(later: bool) -> None:
    """It hands on what was edited before it, as in PyG's models with `ReLU(inplace=True)`: one
    program, unless what it gives is edited too."""

    def layers(x: Tensor, e: Tensor) -> Tensor:
        for _ in range(2):
            h = F.dropout(gathered(x, e).relu_(), 0.0)
            x = h * h
            if later:
                h.add_(1)
        return x

    if later:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            layers(X, E).sum().backward()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            gnnc.compile(layers)(X, E).sum().backward()
        return
    check(layers, (X, E))
    compiled = gnnc.compile(layers)
    compiled(X, E)
    assert gnnc.explain(compiled).fallbacks == []


def test_an_argument_with_a_history_that_is_edited() -> None:
    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act, self.lin = nn.ReLU(inplace=True), nn.Linear(3, 2)

        def forward(self, h: Tensor, e: Tensor) -> Tensor:
            return gathered(self.lin(self.act(h)), e)

    torch.manual_seed(0)
    net = First()
    own, compiled = copy.deepcopy(net), gnnc.compile(net)

    def around(f: nn.Module) -> Callable[..., Any]:
        def whole(x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
            h = x * 2
            return f(h, e), h

        return whole

    assert_same(observe(around(own), (X, E)), observe(around(compiled), (X, E)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("edit", [F.relu_, lambda h: h.mul_(3), lambda h: F.elu(h, 1.0, True)])
def test_an_argument_with_a_history_that_a_function_edits(edit: Any) -> None:
    def first(h: Tensor, e: Tensor, w: Tensor) -> Tensor:
        return gathered(edit(h) @ w, e)

    compiled = gnnc.compile(first)

    def around(f: Callable[..., Any]) -> Callable[..., Any]:
        def whole(x: Tensor, e: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
            h = x * 2
            return f(h, e, w), h

        return whole

    args = (X, E, drawn(3, 2))
    assert_same(observe(around(first), args), observe(around(compiled), args))


def edited_later(y: Any, args: Any) -> Any:
    with torch.no_grad():
        for z in y:
            z.add_(1.0)
    return [z.detach().clone() for z in (*y, *args)]


def test_results_that_are_views() -> None:
    def views(x: Tensor, e: Tensor) -> tuple[Tensor, ...]:
        h = gathered(x.detach(), e)
        return x.view(-1), x[:, 1], h, h.view(-1), h[:, :2], h + 0

    check(views, (X.detach(), E), after=edited_later)


def test_the_data_of_an_index_replaced() -> None:
    f = gnnc.compile(gathered)
    e = E.clone()
    f(X, e)
    e.data = edges(4, 6, 9)
    assert torch.allclose(f(X, e), gathered(X, e))


def relu_once_more(x: Tensor) -> Tensor:
    h = (x * 2).relu_()
    torch._dynamo.graph_break()
    return h.clamp_(max=0.5)


def relu_of_an_argument(h: Tensor) -> Tensor:
    h.relu_()
    torch._dynamo.graph_break()
    h.clamp_(max=0.5)
    return h


def exp_once_more(x: Tensor) -> Tensor:
    h = x.exp()
    torch._dynamo.graph_break()
    return h.add_(1)


def read_by_a_loss(x: Tensor) -> Tensor:
    h = x * 2
    torch._dynamo.graph_break()
    loss = F.mse_loss(h, torch.zeros_like(h))
    torch._dynamo.graph_break()
    h.add_(1)
    return loss


def not_read(x: Tensor) -> Tensor:
    h = x * 2
    y = h.sigmoid()
    torch._dynamo.graph_break()
    h.add_(1)
    return h * y


def not_read_by_what_is_differentiated(x: Tensor) -> Tensor:
    h, y = x.exp(), x.sin()
    torch._dynamo.graph_break()
    h.add_(1)
    return y


@pytest.mark.parametrize(
    "function, raises",
    [
        *((f, True) for f in (relu_once_more, relu_of_an_argument, exp_once_more, read_by_a_loss)),
        *((f, False) for f in (not_read, not_read_by_what_is_differentiated)),
    ],
)
def test_edits_behind_a_graph_break_of_what_backward_reads(
    function: Callable[[Tensor], Tensor], raises: bool
) -> None:
    """Eager refuses to differentiate what was edited after it was saved. A compiled backward that
    needs it not must not give what it would have been without the edit."""
    gradients = list[Tensor]()
    for f in (function, gnnc.compile(function)):
        x = X.detach().clone().requires_grad_()
        y = f(x * 1)
        if raises:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
        else:
            gradients += torch.autograd.grad(y.sum(), [x])
    assert raises or torch.allclose(*gradients)


@pytest.mark.parametrize("asks", ["for x", "for h", "as a leaf"])
def test_an_edited_result_that_another_is_made_of(asks: str) -> None:
    """The other was made of what it held before."""

    def first(x: Tensor) -> tuple[Tensor, Tensor]:
        h = x * 2
        return h, h.sigmoid()

    def gradients(f: Callable[[Tensor], tuple[Tensor, Tensor]]) -> tuple[Tensor, ...]:
        x = X.detach().clone().requires_grad_()
        h, y = f(x)
        h.retain_grad()
        h.add_(1)
        loss = (h * y).sum()
        if asks == "as a leaf":
            loss.backward()
            assert x.grad is not None and h.grad is not None
            return x.grad, h.grad
        return torch.autograd.grad(loss, [x] if asks == "for x" else [x, h])

    for got, want in zip(gradients(gnnc.compile(first)), gradients(first), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("activation", [torch.relu, torch.sigmoid, torch.tanh, torch.exp])
def test_an_argument_that_is_edited_after_its_activation(activation: Any) -> None:
    """Eager keeps what an activation gives, not what it is given."""

    def gradient(f: Callable[[Tensor], Tensor]) -> Tensor:
        x = X.detach().clone().requires_grad_()
        y = x * 2
        z = f(y)
        y.add_(1)
        return torch.autograd.grad(z.sum(), [x])[0]

    def activated(y: Tensor) -> Tensor:
        return activation(y)

    torch.testing.assert_close(gradient(gnnc.compile(activated)), gradient(activated))


@pytest.mark.parametrize("later", [False, True])
def test_hooks_on_a_result_from_before_its_edit(later: bool) -> None:
    """They see the gradient of what it was, also through a result that was made of it, and those
    from after the edit that of what it became."""

    def first(x: Tensor) -> tuple[Tensor, Tensor]:
        h = x * 2
        return h, h.sigmoid()

    def seen(f: Callable[[Tensor], tuple[Tensor, Tensor]]) -> list[Tensor]:
        found = list[Tensor]()
        x = X.detach().clone().requires_grad_()
        h, y = f(x)
        h.register_hook(found.append)
        h.register_hook(lambda d: d * 3)
        h.add_(1)
        if later:
            h.register_hook(found.append)
        (h * y.sum() + y).sum().backward()
        assert x.grad is not None
        return [*found, x.grad]

    got, want = seen(gnnc.compile(first)), seen(first)
    assert len(got) == len(want) == 2 + later
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w)


@pytest.mark.parametrize("asked", ["x", "first", "second"])
@pytest.mark.parametrize("edited", ["x", "first", "second"])
@pytest.mark.parametrize("leaf", [True, False])
def test_gradients_that_are_not_made_of_what_was_edited(
    edited: str, asked: str, leaf: bool
) -> None:
    """Eager reads only what the gradients that are asked for need."""

    def product(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        return (x @ first).relu() @ second

    def gradient(f: Callable[..., Tensor]) -> Tensor | str:
        given = {"x": X.detach().clone(), "second": torch.ones(4, 2)}
        given["first"] = torch.linspace(-1, 1, X.shape[1] * 4).view(-1, 4)
        given = {k: v.requires_grad_() for k, v in given.items()}
        if not leaf:
            given = {k: v * 2 for k, v in given.items()}
        y = f(**given)
        with torch.no_grad():
            given[edited].add_(1)
        try:
            return torch.autograd.grad(y.sum(), [given[asked]])[0]
        except RuntimeError as error:
            assert "modified by an inplace operation" in str(error)
            return "raises"

    got, want = gradient(gnnc.compile(product)), gradient(product)
    if isinstance(want, str):
        assert got == want
    else:
        torch.testing.assert_close(got, want)
