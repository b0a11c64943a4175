"""`gnnc.train_step`: the optimizer stays the owner of its state, groups and schedules."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch_geometric.nn import GCNConv, SAGEConv

import gnnc
from gnnc.runtime.cpu import toolchain

from .train_steps import (
    CLASSES,
    OPTIMIZERS,
    WIDTH,
    N,
    assert_same,
    assert_same_state,
    data,
    in_one_program,
    loss_of,
    plain_step,
    sage,
    train_both,
    twins,
)


def test_groups_have_rates_of_their_own_and_schedules_are_followed() -> None:
    def groups(model: nn.Module) -> Optimizer:
        first, second = model.first.parameters(), model.second.parameters()
        return Adam(
            [{"params": first, "lr": 0.1, "weight_decay": 0.01}, {"params": second}], lr=0.01
        )

    torch.manual_seed(0)
    a = sage()
    b = copy.deepcopy(a)
    o, p = groups(a), groups(b)
    step = gnnc.train_step(loss_of(b), p)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(q, 0.5) for q in (o, p)]
    args = data()
    for _ in range(4):
        train_both(1, a, o, step, *args)
        for schedule in schedules:
            schedule.step()
    assert_same(a, b)
    assert_same_state(o, p)
    assert in_one_program(step)


def test_checkpoints_go_on_where_they_were() -> None:
    a, o, b, p, step = twins(sage, OPTIMIZERS["adam"])
    args = data()
    train_both(3, a, o, step, *args)
    p.load_state_dict(copy.deepcopy(o.state_dict()))  # of torch's own making, into ours
    o.load_state_dict(copy.deepcopy(p.state_dict()))
    train_both(3, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert in_one_program(step)


def test_another_graph_or_rate_compiles_nothing() -> None:
    _, _, _, p, step = twins(sage, OPTIMIZERS["adam"])
    step(*data())
    before = toolchain.stats().compiled
    for seed in range(3):
        p.param_groups[0]["lr"] *= 0.5
        p.param_groups[0]["weight_decay"] = 0.1
        step(*data(seed))
    assert toolchain.stats().compiled == before
    assert in_one_program(step)


def test_an_option_that_changes_the_rule_makes_another_program() -> None:
    a, o, b, p, step = twins(sage, OPTIMIZERS["sgd"])
    args = data()
    for momentum in (0.0, 0.9, 0.9, 0.0):
        for q in (o, p):
            q.param_groups[0]["momentum"] = momentum
        plain_step(a, o, *args)
        step(*args)
    assert_same(a, b)
    assert gnnc.explain(step).graphs == 2


def test_parameters_that_the_loss_is_not_made_of_stay() -> None:
    """torch leaves a parameter without a gradient alone; one whose gradient is 0 decays."""

    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(WIDTH, CLASSES)
            self.detached = nn.Parameter(torch.ones(CLASSES))
            self.unused = nn.Parameter(torch.ones(3))
            self.zero = nn.Parameter(torch.ones(CLASSES))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index) * self.detached.detach() + self.zero.floor()

    a, o, b, p, step = twins(Partly, OPTIMIZERS["adamw"])
    args = data()
    train_both(3, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert torch.equal(b.detached, torch.ones(CLASSES))
    assert in_one_program(step)


def test_state_lies_where_it_lay() -> None:
    """Nothing is swapped under the hands of who holds a parameter, and torch sees the edits."""
    _, _, b, p, step = twins(sage, OPTIMIZERS["adam"])
    args = data()
    step(*args)
    held = [*b.parameters(), *(v for s in p.state.values() for v in s.values())]
    before = [(x.data_ptr(), x._version, x.detach().clone()) for x in held]
    step(*args)
    for x, (address, version, old) in zip(held, before, strict=True):
        assert x.data_ptr() == address
        assert x._version > version
        assert not torch.equal(x, old)


def test_an_input_may_be_a_part_of_a_parameter() -> None:
    """What is written where an argument lies is read by others of that memory as it was."""

    class Embedding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(N, 8))
            self.first, self.second = SAGEConv(8, 8), SAGEConv(8, CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            h = torch.tanh(self.first(self.table, edge_index)) * x
            return self.second(h, edge_index)

    torch.manual_seed(0)
    a = Embedding()
    b = copy.deepcopy(a)
    o, p = Adam(a.parameters(), lr=0.1), Adam(b.parameters(), lr=0.1)
    step = gnnc.train_step(loss_of(b), p)
    _, edge_index, y = data()
    for _ in range(4):
        plain_step(a, o, a.table.detach().flip(0).flip(0), edge_index, y)
        step(b.table.detach(), edge_index, y)
    assert_same(a, b)
    assert in_one_program(step)


def test_dropout_draws_anew_at_each_step() -> None:
    conv = GCNConv(WIDTH, CLASSES)
    x, edge_index, y = data()
    step = gnnc.train_step(
        lambda x: F.cross_entropy(F.dropout(conv(x, edge_index), 0.5), y),
        SGD(conv.parameters(), lr=0.0),
    )
    assert len({float(step(x)) for _ in range(4)}) == 4
