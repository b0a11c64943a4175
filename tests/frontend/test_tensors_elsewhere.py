"""Tensors that are not on the CPU: the call runs eagerly and says which, and what eager does with
tensors on several devices is what happens. `meta` stands for every other device.

Where a check is missing the process ends here: C code is given addresses that it cannot read.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

import gnnc
import gnnc.dgl
from gnnc.frontend.torch.calls import bound_program
from gnnc.frontend.torch.calls.bound_program import BoundProgram
from gnnc.frontend.torch.capture.devices import argument_with
from gnnc.frontend.torch.importer import Unsupported
from gnnc.runtime.program import PhaseOnGraph
from gnnc.runtime.tensors import Elsewhere, run_phase

from .eagerly import assert_as_eager, gradients, same
from .loop_programs import listing
from .models import NODES, WIDTH, graph
from .train_steps import fallbacks, in_one_program

X, EDGES = graph()
Y = torch.randn(NODES, WIDTH)
META = "meta"
DEVICES = ("cpu", META)


class Summed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("scale", torch.full((WIDTH,), 2.0))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        rows = self.lin(x)[edge_index[0]] * self.scale
        return torch.zeros_like(x).index_add(0, edge_index[1], rows)


def caught(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return error


def assert_same(wanted: Any, got: Any) -> None:
    assert same(wanted, got), f"eager: {wanted!r}, compiled: {got!r}"
    if isinstance(wanted, Exception):  # torch's own, not one of ours of the same kind
        assert str(got) == str(wanted)


def assert_same_kind(wanted: Any, got: Any) -> None:
    """Of tensors on several devices: torch does not refuse all, and leaves the numbers open."""
    if isinstance(wanted, Exception):
        assert_same(wanted, got)
    else:
        assert (got.shape, got.dtype, got.device) == (wanted.shape, wanted.dtype, wanted.device)


# ---------------------------------------------------------------- calls


@pytest.mark.parametrize("devices", list(itertools.product(DEVICES, repeat=3)))
def test_functions(devices: tuple[str, ...]) -> None:
    weight = torch.randn(WIDTH, WIDTH)

    def function(x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, edge_index[1], (x @ weight)[edge_index[0]])

    compiled = gnnc.compile(function)
    assert_same(function(X, EDGES, weight), compiled(X, EDGES, weight))
    moved = [a.to(d) for a, d in zip((X, EDGES, weight), devices, strict=True)]
    assert_same_kind(caught(lambda: function(*moved)), caught(lambda: compiled(*moved)))
    elsewhere = [n for n, x in zip(("x", "edge_index", "weight"), moved, strict=True) if x.is_meta]
    told = gnnc.explain(compiled).fallbacks
    assert len(told) == bool(elsewhere)
    assert all(f"with {elsewhere[0]} on the device meta: gnnc compiles" in t for t in told)


def of_module(model: nn.Module, what: str) -> None:
    if what == "all":
        model.to(META)
    elif what == "bias":
        model.lin.bias = nn.Parameter(model.lin.bias.detach().to(META))
    else:
        model.scale = model.scale.to(META)


@pytest.mark.parametrize("what", ["all", "bias", "buffer"])
@pytest.mark.parametrize("called", [False, True], ids=["first", "later"])
def test_what_modules_hold(what: str, called: bool) -> None:
    def run(model: nn.Module) -> Any:
        if called:
            model(X, EDGES)
        of_module(model, what)
        return model(X, EDGES)

    model = assert_as_eager(Summed, run)
    assert gnnc.explain(model).fallbacks


def test_one_message_and_back_again() -> None:
    model = gnnc.compile(Summed())
    before = model(X, EDGES)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            model(X, EDGES.to(META))
    assert torch.equal(model(X, EDGES), before)
    report = gnnc.explain(model)
    message = "runs eagerly with edge_index on the device meta: gnnc compiles for CPU and CUDA"
    assert report.fallbacks == [message] and report.graphs == 1


def test_fullgraph_raises() -> None:
    model = gnnc.compile(Summed(), fullgraph=True)
    model(X, EDGES)
    moved = X.to(META), EDGES.to(META)
    with pytest.raises(
        Unsupported, match="the call runs eagerly with x on the device meta: .*full"
    ):
        model(*moved)
    with pytest.raises(Unsupported, match="under autocast"), torch.autocast("cpu"):
        model(X, EDGES)
    with pytest.raises(Unsupported, match="default device is meta"), torch.device(META):
        model(X, EDGES)
    assert gnnc.explain(model).fallbacks == []


def test_what_arguments_are_called() -> None:
    def function(first: Any, *rest: Any, last: Any = None) -> None:
        pass

    x = torch.ones(1)
    assert argument_with(function, (x,), {}, x) == "first"
    assert argument_with(function, (1, 2, [x]), {}, x) == "rest"
    assert argument_with(function, (1,), {"last": {"a": x}}, x) == "last"
    assert argument_with(function, (1,), {}, x) == "an argument"
    assert argument_with(function, (), {"other": x}, x) == "other"  # no call of the function
    assert argument_with(Summed()._call_impl, (x, x), {}, x) == "x"


class OfGraphs(nn.Module):
    """Message passing as DGL has it."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, WIDTH)

    def forward(self, g: Any, x: Tensor) -> Tensor:
        with g.local_scope():
            g.ndata["h"] = self.lin(x)
            g.update_all(gnnc.dgl.function.copy_u("h", "m"), gnnc.dgl.function.sum("m", "out"))
            return g.ndata["out"]


