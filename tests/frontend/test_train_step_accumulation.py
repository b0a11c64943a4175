"""`gnnc.train_step`: gradients of several calls, and several steps with one optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, NAdam, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR

import gnnc

from .train_steps import (
    OPTIMIZERS,
    MakeOptimizer,
    assert_same,
    assert_same_state,
    clip_in_torch,
    data,
    fallbacks,
    loss_of,
    sage,
    train_any,
    twins_of,
)


def double() -> Any:
    return sage().double()


def batch(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    return data(seed, torch.float64)


def assert_same_gradients(a: nn.Module, b: nn.Module) -> None:
    for q, r in zip(a.parameters(), b.parameters(), strict=True):
        assert (q.grad is None) == (r.grad is None)
        if q.grad is not None:
            torch.testing.assert_close(r.grad, q.grad, atol=1e-10, rtol=1e-10)


def accumulate_both(
    optimizer: MakeOptimizer, calls: int = 7, k: int = 3, **clip: Any
) -> tuple[nn.Module, nn.Module, Any]:
    a, o, b, p = twins_of(double, optimizer)
    step = gnnc.train_step(loss_of(b), p, accumulate=k, **clip)
    for call in range(calls):
        loss = loss_of(a)(*batch(call))
        loss.backward()
        got = step(*batch(call))
        torch.testing.assert_close(got, loss.detach(), atol=1e-10, rtol=1e-10)
        if (call + 1) % k == 0:
            clip_in_torch(o, **clip)
            o.step()
            o.zero_grad()
        assert_same_gradients(a, b)
        assert_same(a, b, 1e-10)
    assert_same_state(o, p, 1e-10)
    return a, b, step


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["adam-decay", "momentum", "rmsprop-all"])
def test_every_third_call_updates(name: str) -> None:
    *_, step = accumulate_both(OPTIMIZERS[name])
    assert gnnc.explain(step).graphs == 2  # one keeps the sums, one uses them
    assert not fallbacks(step)


def test_the_sum_is_clipped() -> None:
    *_, step = accumulate_both(OPTIMIZERS["sgd"], clip_grad_norm=0.05, clip_grad_value=0.02)
    assert not fallbacks(step)


def test_torch_accumulates_what_has_no_rule() -> None:
    *_, step = accumulate_both(lambda p: NAdam(p, lr=0.01), clip_grad_norm=0.05)
    assert "NAdam has no rule" in fallbacks(step)


def test_gradients_may_be_dropped_and_edited_in_between() -> None:
    a, o, b, p = twins_of(double, OPTIMIZERS["sgd"])
    step = gnnc.train_step(loss_of(b), p, accumulate=3)
    for call in range(6):
        loss_of(a)(*batch(call)).backward()
        step(*batch(call))
        for model, optimizer in ((a, o), (b, p)):
            if call == 0:
                optimizer.zero_grad(set_to_none=False)
            if call == 3:
                optimizer.zero_grad()
            if call in (1, 4):
                grad = model.first.lin_l.weight.grad
                assert grad is not None
                grad.mul_(2.0)
        if call % 3 == 2:
            o.step()
            o.zero_grad()
        assert_same_gradients(a, b)
    assert_same(a, b, 1e-10)
    assert not fallbacks(step)


def test_gradients_of_other_branches_are_not_lost() -> None:
    """The call that updates may have no gradient of what an earlier one has."""

    def loss(model: nn.Module) -> Callable[..., Tensor]:
        def of(x: Tensor, e: Tensor, y: Tensor, deep: bool) -> Tensor:
            h = model.first(x, e)
            return F.cross_entropy(model.second(h, e), y) if deep else h.square().mean()

        return of

    a, o, b, p = twins_of(double, OPTIMIZERS["adam"])
    step = gnnc.train_step(loss(b), p, accumulate=2, clip_grad_norm=0.1)
    for _ in range(2):
        for deep in (True, False):
            loss(a)(*batch(0), deep).backward()
            step(*batch(0), deep)
        clip_in_torch(o, clip_grad_norm=0.1)
        o.step()
        o.zero_grad()
    assert_same(a, b, 1e-10)
    assert_same_state(o, p, 1e-10)
    assert "earlier calls have accumulated" in fallbacks(step)


def test_a_call_that_fails_counts_for_nothing() -> None:
    a, o, b, p = twins_of(double, OPTIMIZERS["sgd"])
    step = gnnc.train_step(loss_of(b), p, accumulate=2)
    x, edge_index, y = batch(0)
    step(x, edge_index, y)
    with pytest.raises(IndexError):
        step(x, edge_index + 1000, y)
    step(x, edge_index, y)
    for _ in range(2):
        loss_of(a)(x, edge_index, y).backward()
    o.step()
    assert_same(a, b, 1e-10)


def test_schedules_move_the_rate_between_updates() -> None:
    a, o, b, p = twins_of(double, lambda q: Adam(q, lr=0.1))
    step = gnnc.train_step(loss_of(b), p, accumulate=2)
    schedules = [CosineAnnealingLR(o, 4), CosineAnnealingLR(p, 4)]
    for call in range(8):
        loss_of(a)(*batch(call)).backward()
        step(*batch(call))
        if call % 2:
            o.step()
            o.zero_grad()
            for schedule in schedules:
                schedule.step()
    assert_same(a, b, 1e-10)
    assert not fallbacks(step)


# --------------------------------------------------------- several losses, groups


def test_a_loss_of_several_terms() -> None:
    def loss(model: nn.Module) -> Callable[..., Tensor]:
        def of(x: Tensor, e: Tensor, y: Tensor) -> Tensor:
            h = model.first(x, e)
            smooth = (h[e[0]] - h[e[1]]).square().mean()
            decay = sum(q.square().sum() for q in model.second.parameters())
            return F.cross_entropy(model.second(h, e), y) + 0.1 * smooth + 0.01 * decay

        return of

    a, o, b, p = twins_of(double, OPTIMIZERS["adam"])
    step = gnnc.train_step(loss(b), p)
    for _ in range(4):
        want = train_any(loss(a), o, *batch(0)).detach()
        torch.testing.assert_close(step(*batch(0)), want, atol=1e-10, rtol=1e-10)
    assert_same(a, b, 1e-10)
    assert not fallbacks(step)


@pytest.mark.parametrize("shared", [True, False], ids=["one-optimizer", "two-optimizers"])
def test_two_steps_take_turns(shared: bool) -> None:
    """They share parameters, and an optimizer or each has its own."""

    def other(model: nn.Module) -> Callable[..., Tensor]:
        return lambda x, e, y: model.first(x, e).square().mean()

    a, o, b, p = twins_of(double, OPTIMIZERS["adam-decay"])
    o2 = o if shared else SGD(a.first.parameters(), lr=0.1, momentum=0.9)
    p2 = p if shared else SGD(b.first.parameters(), lr=0.1, momentum=0.9)
    one, two = gnnc.train_step(loss_of(b), p), gnnc.train_step(other(b), p2)
    for _ in range(3):
        train_any(loss_of(a), o, *batch(0))
        one(*batch(0))
        train_any(other(a), o2, *batch(1))
        two(*batch(1))
        assert_same(a, b, 1e-10)
    assert_same_state(o, p, 1e-10)
    assert_same_state(o2, p2, 1e-10)
    assert not fallbacks(one)
    assert not fallbacks(two)


def test_groups_schedules_and_a_rate_that_is_a_tensor() -> None:
    def groups(model: Any) -> Optimizer:
        first = {"params": model.first.parameters(), "lr": torch.tensor(0.1), "momentum": 0.9}
        second = {"params": model.second.parameters(), "weight_decay": 0.1, "maximize": True}
        return SGD([first, second], lr=0.01, foreach=False)

    a, _, b, _ = twins_of(double, lambda q: SGD(q, lr=0.1))
    o, p = groups(a), groups(b)
    step = gnnc.train_step(loss_of(b), p, clip_grad_norm=0.1)
    schedules = [StepLR(o, 2, 0.5), StepLR(p, 2, 0.5)]
    for call in range(5):
        loss_of(a)(*batch(call)).backward()
        clip_in_torch(o, clip_grad_norm=0.1)
        o.step()
        o.zero_grad()
        step(*batch(call))
        for schedule in schedules:
            schedule.step()
    assert_same(a, b, 1e-10)
    assert gnnc.explain(step).graphs == 1
    assert not fallbacks(step)


def test_two_steps_that_accumulate_share_an_optimizer() -> None:
    """Each counts its own calls, and begins with `zero_grad`."""
    a, o, b, p = twins_of(double, lambda q: Adam(q, lr=0.01))

    def other(model: nn.Module) -> Callable[..., Tensor]:
        return lambda x, e, y: model(x, e).abs().sum()

    losses = [(loss_of(a), 2), (other(a), 3)]
    steps = [
        gnnc.train_step(loss_of(b), p, accumulate=2),
        gnnc.train_step(other(b), p, accumulate=3),
    ]
    calls = [0, 0]
    for seed, which in enumerate([0, 1, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1]):
        loss, k = losses[which]
        if calls[which] % k == 0:
            o.zero_grad()
        loss(*batch(seed)).backward()
        calls[which] += 1
        if calls[which] % k == 0:
            o.step()
            o.zero_grad()
        steps[which](*batch(seed))
        assert_same_gradients(a, b)
        assert_same(a, b, 1e-10)
    assert_same_state(o, p, 1e-10)
    assert not any(map(fallbacks, steps))
