"""`gnnc.train_step`: the numbers of torch's optimizers, in one program where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, RGCNConv, SAGEConv

import gnnc

from .train_steps import (
    CLASSES,
    OPTIMIZERS,
    WIDTH,
    E,
    N,
    Net,
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

LONG = (
    *("adam-decay", "adamw-amsgrad", "adam-fused", "sgd-decay", "adagrad"),
    *(n for n in OPTIMIZERS if n.startswith("rmsprop-")),
)
"""Options that others have as well, or test_train_step_optimizers has in double precision."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] if n in LONG else []) for n in OPTIMIZERS]
)
def test_steps_are_those_of_torch(name: str) -> None:
    a, o, b, p, step = twins(sage, OPTIMIZERS[name])
    args = data()
    for _ in range(6):
        loss = step(*args)
        torch.testing.assert_close(loss, plain_step(a, o, *args), atol=1e-5, rtol=1e-5)
        assert not loss.requires_grad
        assert all(q.grad is None for q in b.parameters())
    assert_same(a, b)
    assert_same_state(o, p)
    assert in_one_program(step)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("make", "edge_types"),
    [
        pytest.param(
            lambda: Net(GCNConv(WIDTH, 8), GCNConv(8, CLASSES)), None, marks=pytest.mark.long
        ),
        (lambda: Net(GATConv(WIDTH, 4, heads=2), GATConv(8, CLASSES)), None),
        (lambda: sage(norm=True), None),
        (lambda: Net(RGCNConv(WIDTH, 8, 5), RGCNConv(8, CLASSES, 5, num_bases=3)), 5),
        pytest.param(
            lambda: Net(RGCNConv(WIDTH, 8, 5, num_blocks=2), RGCNConv(8, CLASSES, 5)),
            5,
            marks=pytest.mark.long,
        ),
    ],
    ids=["gcn", "gat", "sage-norm", "rgcn-bases", "rgcn-blocks"],
)
def test_layers_train_alike(make: Callable[[], nn.Module], edge_types: int | None) -> None:
    a, o, b, _, step = twins(make, OPTIMIZERS["momentum"])
    x, edge_index, y = data()
    types = [] if edge_types is None else [torch.arange(E) % edge_types]
    train_both(5, a, o, step, x, edge_index, *types, y)
    assert_same(a, b)
    assert in_one_program(step)


@pytest.mark.parametrize(
    "layer",
    [SAGEConv, *(pytest.param(c, marks=pytest.mark.long) for c in (GCNConv, GATConv))],
)
def test_the_update_changes_nothing_before_it(layer: type[nn.Module]) -> None:
    """The passes over the graph are those of the loss with its gradients."""
    _, _, b, _, step = twins(lambda: Net(layer(WIDTH, 8), layer(8, CLASSES)), OPTIMIZERS["adam"])
    loss = gnnc.compile(loss_of(b))
    loss(*data()).backward()
    step(*data())

    def passes(compiled: Any) -> list[tuple[str, str]]:
        found = gnnc.explain(compiled).launches()
        kernels = [(k.kernel.split("_", 2)[-1], k.domain) for k in found]
        return [k for k in kernels if "segment" in k[0] or "outer" in k[0]]

    assert passes(step) == passes(loss)


def test_double_precision_is_exact_to_its_own_digits() -> None:
    a, o, b, _, step = twins(lambda: sage().double(), OPTIMIZERS["adam-decay"])
    args = data(dtype=torch.float64)
    train_both(10, a, o, step, *args)
    assert_same(a, b, 1e-12)


def test_shared_and_single_numbers() -> None:
    """One parameter of two layers has one gradient; a parameter may be a number."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = GCNConv(WIDTH, WIDTH), GCNConv(WIDTH, WIDTH)
            self.second.lin.weight = self.first.lin.weight
            self.scale = nn.Parameter(torch.tensor(1.5))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            h = self.second(torch.tanh(self.first(x, edge_index)), edge_index)
            return h * self.scale

    for name in ("adam-decay", "nesterov"):
        a, o, b, p, step = twins(Tied, OPTIMIZERS[name])
        args = data()
        train_both(4, a, o, step, *args)
        assert_same(a, b)
        assert_same_state(o, p)
        assert in_one_program(step)


def test_parameters_in_any_layout() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            flat = torch.randn(2 * WIDTH * CLASSES)
            self.weight = nn.Parameter(flat[: WIDTH * CLASSES].view(CLASSES, WIDTH).t())
            self.other = nn.Parameter(flat[WIDTH * CLASSES :].view(WIDTH, CLASSES))
            self.columns = nn.Parameter(torch.randn(CLASSES, N))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            h = x @ (self.weight * torch.tanh(self.other)) + self.columns.t()
            return torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]])

    a, o, b, p, step = twins(Odd, OPTIMIZERS["adam"])
    args = data()
    train_both(4, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert in_one_program(step)


@pytest.mark.usefixtures("openmp")
def test_a_large_table_is_updated_in_pieces() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(WIDTH, 5000))
            self.conv = GCNConv(5000, CLASSES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(torch.tanh(x @ self.weight), edge_index)

    a, o, b, p, step = twins(Wide, OPTIMIZERS["adam"])
    args = data()
    train_both(3, a, o, step, *args)
    assert_same(a, b)
    assert_same_state(o, p)
    assert "pieces = " in gnnc.explain(step).programs[0].program.source