@pytest.mark.parametrize("devices", list(itertools.product(DEVICES, repeat=2)))
def test_graphs_as_dgl_has_them(devices: tuple[str, str]) -> None:
    g = gnnc.dgl.graph((EDGES[0], EDGES[1]), num_nodes=NODES)

    def run(model: nn.Module) -> Any:
        before = model(g, X)
        return before, model.to(devices[1])(g.to(devices[0]), X.to(devices[1]))

    model = assert_as_eager(OfGraphs, run)
    assert bool(gnnc.explain(model).fallbacks) == (META in devices)


# ---------------------------------------------------------------- where tensors are made


@pytest.fixture(params=["block", "setting"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Callable[[], AbstractContextManager]]:
    """Another default device, in a block or from a setting on."""

    class Setting:
        def __enter__(self) -> None:
            torch.set_default_device(META)

        def __exit__(self, *raised: object) -> None:
            torch.set_default_device(None)

    yield Setting if request.param == "setting" else lambda: torch.device(META)
    torch.set_default_device(None)


@pytest.mark.parametrize("called", [False, True], ids=["first", "later"])
def test_another_default_device(
    elsewhere: Callable[[], AbstractContextManager], called: bool
) -> None:
    def run(model: nn.Module) -> Any:
        if called:
            model(X, EDGES)
        with elsewhere():
            y = model(X, EDGES)
            y.square().sum().backward()
        return y, gradients(model)

    model = assert_as_eager(Summed, run)
    (told,) = gnnc.explain(model).fallbacks
    assert told == "runs eagerly while the default device is meta: gnnc compiles for the CPU"


def test_a_backward_under_another_default_device(
    elsewhere: Callable[[], AbstractContextManager],
) -> None:
    def run(model: nn.Module) -> Any:
        y = model(X, EDGES).square().sum()
        with elsewhere():
            y.backward()
        return gradients(model)

    assert not gnnc.explain(assert_as_eager(Summed, run)).fallbacks


def test_cpu_as_the_default_device_changes_nothing() -> None:
    model = gnnc.compile(Summed())
    with torch.device("cpu"):
        model(X, EDGES)
    assert not gnnc.explain(model).fallbacks


def test_programs_of_loops_under_another_default_device() -> None:
    types = torch.randint(0, 3, (EDGES.size(1),))
    g = gnnc.Graph(EDGES, NODES, types, num_edge_types=3)
    weights = torch.randn(3, WIDTH, 5), torch.randn(3, 5), torch.randn(3, 5)
    before = listing(g, X, *weights)
    with torch.device(META):
        for y, z in zip(before, listing(g, X, *weights), strict=True):
            assert torch.equal(y, z)


# ---------------------------------------------------------------- steps of training


Make = Callable[[Any], Optimizer]


def eager_step(model: nn.Module, optimizer: Optimizer, *args: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = loss_of(model)(*args)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def loss_of(model: nn.Module) -> Callable[..., Tensor]:
    def loss(x: Tensor, edge_index: Tensor, y: Tensor) -> Tensor:
        return (model(x, edge_index) - y).square().mean()

    return loss


def both(make: Make) -> tuple[Callable[..., Any], Any, list[Optimizer], list[nn.Module]]:
    """A step of torch, one of gnnc, their optimizers and models."""
    models = [Summed()]
    models.append(copy.deepcopy(models[0]))
    optimizers = [make(m.parameters()) for m in models]
    step = gnnc.train_step(loss_of(models[1]), optimizers[1])
    return lambda *args: eager_step(models[0], optimizers[0], *args), step, optimizers, models


@pytest.mark.parametrize("devices", list(itertools.product(DEVICES, repeat=3)))
def test_steps(devices: tuple[str, ...]) -> None:
    eager, step, _, models = both(lambda p: Adam(p, lr=0.1))
    assert_same(eager(X, EDGES, Y), step(X, EDGES, Y))
    moved = [a.to(d) for a, d in zip((X, EDGES, Y), devices, strict=True)]
    assert_same(caught(lambda: eager(*moved)), caught(lambda: step(*moved)))
    assert_same(eager(X, EDGES, Y), step(X, EDGES, Y))  # the program is still there
    assert same(models[0].lin.weight, models[1].lin.weight)
    assert (META in devices) == ("on the device meta" in fallbacks(step))
    assert gnnc.explain(step).graphs == 1


def test_steps_of_a_model_that_is_elsewhere() -> None:
    eager, step, _, models = both(lambda p: SGD(p, lr=0.1))
    for model in models:
        model.to(META)
    moved = [x.to(META) for x in (X, EDGES, Y)]
    assert_same(eager(*moved), step(*moved))
    assert "with x on the device meta" in fallbacks(step)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda p: Adam(p, lr=0.1), "exp_avg"),
        (lambda p: Adam(p, lr=0.1), "step"),
        (lambda p: Adam(p, lr=0.1, amsgrad=True), "max_exp_avg_sq"),
        (lambda p: SGD(p, lr=0.1, momentum=0.9), "momentum_buffer"),
    ],
    ids=["moment", "count", "amsgrad", "momentum"],
)
def test_state_of_the_optimizer_elsewhere(make: Make, name: str) -> None:
    eager, step, optimizers, _ = both(make)
    assert_same(eager(X, EDGES, Y), step(X, EDGES, Y))
    assert in_one_program(step)
    for optimizer in optimizers:
        for state in optimizer.state.values():
            state[name] = state[name].to(META)
    assert_same(caught(lambda: eager(X, EDGES, Y)), caught(lambda: step(X, EDGES, Y)))
    assert f"the optimizer's {name} of a parameter is on the device meta" in fallbacks(step)


