"""`gnnc.train_step`: gradients that are clipped in the program."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, NAdam
from torch_geometric.nn import SAGEConv

import gnnc
from gnnc.runtime.cpu import toolchain

from .train_steps import (
    CLASSES,
    OPTIMIZERS,
    WIDTH,
    MakeOptimizer,
    assert_same,
    assert_same_state,
    clip_in_torch,
    data,
    fallbacks,
    in_one_program,
    loss_of,
    sage,
    twins_of,
)

BOUNDS: dict[str, dict[str, Any]] = {
    "norm": {"clip_grad_norm": 0.05},
    "norm-is-below": {"clip_grad_norm": 100.0},
    "largest": {"clip_grad_norm": 0.01, "norm_type": math.inf},
    "value": {"clip_grad_value": 0.01},
    "both": {"clip_grad_value": 0.01, "clip_grad_norm": 0.02, "norm_type": "inf"},
}


def both_clip(
    clip: dict[str, Any], optimizer: MakeOptimizer, make: Any = lambda: sage().double()
) -> tuple[nn.Module, nn.Module, Any]:
    """Some steps of each."""
    a, o, b, p = twins_of(make, optimizer)
    step = gnnc.train_step(loss_of(b), p, **clip)
    args = data(dtype=torch.float64)
    for _ in range(4):
        loss = loss_of(a)(*args)
        torch.testing.assert_close(step(*args), loss.detach(), atol=1e-10, rtol=1e-10)
        loss.backward()
        clip_in_torch(o, **clip)
        o.step()
        o.zero_grad()
    assert_same(a, b, 1e-10)
    assert_same_state(o, p, 1e-10)
    assert all(q.grad is None for q in b.parameters())
    return a, b, step


@pytest.mark.one_in(2)
@pytest.mark.parametrize("clip", BOUNDS.values(), ids=BOUNDS)
def test_gradients_are_clipped_as_by_torch(clip: dict[str, Any]) -> None:
    *_, step = both_clip(clip, OPTIMIZERS["momentum"])
    assert in_one_program(step)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["adam-decay", "adagrad", "rmsprop-all"])
def test_optimizers_take_clipped_gradients(name: str) -> None:
    *_, step = both_clip(BOUNDS["both"], OPTIMIZERS[name])
    assert in_one_program(step)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("norm_type", [1, 2.0])
def test_what_has_no_rule_is_clipped_by_torch(norm_type: float) -> None:
    clip = {"clip_grad_norm": 0.05, "clip_grad_value": 0.02, "norm_type": norm_type}
    make = OPTIMIZERS["sgd"] if norm_type == 1 else lambda p: NAdam(p, lr=0.01)
    *_, step = both_clip(clip, make)
    assert ("a norm of type 1" if norm_type == 1 else "NAdam") in fallbacks(step)


def test_parameters_without_a_gradient_count_for_nothing() -> None:
    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, CLASSES)
            self.unused = nn.Parameter(torch.ones(3))

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return self.conv(x, edge_index) + self.unused.detach().sum()

    *_, step = both_clip(BOUNDS["norm"], OPTIMIZERS["adamw"], lambda: Partly().double())
    assert in_one_program(step)


def test_parameters_of_two_types_have_one_norm() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, CLASSES).double()
            self.scale = nn.Parameter(torch.tensor([1.5]))

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            return self.conv(x, edge_index) * self.scale.double()

    a, o, b, p = twins_of(Mixed, OPTIMIZERS["sgd"])
    step = gnnc.train_step(loss_of(b), p, clip_grad_norm=0.05)
    args = data(dtype=torch.float64)
    for _ in range(3):
        loss_of(a)(*args).backward()
        clip_in_torch(o, clip_grad_norm=0.05)
        o.step()
        o.zero_grad()
        step(*args)
    assert_same(a, b, 1e-6)
    assert in_one_program(step)


def test_other_bounds_compile_nothing() -> None:
    a, o, b, p = twins_of(lambda: sage().double(), OPTIMIZERS["adam"])
    step = gnnc.train_step(loss_of(b), p, clip_grad_norm=1.0, clip_grad_value=1.0)
    args = data(dtype=torch.float64)
    compiled = 0
    for k, (norm, value) in enumerate([(1.0, 1.0), (0.1, 0.05), (0.01, math.inf), (0.0, 1.0)]):
        step.clip_grad_norm, step.clip_grad_value = norm, value
        step(*args)
        loss_of(a)(*args).backward()
        clip_in_torch(o, clip_grad_value=value, clip_grad_norm=norm)
        o.step()
        o.zero_grad()
        compiled = compiled or toolchain.stats().compiled
        assert (step.clip_grad_norm, step.clip_grad_value) == (norm, value), k
    assert toolchain.stats().compiled == compiled
    assert_same(a, b, 1e-10)
    assert in_one_program(step)


def test_clipping_may_be_switched_on_and_off() -> None:
    a, o, b, p = twins_of(lambda: sage().double(), OPTIMIZERS["sgd"])
    step = gnnc.train_step(loss_of(b), p)
    args = data(dtype=torch.float64)
    for norm in (None, 0.01, None):
        step.clip_grad_norm = norm
        step(*args)
        loss_of(a)(*args).backward()
        clip_in_torch(o, clip_grad_norm=norm)
        o.step()
        o.zero_grad()
    assert_same(a, b, 1e-10)
    assert gnnc.explain(step).graphs == 2
    assert not fallbacks(step)


def test_a_gradient_that_is_not_finite_reaches_all_as_in_torch() -> None:
    a, o, b, p = twins_of(lambda: sage().double(), OPTIMIZERS["sgd"])
    step = gnnc.train_step(loss_of(b), p, clip_grad_norm=0.1)
    x, edge_index, y = data(dtype=torch.float64)
    x[0, 0] = math.nan
    step(x, edge_index, y)
    loss_of(a)(x, edge_index, y).backward()
    clip_in_torch(o, clip_grad_norm=0.1)
    o.step()
    for q, r in zip(a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(q, r, equal_nan=True)


@pytest.mark.parametrize(
    ("argument", "value", "kind"),
    [
        ("clip_grad_norm", "1", TypeError),
        ("clip_grad_norm", True, TypeError),
        ("clip_grad_norm", -1.0, ValueError),
        ("clip_grad_norm", math.nan, ValueError),
        ("clip_grad_value", [1.0], TypeError),
        ("clip_grad_value", -0.5, ValueError),
        ("norm_type", "two", TypeError),
        ("norm_type", None, TypeError),
        ("norm_type", 0, ValueError),
        ("accumulate", 2.0, TypeError),
        ("accumulate", True, TypeError),
        ("accumulate", 0, ValueError),
    ],
)
def test_arguments_out_of_range_are_refused(argument: str, value: Any, kind: type) -> None:
    model = sage()
    with pytest.raises(kind, match=f"{argument} must be"):
        gnnc.train_step(loss_of(model), SGD(model.parameters(), lr=0.1), **{argument: value})


def test_attributes_are_checked_too() -> None:
    model = sage()
    step = gnnc.train_step(loss_of(model), Adam(model.parameters()), clip_grad_norm=1)
    with pytest.raises(ValueError, match="clip_grad_norm must be"):
        step.clip_grad_norm = -1.0
    assert step.clip_grad_norm == 1.0
    with pytest.raises(TypeError, match="clip_grad_value must be"):
        step.clip_grad_value = "0.1"  # type: ignore[assignment]
