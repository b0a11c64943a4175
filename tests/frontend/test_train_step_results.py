"""`gnnc.train_step`: what a loss function returns beside the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, NAdam
from torch_geometric.nn import SAGEConv

import gnnc

from .train_steps import (
    CLASSES,
    WIDTH,
    MakeOptimizer,
    assert_same,
    data,
    fallbacks,
    in_one_program,
    sage,
    train_any,
    twins_of,
)


class Named(NamedTuple):
    loss: Tensor
    logits: Tensor


def with_logits(model: nn.Module) -> Callable[..., Any]:
    def loss(x: Tensor, edge_index: Tensor, y: Tensor) -> Any:
        h = model(x, edge_index)
        right = h.argmax(1) == y
        told = {"accuracy": right.double().mean(), "logits": h, "classes": CLASSES}
        return F.cross_entropy(h, y), told, [right.sum(), None]

    return loss


def loss_is_an_item(model: nn.Module) -> Callable[..., Any]:
    def loss(x: Tensor, edge_index: Tensor, y: Tensor) -> Any:
        each = F.cross_entropy(model(x, edge_index), y, reduction="none")
        both = torch.stack([each.sum(), each.mean()])
        return both[1], both, both[1], each.detach()

    return loss


def named(model: nn.Module) -> Callable[..., Any]:
    def loss(x: Tensor, edge_index: Tensor, y: Tensor) -> Any:
        h = model(x, edge_index)
        return Named(F.cross_entropy(h, y), h.softmax(1))

    return loss


def arguments(model: nn.Module) -> Callable[..., Any]:
    """The memory of what is given is returned, of a parameter too."""

    def loss(x: Tensor, edge_index: Tensor, y: Tensor) -> Any:
        weight = model.first.lin_l.weight
        return F.cross_entropy(model(x, edge_index), y), x, x.t(), weight, weight.norm()

    return loss


def assert_alike(got: Any, want: Any) -> None:
    assert type(got) is type(want) or isinstance(want, nn.Parameter)
    if isinstance(got, Tensor):
        assert not got.requires_grad
        torch.testing.assert_close(got, want.detach(), atol=1e-10, rtol=1e-10)
    elif isinstance(got, dict):
        assert list(got) == list(want)
        assert_alike(list(got.values()), list(want.values()))
    elif isinstance(got, tuple | list):
        for x, y in zip(got, want, strict=True):
            assert_alike(x, y)
    else:
        assert got == want


@pytest.mark.one_in(6)
@pytest.mark.parametrize("make", [with_logits, loss_is_an_item, named, arguments])
@pytest.mark.parametrize("optimizer", [lambda p: Adam(p, lr=0.1), lambda p: NAdam(p, lr=0.1)])
def test_the_same_structure_comes_back(
    make: Callable[[nn.Module], Callable[..., Any]], optimizer: MakeOptimizer
) -> None:
    a, o, b, p = twins_of(lambda: sage().double(), optimizer)
    step = gnnc.train_step(make(b), p)
    args = data(dtype=torch.float64)
    for _ in range(3):
        assert_alike(step(*args), train_any(make(a), o, *args))
    assert_same(a, b, 1e-10)
    if isinstance(p, Adam):
        assert in_one_program(step)
    else:
        assert "NAdam has no rule" in fallbacks(step)


def test_a_model_may_keep_what_it_computes() -> None:
    """Dynamo's graph returns that too, and it is not the loss."""

    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, CLASSES)
            self.penalty = self.last = torch.zeros(())

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            self.last = self.conv(x, edge_index)
            self.penalty = self.last.square().mean()
            return self.last

    def loss_of(model: nn.Module) -> Callable[..., Tensor]:
        return lambda x, e, y: F.cross_entropy(model(x, e), y) + 0.1 * model.penalty

    a, o, b, p = twins_of(lambda: Keeps().double(), lambda q: SGD(q, lr=0.1))
    step = gnnc.train_step(loss_of(b), p)
    args = data(dtype=torch.float64)
    for _ in range(3):
        assert_alike(step(*args), train_any(loss_of(a), o, *args))
        assert_alike(b.penalty.detach(), a.penalty.detach())
    assert_same(a, b, 1e-10)
    assert in_one_program(step)


def test_nothing_beside_the_loss_moves_a_parameter() -> None:
    a, o, b, p = twins_of(lambda: sage().double(), lambda q: Adam(q, lr=0.1, weight_decay=0.1))

    def loss_of(model: nn.Module) -> Callable[..., Any]:
        def loss(x: Tensor, edge_index: Tensor, y: Tensor) -> Any:
            h = model.first(x, edge_index)
            return h.square().mean(), model.second(h, edge_index).sum()

        return loss

    step = gnnc.train_step(loss_of(b), p)
    args = data(dtype=torch.float64)
    second = b.second.lin_l.weight.detach().clone()
    for _ in range(3):
        assert_alike(step(*args), train_any(loss_of(a), o, *args))
    assert_same(a, b, 1e-10)
    assert torch.equal(b.second.lin_l.weight, second)
    assert in_one_program(step)
