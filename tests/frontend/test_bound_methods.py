"""Methods that compiled code binds to a layer by `function.__get__(layer)` are those that Python
would bind: also where they lie under another name than the function's, or hide the class's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, MessagePassing

import gnnc

from .models import CLASSES, WIDTH, close, graph


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, CLASSES)

    def name(self) -> str:
        return "the class's"

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x).relu()


class Derived(Layer):
    def name(self) -> str:
        return "the derived class's"


def name(self: Layer) -> str:
    return f"a user's, of {type(self).__name__}"


def unknown(self: Layer) -> str:
    return f"another, of {type(self).__name__}"


def hidden(layer: Any, x: Tensor) -> Tensor:
    layer.name = name.__get__(layer, Layer)
    return layer(x)


def beside(layer: Any, x: Tensor) -> Tensor:
    layer.other = name.__get__(layer)
    return layer(x)


def found_nowhere(layer: Any, x: Tensor) -> Tensor:
    layer.other = unknown.__get__(layer, Layer)
    return layer(x)


def of_the_base(layer: Any, x: Tensor) -> Tensor:
    layer.other = Layer.name.__get__(layer, Layer)
    return layer(x)


def what_the_methods_say(layer: Any) -> list[str]:
    return [layer.name(), layer.other() if hasattr(layer, "other") else "nothing"]


@pytest.mark.parametrize("program", [hidden, beside, found_nowhere, of_the_base])
def test_a_method_that_is_stored(program: Callable[[Any, Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    x = torch.randn(7, WIDTH)
    compiled = gnnc.compile(program)
    for cls in (Layer, Derived, Layer):
        eager = cls()
        layer = copy.deepcopy(eager)
        for _ in range(2):
            assert close(compiled(layer, x), program(eager, x))
            assert what_the_methods_say(layer) == what_the_methods_say(eager)
    assert gnnc.explain(compiled).kernels


def test_a_method_that_is_returned() -> None:
    def program(layer: Layer, x: Tensor) -> Any:
        return name.__get__(layer, Layer), layer(x)

    layer, x = Layer(), torch.randn(7, WIDTH)
    method, _ = gnnc.compile(program)(layer, x)
    assert method == name.__get__(layer, Layer)
    assert method() == "a user's, of Layer"


def test_functions_of_one_code_are_told_apart() -> None:
    def saying(word: str) -> Callable[[Any], str]:
        def name(self: Any) -> str:
            return word

        return name

    def program(layer: Any, say: Any, x: Tensor) -> Tensor:
        layer.name = say.__get__(layer, Layer)
        return layer(x)

    compiled, x = gnnc.compile(program), torch.randn(7, WIDTH)
    for word in ("one", "two"):
        layer: Any = Layer()
        compiled(layer, saying(word), x)
        assert layer.name() == word


def explain_message(self: Any, out: Tensor, x_j: Tensor) -> Tensor:
    self.seen = x_j
    return 2 * out


def test_pyg_explains_behind_the_end_of_a_graph() -> None:
    """The layer goes on with the user's message, and the method of PyG's that calls it."""

    def program(layer: Any, x: Tensor, edge_index: Tensor) -> Tensor:
        layer.explain_message = explain_message.__get__(layer, MessagePassing)
        layer.explain = True
        torch._dynamo.graph_break()
        return layer(x, edge_index)

    torch.manual_seed(0)
    eager: Any = GCNConv(WIDTH, CLASSES)
    without = eager(*graph())
    layer = copy.deepcopy(eager)
    out, wanted = gnnc.compile(program)(layer, *graph()), program(eager, *graph())
    assert not close(wanted, without)
    assert close(out, wanted)
    assert close(layer.seen, eager.seen)
    assert close(layer(*graph()), wanted)
