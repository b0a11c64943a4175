"""Programs of users that ask for sizes: those of 0, 1 and more rows are eager's, in one compiled
function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import (
    GCNConv,
    HANConv,
)
from torch_geometric.utils import softmax

import gnnc

from .contract import check
from .users import E, X, drawn, edges, gathered

# Dynamo looks at `.grad` of every argument
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


def no_edges(x: Tensor, e: Tensor) -> Tensor:
    if e.size(1) == 0:
        return x * 2
    return gathered(x, e)


def some_numbers(x: Tensor, e: Tensor) -> Tensor:
    m = x[e[0]]
    return gathered(x, e) + (m.mean() if m.numel() > 0 else 1.0)


def at_least_one(x: Tensor, e: Tensor) -> Tensor:
    return gathered(x, e) / max(e.size(1), 1)


def after_a_break(x: Tensor, e: Tensor) -> Tensor:
    h = gathered(x, e)
    torch._dynamo.graph_break()
    return h * 3 if e.size(1) == 0 else h / e.size(1)


def mean_of_edges(x: Tensor, e: Tensor) -> Tensor:
    return gathered(x, e) + x[e[0]].mean(0)


def squeezed_weights(x: Tensor, e: Tensor, w: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, e[1], x[e[0]] * w.squeeze(-1).unsqueeze(-1)), w.squeeze(
        -1
    )


def squeezed(x: Tensor, e: Tensor) -> Tensor:
    return (gathered(x, e) * 2).squeeze()


ASKED: list[Callable[..., Any]] = [
    no_edges,
    some_numbers,
    at_least_one,
    after_a_break,
    mean_of_edges,
    squeezed,
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("order", [(6, 0, 1, 2), (0, 6, 1), (1, 0, 6)], ids=str)
@pytest.mark.parametrize("function", ASKED, ids=lambda f: f.__name__)
def test_sizes_that_the_program_asks_about(function: Any, order: tuple[int, ...]) -> None:
    check(function, *((X, edges(4, n)) for n in order))


@pytest.mark.parametrize("order", [(4, 1, 3), (1, 4)], ids=str)
def test_one_node(order: tuple[int, ...]) -> None:
    check(squeezed, *((drawn(n, 3), edges(n, 5)) for n in order))


@pytest.mark.parametrize("order", [(6, 1, 0), (1, 6), (0, 6)], ids=str)
def test_weights_that_are_squeezed(order: tuple[int, ...]) -> None:
    check(squeezed_weights, *((X, edges(4, n), drawn(n, 1, seed=1)) for n in order))


def test_gcn_with_weights_that_are_squeezed() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(3, 2)

        def forward(self, x: Tensor, e: Tensor, w: Tensor) -> Tensor:
            return self.conv(x, e, w.squeeze(-1))

    torch.manual_seed(0)
    check(Net(), *((X, edges(4, n), drawn(n, 1, grad=False).abs()) for n in (6, 1, 5)))


def attention(x: Tensor, e: Tensor, dim: int) -> Tensor:
    a = softmax(x[e[0]], e[1], num_nodes=x.size(0), dim=dim)
    return torch.zeros_like(x).index_add(0, e[1], a)


def test_a_dimension_that_is_an_argument() -> None:
    check(attention, *((X, edges(4, 6), dim) for dim in (-2, 0)))
    compiled = gnnc.compile(attention)
    compiled(X, edges(4, 6), -2)
    assert gnnc.explain(compiled).fallbacks == []


def test_an_empty_relation_of_han() -> None:
    meta = (["a", "b"], [("a", "to", "b"), ("b", "to", "a")])
    torch.manual_seed(0)
    net = HANConv(4, 8, meta, heads=2).eval()

    def args(n: int, m: int) -> Any:
        x = {"a": drawn(3, 4, grad=False), "b": drawn(5, 4, seed=1, grad=False)}
        forth = torch.stack([edges(3, n)[0], edges(5, n, 1)[1]])
        back = torch.stack([edges(5, m)[0], edges(3, m, 1)[1]])
        return x, {("a", "to", "b"): forth, ("b", "to", "a"): back}

    check(net, args(6, 4), args(0, 4), args(6, 0))


# ---------------------------------------------------------------- widths among sizes


def steps_over_a_graph(x: Tensor, e: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(-2, e[1], x.index_select(-2, e[0]))


def test_steps_over_one_graph() -> None:
    calls = [(drawn(t, n, 3), edges(n, 6)) for t, n in ((5, 4), (5, 9))]
    assert not check(steps_over_a_graph, *calls).fallbacks


def transformed(x: Tensor, e: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return gathered(F.linear(x, w, b), e)


def test_weights_that_are_arguments() -> None:
    weights = drawn(5, 3, seed=1), drawn(5, seed=2)
    calls = [(drawn(n, 3), edges(n, 6), *weights) for n in (4, 9)]
    assert not check(transformed, *calls).fallbacks


def test_parameters_of_a_functional_call() -> None:
    torch.manual_seed(0)
    net = gnnc.compile(GCNConv(3, 2))
    given = {name: drawn(*p.shape, seed=1) for name, p in net.named_parameters()}
    outs = [torch.func.functional_call(m, given, (X, E)) for m in (net, GCNConv(3, 2))]
    torch.testing.assert_close(*outs)
    of = list(given.values())
    grads = [torch.autograd.grad(out.pow(2).sum(), of) for out in outs]
    torch.testing.assert_close(*grads)
    assert not gnnc.explain(net).fallbacks


def of_neighbours(x: Tensor, table: Tensor) -> Tensor:
    return x[table].max(1).values + x


def of_pairs(x: Tensor, pairs: Tensor) -> Tensor:
    return gathered(x, pairs.t()) * (x[pairs[:, 0]] * x[pairs[:, 1]]).sum()


@pytest.mark.parametrize("function", [of_neighbours, of_pairs])
def test_a_table_of_row_numbers(function: Any) -> None:
    def call(nodes: int, several: int) -> tuple[Tensor, Tensor]:
        drawing = torch.Generator().manual_seed(nodes)
        return drawn(nodes, 3), torch.randint(0, nodes, (nodes, several), generator=drawing)

    assert not check(function, call(6, 2), call(9, 2)).fallbacks
