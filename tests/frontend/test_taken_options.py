"""Options of a compiled module hold for steps that train it, and for it layer by layer."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import gnnc
from gnnc.frontend.compiler import Options
from gnnc.frontend.torch import taken_options
from gnnc.frontend.torch.step import TrainStep

OTHER: dict[str, Any] = {
    "march": "x86-64",
    "sanitize": True,
    "profile": True,
    "denormals": True,
    "sparse_features": False,
    "hoist_inputs": False,
    "remote_reads": False,
    "target": "reference",
    "backend": "cpu",
}
"""Another value than the usual one of each option that is taken over."""


def linear() -> nn.Linear:
    return nn.Linear(3, 2, dtype=torch.float64)


def step_of(*modules: nn.Module, **options: Any) -> TrainStep:
    """A step that trains these."""
    parameters = [p for m in modules for p in m.parameters()]

    def loss(x: Tensor) -> Tensor:
        return torch.stack([m(x).square().mean() for m in modules]).sum()

    return gnnc.train_step(loss, torch.optim.SGD(parameters, lr=0.1), **options)


def test_each_option_is_taken_over_or_is_of_calls_alone() -> None:
    assert set(OTHER) == set(taken_options.TAKEN)
    assert {f.name for f in fields(Options)} == {*OTHER, "fullgraph", "passes"}


@pytest.mark.parametrize("name", OTHER)
def test_options_of_the_module(name: str) -> None:
    model = gnnc.compile(linear(), **{name: OTHER[name]})
    assert getattr(step_of(model).options, name) == OTHER[name]
    assert getattr(gnnc.inference(model).options, name) == OTHER[name]
    usual = getattr(Options(), name)
    assert getattr(step_of(model, **{name: usual}).options, name) == usual
    assert step_of(linear()).options == Options()


@pytest.mark.parametrize("name", OTHER)
def test_options_of_distribute(name: str) -> None:
    data = Data(x=torch.ones(4, 3), edge_index=torch.tensor([[0, 1], [2, 3]]))
    model, _ = gnnc.distribute(linear(), data, **{name: OTHER[name]})
    assert getattr(step_of(model).options, name) == OTHER[name]


def test_options_of_a_module_in_another_and_of_a_class() -> None:
    @gnnc.compile(denormals=True)
    class Inner(nn.Linear):
        pass

    outer = gnnc.compile(nn.Sequential(Inner(3, 3), nn.Linear(3, 2)), hoist_inputs=False)
    options = step_of(outer).options
    assert options.denormals and not options.hoist_inputs


def test_what_becomes_of_a_call_is_said_by_who_makes_it() -> None:
    model = gnnc.compile(linear(), fullgraph=True, passes="canonicalize")
    assert step_of(model).options == Options()


def test_a_module_that_is_compiled_again() -> None:
    model = gnnc.compile(gnnc.compile(linear(), denormals=True))
    assert step_of(model).options == Options()


def test_modules_that_differ() -> None:
    models = [gnnc.compile(linear(), march=m) for m in ("x86-64", "x86-64-v2")]
    with pytest.raises(
        ValueError, match=r"march: .* with 'x86-64' and with 'x86-64-v2': say which"
    ):
        step_of(*models)
    assert step_of(*models, march="native").options.march == "native"
    with pytest.raises(TypeError, match="unknown"):
        step_of(*models, unknown=1)


def test_numbers_that_are_denormal() -> None:
    """A step keeps them where the module was compiled so."""
    least = 1e-310
    for denormals in (True, False):
        model = linear()
        nn.init.constant_(model.weight, least)
        nn.init.zeros_(model.bias)
        gnnc.compile(model, denormals=denormals)
        step = gnnc.train_step(
            lambda x, model=model: model(x).sum(), torch.optim.SGD(model.parameters(), lr=0.0)
        )
        assert (step(torch.ones(1, 3, dtype=torch.float64)).item() != 0) == denormals
