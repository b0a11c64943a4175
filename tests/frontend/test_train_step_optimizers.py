"""`gnnc.train_step`: every optimizer that has rules, in double precision, to torch's own digits."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Adagrad, Optimizer, RMSprop

import gnnc
from gnnc.runtime.cpu import toolchain

from .train_steps import (
    MAXIMISERS,
    OPTIMIZERS,
    MakeOptimizer,
    assert_same,
    assert_same_state,
    data,
    fallbacks,
    in_one_program,
    plain_step,
    sage,
    train_both,
    twins,
)

ALL = {**OPTIMIZERS, **{f"{k}-maximize": make for k, make in MAXIMISERS.items()}}
QUICK = ("amsgrad", "adagrad", "rmsprop", "rmsprop-all", "adam-maximize", "nesterov-maximize")


def double() -> nn.Module:
    return sage().double()


def assert_equal(a: nn.Module, o: Optimizer, b: nn.Module, p: Optimizer) -> None:
    """Parameters and state, to the digits of double precision."""
    assert_same(a, b, 1e-10)
    assert_same_state(o, p, 1e-10)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "make",
    [pytest.param(m, id=n, marks=[] if n in QUICK else pytest.mark.long) for n, m in ALL.items()],
)
def test_torch_and_gnnc_take_turns(make: MakeOptimizer) -> None:
    """Each goes on with the state that the other has left."""
    a, o, b, p, step = twins(double, make)
    args = data(dtype=torch.float64)
    plain_step(b, p, *args)
    plain_step(a, o, *args)
    for _ in range(2):
        train_both(3, a, o, step, *args)
        assert_equal(a, o, b, p)
        plain_step(b, p, *args)
        plain_step(a, o, *args)
    assert_equal(a, o, b, p)
    assert in_one_program(step)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["adagrad", "rmsprop-all"])
def test_checkpoints_are_torchs(name: str) -> None:
    a, o, b, p, step = twins(double, OPTIMIZERS[name])
    args = data(dtype=torch.float64)
    train_both(2, a, o, step, *args)
    theirs, ours = copy.deepcopy(o.state_dict()), copy.deepcopy(p.state_dict())
    o.load_state_dict(ours)
    p.load_state_dict(theirs)
    train_both(2, a, o, step, *args)
    assert_equal(a, o, b, p)
    assert in_one_program(step)


def test_state_begins_in_the_order_of_the_optimizer() -> None:
    a, o, b, p, step = twins(double, lambda q: Adagrad([*reversed(list(q))], lr=0.1))
    train_both(1, a, o, step, *data(dtype=torch.float64))
    assert_equal(a, o, b, p)
    names = [{id(q): n for n, q in m.named_parameters()} for m in (a, b)]
    orders = [[n[id(q)] for q in k.state] for n, k in zip(names, (o, p), strict=True)]
    assert orders[0] == orders[1]


def test_adagrad_in_single_precision_counts_in_it() -> None:
    a, o, b, p, step = twins(sage, lambda q: Adagrad(q, lr=0.1, fused=True))
    args = data()
    train_both(3, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert in_one_program(step)


def test_state_that_was_cleared_begins_anew() -> None:
    a, o, b, p, step = twins(
        double, lambda q: Adagrad(q, lr=0.1, initial_accumulator_value=0.5, eps=1e-3)
    )
    args = data(dtype=torch.float64)
    for optimizer in (o, p):
        optimizer.state.clear()
    train_both(2, a, o, step, *args)
    assert_equal(a, o, b, p)


def test_numbers_compile_nothing_and_options_do() -> None:
    a, o, b, p, step = twins(double, lambda q: RMSprop(q, lr=0.01, momentum=0.5, eps=1e-3))
    args = data(dtype=torch.float64)
    train_both(1, a, o, step, *args)
    before = toolchain.stats().compiled
    for number, value in (("alpha", 0.5), ("momentum", 0.2), ("lr", 0.1), ("maximize", True)):
        for optimizer in (o, p):
            optimizer.param_groups[0][number] = value
        train_both(1, a, o, step, *args)
    assert toolchain.stats().compiled == before
    for optimizer in (o, p):
        optimizer.param_groups[0]["momentum"] = 0
    train_both(1, a, o, step, *args)
    assert gnnc.explain(step).graphs == 2
    assert_equal(a, o, b, p)


def test_an_option_that_needs_more_state_is_torchs_error() -> None:
    _, _, _, p, step = twins(double, lambda q: RMSprop(q, lr=0.01))
    args = data(dtype=torch.float64)
    step(*args)
    p.param_groups[0]["centered"] = True
    with pytest.raises(KeyError, match="grad_avg"):
        step(*args)
    assert "no grad_avg" in fallbacks(step)


@pytest.mark.long
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-4), (torch.float64, 1e-10)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_hundred_steps_over_some_rows(name: str, dtype: torch.dtype, tolerance: float) -> None:
    """Losses and parameters stay those of a compiled model with torch's optimizer."""
    models = [sage().to(dtype)]
    models.append(copy.deepcopy(models[0]))
    optimizers = [OPTIMIZERS[name](m.parameters()) for m in models]
    for group in (g for o in optimizers for g in o.param_groups):
        group["lr"] /= 10  # the longer steps of RMSprop double the last digits every few
    gnnc.compile(models[0])
    x, edge_index, y = data(dtype=dtype)
    rows = torch.arange(len(x)) % 7 == 3

    def loss(m: nn.Module) -> Tensor:
        return cross_entropy(m(x, edge_index)[rows], y[rows])

    step = gnnc.train_step(lambda: loss(models[1]), optimizers[1])
    for _ in range(100):
        optimizers[0].zero_grad()
        want = loss(models[0])
        want.backward()
        optimizers[0].step()
        torch.testing.assert_close(step(), want.detach(), atol=tolerance, rtol=tolerance)
    assert_same(*models, tolerance)
    assert in_one_program(step)