def test_fullgraph_raises_of_a_step() -> None:
    model = Summed()
    step = gnnc.train_step(loss_of(model), Adam(model.parameters()), fullgraph=True)
    step(X, EDGES, Y)
    with pytest.raises(Unsupported, match="edge_index on the device meta"):
        step(X, EDGES.to(META), Y)


# ---------------------------------------------------------------- what gets to a program


def test_saved_tensors_that_hooks_have_moved() -> None:
    """Eager's own backward is computed by torch of what the call was given."""

    def run(model: nn.Module) -> Any:
        moved = torch.autograd.graph.saved_tensors_hooks(lambda x: x.to(META), lambda x: x)
        with moved:
            y = model(X, EDGES)
        y.sum().backward()
        return model.lin.weight.grad

    eager, compiled = Summed(), gnnc.compile(Summed())
    compiled.load_state_dict(eager.state_dict())
    eager(X, EDGES).sum().backward()
    torch.testing.assert_close(run(compiled), eager.lin.weight.grad)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[BoundProgram, tuple[Any, ...]]]:
    """The programs that are called, each with the arguments of its call."""
    seen: list[tuple[BoundProgram, tuple[Any, ...]]] = []
    real = BoundProgram.__call__

    def record(self: BoundProgram, *args: Any) -> Any:
        seen.append((self, args))
        return real(self, *args)

    monkeypatch.setattr(BoundProgram, "__call__", record)
    return seen


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("which", ["x", "edge_index", "all"])
def test_programs_take_no_other_tensors(
    programs: list[tuple[BoundProgram, tuple[Any, ...]]], which: str, training: bool
) -> None:
    """Whoever calls them, with torch's results and exceptions."""
    model = gnnc.compile(Summed())
    with torch.set_grad_enabled(training):
        model(X, EDGES)
        program, args = programs[0]
        names = program.imported.placeholders
        chosen = [which == "all" or which in n for n in names]
        moved = [
            x.detach().to(META) if c and isinstance(x, Tensor) else x
            for x, c in zip(args, chosen, strict=True)
        ]
        assert any(isinstance(x, Tensor) and x.is_meta for x in moved)
        assert program.replay is not None
        wanted = caught(lambda: program.replay.graph.forward(*moved))
        got = caught(lambda: program(*moved))
    assert isinstance(wanted, Exception) == (which != "all")
    if isinstance(wanted, Exception):
        assert_same(wanted, got)
        return
    assert all(y.is_meta for y in got)
    (told,) = gnnc.explain(model).fallbacks
    assert told.startswith("a call runs in torch: ") and "the device meta" in told


def test_phases_name_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[PhaseOnGraph, dict[str, Tensor]]] = []

    def record(phase: PhaseOnGraph, values: dict[str, Tensor]) -> dict[str, Tensor]:
        called.append((phase, dict(values)))
        return run_phase(phase, values)

    monkeypatch.setattr(bound_program, "run_phase", record)
    with torch.no_grad():
        gnnc.compile(Summed())(X, EDGES)
    phase, values = called[-1]
    for b in phase.phase.inputs:
        moved = values | {b.name: values[b.name].to(META)}
        with pytest.raises(Elsewhere, match=f"^{b.name} is on the device meta: the program"):
            run_phase(phase, moved)
