"""Programs by hand give the loss and the gradients of PyG's models, whatever the widths."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnc.bench.floor.models import PROGRAMS
from gnnc.bench.floor.step import Floor
from gnnc.bench.relational_models import TypedNet
from gnnc.frontend.tools.datasets import power_law
from gnnc.frontend.tools.models import Net
from gnnc.runtime.cpu import toolchain

PLAIN = ("gcn", "sage", "gin", "gat")


def compare(kind: str, net: nn.Module, inputs: Sequence[Tensor], y: Tensor):
    """The floor of `net`, biases drawn, against `net` itself."""
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    model = PROGRAMS[kind](net, *inputs)
    parameters = list(model.parameters())
    assert len(parameters) == len(list(net.parameters()))
    loss = F.cross_entropy(net(*inputs), y)
    expected = torch.autograd.grad(loss, parameters)
    found = model(inputs[0], y)
    torch.testing.assert_close(found, loss.detach())
    gradients = torch.autograd.grad(2 * found, parameters)
    for gradient, wanted in zip(gradients, expected, strict=True):
        largest = 2 * wanted.abs().max().item()
        torch.testing.assert_close(gradient, 2 * wanted, rtol=2e-5, atol=1e-6 + 1e-5 * largest)


def task(widths: Sequence[int], nodes: int, edges: int) -> tuple[Tensor, Tensor, Tensor]:
    """x, edge_index with loops and edges that are there twice, and y."""
    drawn = power_law("small", nodes, edges, widths[0], widths[-1])
    x, edge_index, y = map(torch.from_numpy, (drawn.x, drawn.edge_index, drawn.y))
    edge_index[:, :2] = edge_index[:1, :2]
    edge_index[:, -2:] = edge_index[:, 2:4]
    return x, edge_index, y


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize(
    "widths, nodes, edges",
    [
        ([8, 8, 8, 3], 50, 300),
        ([20, 16, 5], 90, 700),  # two layers
        ([130, 40, 40, 40, 19], 400, 3000),  # four, and no width a multiple of a vector
        ([5, 136, 77], 300, 900),  # more vectors than one panel holds
        ([16, 32, 32, 64], 3, 4),  # fewer nodes than chunks
    ],
)
def test_equals_pyg(kind: str, widths: list[int], nodes: int, edges: int):
    x, edge_index, y = task(widths, nodes, edges)
    torch.manual_seed(0)
    compare(kind, Net(kind, widths), (x, edge_index), y)


@pytest.mark.parametrize(
    "widths, nodes, edges, relations",
    [
        ([16, 16], 50, 300, 4),
        ([64, 64], 100, 3000, 20),  # more pairs than one product takes
        ([5, 7], 30, 100, 3),  # no width a multiple of a vector
        ([150, 40], 60, 9000, 2),  # more vectors than one sum holds
        ([16, 16], 3, 1, 5),  # relations without edges
    ],
)
def test_rgcn_equals_pyg(widths: list[int], nodes: int, edges: int, relations: int):
    torch.manual_seed(0)
    edge_index, types = torch.randint(nodes, (2, edges)), torch.randint(relations, (edges,))
    x, y = torch.randn(nodes, widths[0]), torch.randint(widths[1], (nodes,))
    compare("rgcn", TypedNet("rgcn", widths, relations, 1), (x, edge_index, types), y)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("width", [16, 32])
def test_narrower_vectors(kind: str, width: int, monkeypatch: pytest.MonkeyPatch):
    if width > toolchain.vector_bytes():
        pytest.skip("no such vectors here")
    monkeypatch.setattr(toolchain, "vector_bytes", lambda: width)
    widths = [12, 24, 24, 9]
    x, edge_index, y = task(widths, 70, 500)
    torch.manual_seed(0)
    compare(kind, Net(kind, widths), (x, edge_index), y)


@pytest.mark.parametrize("kind", PLAIN)
def test_nodes_without_edges(kind: str):
    x, y = torch.randn(7, 4), torch.arange(7) % 3
    torch.manual_seed(0)
    compare(kind, Net(kind, [4, 8, 3]), (x, torch.zeros((2, 0), dtype=torch.int64)), y)


def test_saturated_softmax():
    """Scores of GAT hundreds apart, which float32 rounds: no exponential overflows."""
    x, edge_index, y = task([20, 16, 5], 90, 700)
    torch.manual_seed(0)
    net = Net("gat", [20, 16, 5])
    model = PROGRAMS["gat"](net, 100 * x, edge_index)
    loss = F.cross_entropy(net(100 * x, edge_index), y)
    expected = torch.autograd.grad(loss, list(model.parameters()))
    found = model(100 * x, y)
    torch.testing.assert_close(found, loss.detach(), rtol=1e-4, atol=0)
    largest = max(gradient.abs().max().item() for gradient in expected)
    gradients = torch.autograd.grad(found, list(model.parameters()))
    for gradient, wanted in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=1e-3, atol=1e-4 * largest)


@pytest.mark.parametrize("kind", PLAIN)
def test_trains(kind: str):
    x, edge_index, y = task([12, 8, 4], 60, 400)
    torch.manual_seed(0)
    model = PROGRAMS[kind](Net(kind, [12, 8, 4]), x, edge_index)
    found = losses(model, x, y)
    assert found[-1] < 0.97 * found[0]


def losses(model: Floor, x: Tensor, y: Tensor) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    found: list[float] = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def test_refuses_other_nets():
    x, edges = torch.zeros(5, 4), torch.zeros((2, 0), dtype=torch.int64)
    for kind in PLAIN:
        for widths in ([4, 3], [4, 8, 16, 3]):
            with pytest.raises(ValueError, match="net needs two layers or more"):
                PROGRAMS[kind](Net(kind, widths), x, edges)
    with pytest.raises(ValueError, match="net needs one layer"):
        PROGRAMS["rgcn"](TypedNet("rgcn", [4, 4, 4], 2, 1), x, edges, edges[0])


def test_heads_of_gat():
    net: Any = Net("gat", [4, 8, 3])
    net.convs[0].heads = 3
    with pytest.raises(ValueError, match="a power of two of heads"):
        PROGRAMS["gat"](net, torch.zeros(5, 4), torch.zeros((2, 0), dtype=torch.int64))
