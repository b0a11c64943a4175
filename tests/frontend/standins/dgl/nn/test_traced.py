"""Dynamo traces a layer and its graph as one program, for graphs of all sizes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._dynamo.exc import TorchDynamoException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

import gnnc.dgl
import gnnc.dgl.nn

from .cases import CASES
from .layer_case import Case, called_with, named_tensors

# Dynamo looks at the gradient of what SGConv has cached.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


def _distinct() -> list[Case]:
    """One case for each layer, kind of graph and kind of call: tracing takes its time."""
    kinds = {}
    for case in CASES:
        if case.graph is not None:
            kind = (case.layer.name, case.graph, *case.kwargs, case.untraced)
            kinds.setdefault(kind, case)
    return list(kinds.values())


TRACED = [case for case in _distinct() if not case.untraced]
UNTRACED = [case for case in _distinct() if case.untraced]


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """What Dynamo knows of other layers."""
    torch._dynamo.reset()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", TRACED, ids=str)
def test_layer_is_one_program(case: Case):
    layer = _layer(case)
    compiled = torch.compile(layer, backend="eager", fullgraph=True, dynamic=True)
    _compare(layer, compiled, case)
    if case.sizes_vary:
        with torch._dynamo.config.patch(error_on_recompile=True):
            _compare(layer, compiled, case, more=3)


@pytest.mark.parametrize("case", UNTRACED, ids=str)
def test_layers_that_are_none_say_so(case: Case):
    """Where this fails, Dynamo has learned, and the case is one of the traced ones."""
    layer = _layer(case)
    compiled = torch.compile(layer, backend="eager", fullgraph=True, dynamic=True)
    args, kwargs = called_with(gnnc.dgl, case, torch.float64, {})
    with pytest.raises((TorchDynamoException, GuardOnDataDependentSymNode)):
        compiled(*args, **kwargs)


def _layer(case: Case) -> nn.Module:
    torch.manual_seed(0)
    layer = case.layer.made(gnnc.dgl.nn).double().train(case.train)
    # Running averages and what is dropped would differ between two calls.
    for module in layer.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.Dropout)):
            module.eval()
    return layer


def _compare(layer: nn.Module, compiled: nn.Module, case: Case, more: int = 0) -> None:
    args, kwargs = called_with(gnnc.dgl, case, torch.float64, {}, more)
    expected, found = (
        named_tensors(layer(*args, **kwargs)),
        named_tensors(compiled(*args, **kwargs)),
    )
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, msg=lambda text, at=name: f"{at}: {text}")
