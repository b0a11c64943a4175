"""What follows from inputs alone is computed once, and again where they change."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, SAGEConv, SGConv

import gnnc
from gnnc.frontend.torch import constant_inputs
from gnnc.frontend.torch.calls.graphs_seen import STATES

NODES, WIDE = 60, 12

CONVS: dict[str, Callable[[], nn.Module]] = {
    "gcn": lambda: GCNConv(WIDE, 5),
    "sage": lambda: SAGEConv(WIDE, 5),
    "gin": lambda: GINConv(nn.Linear(WIDE, 5)),
    "sg": lambda: SGConv(WIDE, 5, K=2),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constant_inputs, "LEAST", 1)


def graph(seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(NODES, WIDE, generator=random, dtype=torch.float64)
    return x, torch.randint(NODES, (2, 400), generator=random)


def pair(conv: str, **options: bool) -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    eager = CONVS[conv]().double()
    return eager, gnnc.compile(copy.deepcopy(eager), fullgraph=True, **options)


def same(eager: nn.Module, compiled: nn.Module, x: Tensor, e: Tensor) -> None:
    """Values and gradients of one call are equal."""
    outs = [m(x, e) for m in (eager, compiled)]
    torch.testing.assert_close(outs[1], outs[0])
    for m, y in zip((eager, compiled), outs, strict=True):
        m.zero_grad()
        y.square().sum().backward()
    for a, b in zip(eager.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(b.grad, a.grad)


def kept(target: object) -> list[str]:
    """The inputs of which the programs keep something."""
    programs = gnnc.explain(target).programs
    return [name for p in programs for name in p.inputs_kept]


def graphs_kept(target: object) -> int:
    return sum(len(p.graphs()) for p in gnnc.explain(target).programs)


@pytest.mark.parametrize("conv", CONVS)
def test_changes_are_seen(conv: str) -> None:
    """In place, by another tensor, in a part of it that a view writes, through NumPy, moved."""
    eager, compiled = pair(conv)
    x, e = graph()
    same(eager, compiled, x, e)
    assert kept(compiled)
    x.mul_(2)
    same(eager, compiled, x, e)
    x[3] = 7.0
    same(eager, compiled, x, e)
    x.T[2].neg_()
    same(eager, compiled, x, e)
    assert kept(compiled) and graphs_kept(compiled) == STATES
    assert "what follows from x" in str(gnnc.explain(compiled))


def test_writes_that_raise_no_counter_are_seen_where_they_are_many() -> None:
    eager, compiled = pair("gcn")
    x, e = graph()
    same(eager, compiled, x, e)
    x.numpy()[:] *= 3
    same(eager, compiled, x, e)
    x.data.add_(1)
    same(eager, compiled, x, e)
    x.data = torch.ones_like(x)
    same(eager, compiled, x, e)
    assert kept(compiled)


def test_inputs_that_change_are_not_kept_for_ever() -> None:
    eager, compiled = pair("sage")
    x, e = graph()
    for i in range(STATES + 3):
        x.add_(1)
        same(eager, compiled, x, e)
        assert bool(kept(compiled)) == (i < STATES + 1)
    report = gnnc.explain(compiled)
    assert (report.graphs, len(report.programs), graphs_kept(compiled)) == (2, 1, 1)


def test_the_graph_may_change_too() -> None:
    eager, compiled = pair("gcn")
    x, _ = graph()
    for seed in range(3):
        same(eager, compiled, x, graph(seed)[1])
    assert kept(compiled)


def test_forbidden() -> None:
    eager, compiled = pair("gcn", hoist_inputs=False)
    x, e = graph()
    same(eager, compiled, x, e)
    x.add_(1)
    same(eager, compiled, x, e)
    assert not kept(compiled) and graphs_kept(compiled) == 1


def test_not_of_small_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    _, compiled = pair("gcn")
    compiled(*graph())
    assert not kept(compiled)


class Dropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(WIDE, 5).double()

    def forward(self, x: Tensor, e: Tensor) -> Tensor:
        return self.conv(F.dropout(x, 0.5, self.training), e)


def test_dropped_inputs_are_others_in_each_call() -> None:
    torch.manual_seed(0)
    compiled = gnnc.compile(Dropped(), fullgraph=True)
    x, e = graph()
    first, second = compiled(x, e), compiled(x, e)
    assert not torch.equal(first, second) and not kept(compiled)
    compiled.eval()
    torch.testing.assert_close(compiled(x, e), compiled.conv(x, e))
    assert kept(compiled)  # without dropout they are the same


def test_weights_and_what_wants_a_gradient_are_no_inputs() -> None:
    eager, compiled = pair("gcn")
    x, e = graph()
    x.requires_grad_()
    same(eager, compiled, x, e)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, e), eager(x, e))
    assert not kept(compiled)


def test_inputs_that_the_model_writes_to() -> None:
    def counted(x: Tensor, memory: Tensor, e: Tensor) -> Tensor:
        memory.add_(1)
        return memory[e[0]].new_zeros(NODES, WIDE).index_add(0, e[1], memory[e[0]]) + x

    compiled = gnnc.compile(counted)
    x, e = graph()
    memories = [torch.zeros(NODES, WIDE, dtype=torch.float64) for _ in range(2)]
    for _ in range(3):
        torch.testing.assert_close(compiled(x, memories[0], e), counted(x, memories[1], e))
    torch.testing.assert_close(*memories)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("conv", CONVS)
def test_steps_of_training(conv: str) -> None:
    """Losses are eager's while inputs stay, where they change between steps, and afterwards."""
    torch.manual_seed(0)
    eager = CONVS[conv]().double()
    model = copy.deepcopy(eager)
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (eager, model)]
    step = gnnc.train_step(lambda x, e: model(x, e).square().mean(), optimizers[1])
    x, e = graph()
    for i in range(2 * STATES + 4):
        if i >= 3:
            x[i].add_(1)
        loss = eager(x, e).square().mean()
        optimizers[0].zero_grad()
        loss.backward()
        optimizers[0].step()
        torch.testing.assert_close(step(x, e), loss.detach())
        assert bool(kept(step)) == (i < 3 + STATES)
    assert gnnc.explain(step).fallbacks == []


def test_what_is_kept_dies_with_its_input() -> None:
    _, compiled = pair("gcn")
    x, e = graph()
    compiled(x, e)
    assert graphs_kept(compiled) == 1
    del x
    assert graphs_kept(compiled) == 0
