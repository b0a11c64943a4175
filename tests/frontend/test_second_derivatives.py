"""Gradients that are differentiated again: forces in a loss, penalties on gradients, of any
order."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, GATConv, GCNConv

import gnnc

from .eagerly import assert_as_eager, gradients
from .models import NODES, WIDTH, close, graph


class Energy(nn.Module):
    """A continuous filter on distances, in the manner of SchNet."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(WIDTH, 8)
        self.filter, self.out = nn.Linear(4, 8), nn.Linear(8, 1)
        self.register_buffer("centres", torch.linspace(0, 2, 4))

    def forward(self, x: Tensor, pos: Tensor, edge_index: Tensor) -> Tensor:
        src, dst = edge_index
        distance = (pos[src] - pos[dst]).square().sum(-1, keepdim=True).add(1e-6).sqrt()
        basis = torch.exp(-((distance - self.centres) ** 2))
        messages = self.filter(basis).tanh() * self.embedding(x)[src]
        h = torch.zeros(x.size(0), 8).index_add(0, dst, messages)
        return self.out(F.silu(h)).sum()


def test_energies_and_forces_train_as_eagerly() -> None:
    x, edge_index = graph()
    pos, wanted = torch.randn(NODES, 3), torch.randn(NODES, 3)

    def run(model: nn.Module) -> Any:
        optimiser = torch.optim.Adam(model.parameters(), 0.01)
        losses = []
        for _ in range(5):
            place = pos.clone().requires_grad_()
            energy = model(x, place, edge_index)
            (gradient,) = torch.autograd.grad(energy.sum(), place, create_graph=True)
            loss = (energy - 1).square() + (-gradient - wanted).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.detach())
        return losses, dict(model.named_parameters())

    assert_as_eager(Energy, run)


def test_forces_inside_the_model() -> None:
    x, edge_index = graph()

    class WithForces(Energy):
        def forward(self, x: Tensor, pos: Tensor, edge_index: Tensor) -> Any:
            pos = pos.detach().requires_grad_()
            energy = super().forward(x, pos, edge_index)
            return energy, -torch.autograd.grad(energy, pos, create_graph=True)[0]

    def run(model: nn.Module) -> Any:
        energy, forces = model(x, torch.ones(NODES, 3).cumsum(0).cos(), edge_index)
        (energy.square() + forces.square().sum()).backward()
        return energy, forces, gradients(model)

    assert_as_eager(WithForces, run)


def test_third_derivatives() -> None:
    x, edge_index = graph()
    pos = torch.randn(NODES, 3)

    def run(model: nn.Module) -> Any:
        place = pos.clone().requires_grad_()
        energy = model(x, place, edge_index)
        (first,) = torch.autograd.grad(energy, place, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), place, create_graph=True)
        return first, second, torch.autograd.grad(second.square().sum(), place)

    model = assert_as_eager(Energy, run)
    assert gnnc.explain(model).graphs == 1


def test_a_cotangent_that_needs_a_gradient() -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        z, d = x.clone().requires_grad_(), torch.ones(NODES, 4, requires_grad=True)
        (g,) = torch.autograd.grad(model(z, edge_index), z, d, create_graph=True)
        return torch.autograd.grad(g.square().sum(), [d, *model.parameters()], allow_unused=True)

    assert_as_eager(lambda: GCNConv(WIDTH, 4), run)


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = GATConv(WIDTH, 4, heads=2), BatchNorm(8)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.norm(self.conv(x, edge_index)).relu()


def test_buffers_are_updated_once() -> None:
    x, edge_index = graph()

    def run(model: nn.Module) -> Any:
        z = x.double().requires_grad_()
        y = model(z, edge_index)
        (g,) = torch.autograd.grad(y.square().sum(), z, create_graph=True)
        g.square().sum().backward()
        return y, g, z.grad, gradients(model), dict(model.named_buffers())

    assert_as_eager(lambda: Norms().double(), run)


def test_an_argument_that_was_changed_is_noticed() -> None:
    x, edge_index = graph()
    model = gnnc.compile(GCNConv(WIDTH, 4))
    z = x.clone().requires_grad_()
    y = model(z, edge_index)
    with torch.no_grad():
        model.bias.add_(1)  # the first derivative does not read it
    y.square().sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="inplace operation: bias is at version 1"):
        torch.autograd.grad(y.square().sum(), z, create_graph=True)


@pytest.mark.parametrize("p", [0.4, 1.0])
def test_dropout_keeps_its_mask(p: float) -> None:
    class Dropped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(WIDTH, 6)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            h = F.dropout(self.lin(x), p)[edge_index[0]].tanh()
            h = F.dropout(h.t(), 0.3).t()  # rows as columns
            return torch.zeros(x.size(0), 6).index_add(0, edge_index[1], h.contiguous())

    torch.manual_seed(0)
    model = gnnc.compile(Dropped())
    x, edge_index = graph()
    z = x.clone().requires_grad_()
    y = model(z, edge_index)
    first = torch.autograd.grad(y.square().sum(), [z, model.lin.weight], retain_graph=True)
    again = torch.autograd.grad(y.square().sum(), [z, model.lin.weight], create_graph=True)
    assert all(close(a.detach(), b) for a, b in zip(again, first, strict=True))
    torch.autograd.grad(again[0].square().sum(), model.lin.weight)


@pytest.mark.parametrize("slower", [True, False])
def test_dropout_of_a_flat_table_keeps_its_mask(slower: bool) -> None:
    """Rows of several numbers each, one column after the other or one row after the other."""

    class Dropped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(WIDTH, 6)

        def forward(self, x: Tensor, table: Tensor) -> Tensor:
            order = table.t() if slower else table
            h = F.dropout(self.lin(x)[order.reshape(-1)], 0.4).tanh().view(*order.shape, 6)
            return h.sum(0 if slower else 1)

    torch.manual_seed(0)
    model = gnnc.compile(Dropped())
    x, _ = graph()
    z, table = x.clone().requires_grad_(), torch.randint(x.size(0), (9, 3))
    y = model(z, table)
    first = torch.autograd.grad(y.square().sum(), [z, model.lin.weight], retain_graph=True)
    again = torch.autograd.grad(y.square().sum(), [z, model.lin.weight], create_graph=True)
    assert all(close(a.detach(), b) for a, b in zip(again, first, strict=True))
    assert gnnc.explain(model).fallbacks == []


def test_what_is_kept_for_second_derivatives_is_freed() -> None:
    """A loss that is still there after its backward holds no argument."""
    x, edge_index = graph()
    model = gnnc.compile(GCNConv(WIDTH, 4))
    loss = model(x.clone().requires_grad_(), edge_index).square().sum()
    node = _compiled_node(loss.grad_fn)
    loss.backward(retain_graph=True)
    assert node.origin is not None
    loss.backward()
    assert node.origin is None


def _compiled_node(node: Any) -> Any:
    while "CompiledCall" not in type(node).__name__:
        node = node.next_functions[0][0]
    return node
