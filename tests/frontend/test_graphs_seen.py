"""Programs are compiled for the sizes of the graphs that they meet, not of the first alone."""

from __future__ import annotations

import copy
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

import gnnc
from gnnc.frontend.torch.calls.graphs_seen import ENOUGH, SizesSeen, alike
from gnnc.runtime.cpu.toolchain import NoCompiler

LIKE_THE_FIRST = [(40, 320)] * (ENOUGH + 4)
OF_ANOTHER_SHAPE = [(40, 320)] + [(40 + i, 9000) for i in range(ENOUGH + 3)]


def graph(nodes: int, edges: int, seed: int) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, 6, generator=random, dtype=torch.float64)
    return x, torch.randint(nodes, (2, edges), generator=random)


def models() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    eager = SAGEConv(6, 3).double()
    return eager, copy.deepcopy(eager)


def test_sizes_are_geometric_means() -> None:
    seen = SizesSeen()
    for counts in ({"N": 10, "E": 0, "M": 0}, {"N": 1000, "E": 7, "M": 0}):
        seen.note(counts)
    assert seen.graphs == 2 and seen.first == {"N": 10, "E": 0, "M": 0}
    assert seen.typical() == {"N": pytest.approx(100), "E": pytest.approx(7), "M": 0.0}


def test_shapes_that_are_alike() -> None:
    assert alike({}, {}) and alike({"N": 10}, {"N": 7000}) and alike({"N": 0}, {"N": 0})
    assert alike({"N": 10, "E": 70}, {"N": 1000, "E": 1000})
    assert alike({"N": 10, "E": 70}, {"N": 1000, "E": 0})
    assert not alike({"N": 10, "E": 70}, {"N": 1000, "E": 100_000})
    assert not alike({"N": 10, "E": 0}, {"N": 10, "E": 1})
    assert not alike({"N": 0}, {"N": 1})


@pytest.mark.parametrize("shapes, programs", [(LIKE_THE_FIRST, 1), (OF_ANOTHER_SHAPE, 2)])
def test_calls(shapes: list[tuple[int, int]], programs: int) -> None:
    """Values and gradients are eager's, also of a call before the second compilation whose gradient
    is asked for after it."""
    eager, model = models()
    compiled = gnnc.compile(model)
    first = graph(*shapes[0], 0)
    waiting = [m(*first).square().sum() for m in (eager, compiled)]
    for seed, shape in enumerate(shapes[1:], 1):
        x, e = graph(*shape, seed)
        losses = [m(x, e).square().sum() for m in (eager, compiled)]
        torch.testing.assert_close(losses[1], losses[0])
        for loss in losses:
            loss.backward()
    for loss in waiting:
        loss.backward()
    for a, b in zip(eager.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(b.grad, a.grad)
    report = gnnc.explain(compiled)
    assert (report.graphs, len(report.programs), report.fallbacks) == (programs, 1, [])


def test_the_first_program_stays_where_the_second_cannot_be_compiled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: Any) -> None:
        raise NoCompiler("no")

    eager, model = models()
    compiled = gnnc.compile(model)
    for seed, shape in enumerate(OF_ANOTHER_SHAPE):
        x, e = graph(*shape, seed)
        torch.testing.assert_close(compiled(x, e), eager(x, e))
        monkeypatch.setattr(sys.modules["gnnc.frontend.torch.compile"], "compile_module", refuse)
    assert "not compiled for the graphs of later calls: no" in caplog.text
    assert len(gnnc.explain(compiled).programs) == 1


def test_steps_of_training() -> None:
    eager, model = models()
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (eager, model)]
    step = gnnc.train_step(lambda x, e: model(x, e).square().mean(), optimizers[1])
    for seed, shape in enumerate(OF_ANOTHER_SHAPE):
        x, e = graph(*shape, seed)
        loss = eager(x, e).square().mean()
        optimizers[0].zero_grad()
        loss.backward()
        optimizers[0].step()
        torch.testing.assert_close(step(x, e), loss.detach())
    for a, b in zip(eager.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(b, a)
    report = gnnc.explain(step)
    assert (report.graphs, len(report.programs), report.fallbacks) == (2, 1, [])
