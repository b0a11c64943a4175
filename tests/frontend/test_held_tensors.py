"""Graphs and sparse matrices that a program does not get as arguments: a module keeps them as
buffers or attributes, an object or a variable around the function has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.utils import scatter

import gnnc

from .layouts import LAYOUTS, quiet  # noqa: F401
from .train_steps import in_one_program, train_any


def square(n: int = 11, seed: int = 0, layout: str = "csr") -> Tensor:
    g = torch.Generator().manual_seed(seed)
    dense = torch.rand(n, n, generator=g, dtype=torch.float64)
    return LAYOUTS[layout](dense * (dense > 0.7))


def features(n: int = 11) -> Tensor:
    return torch.randn(n, 4, dtype=torch.float64, requires_grad=True)


class Kept(nn.Module):
    """A layer over a graph, a matrix or anything else that it keeps."""

    def __init__(self, as_buffers: bool, layer: nn.Module | None = None, **kept: Tensor) -> None:
        super().__init__()
        for name, tensor in kept.items():
            self.register_buffer(name, tensor) if as_buffers else setattr(self, name, tensor)
        self.lin = nn.Linear(4, 3, dtype=torch.float64)
        self.layer = layer


class Product(Kept):
    adj: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return (self.adj @ self.lin(x)).relu() * 2 + self.adj @ x.sum(1, keepdim=True)


class Layer(Kept):
    adj: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x, self.adj).relu() * 2  # pyright: ignore


class Edges(Kept):
    edge_index: Tensor
    weight: Tensor
    position: Tensor
    mean: Tensor

    def forward(self, x: Tensor) -> Tensor:
        x = self.lin((x - self.mean) + self.position)
        source, target = self.edge_index
        return scatter(x[source] * self.weight[:, None], target, 0, x.size(0)).relu()


def same(plain: Callable[..., Tensor], compiled: Callable[..., Tensor], *args: Any) -> None:
    """A module is called as it was before it was compiled in place."""

    def eager(*args: Any) -> Tensor:
        is_module = isinstance(plain, nn.Module)
        return type(plain).forward(plain, *args) if is_module else plain(*args)

    wanted = [x for x in args if isinstance(x, Tensor) and x.requires_grad]
    results: list[Any] = []
    for f in (eager, compiled, compiled):
        y = f(*args)
        results.append((y, torch.autograd.grad(y.square().sum(), wanted)))
    for found in results[1:]:
        torch.testing.assert_close(found, results[0], rtol=1e-10, atol=1e-10)


def whole(compiled: Callable[..., Any], programs: int = 1) -> None:
    report = gnnc.explain(compiled)
    assert report.fallbacks == []
    assert len(report.programs) == programs


@pytest.mark.one_in(2)
@pytest.mark.parametrize("as_buffer", [False, True], ids=["attribute", "buffer"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_module_keeps_a_matrix(layout: str, as_buffer: bool) -> None:
    model = Product(as_buffer, adj=square(layout=layout))
    compiled = gnnc.compile(model)
    same(model, compiled, features())
    # another matrix, and numbers written into it
    model.adj = square(17, 1, layout)
    same(model, compiled, features(17))
    model.adj.values().mul_(3) if layout != "coo" else model.adj._values().mul_(3)
    same(model, compiled, features(17))
    whole(compiled)


@pytest.mark.parametrize("as_buffer", [False, True], ids=["attribute", "buffer"])
def test_layers_on_a_matrix_that_a_module_keeps(as_buffer: bool) -> None:
    layer = pyg.SAGEConv(4, 3).double()
    model = Layer(as_buffer, layer, adj=square())
    compiled = gnnc.compile(model)
    same(model, compiled, features())
    whole(compiled)


@pytest.mark.parametrize("as_buffers", [False, True], ids=["attributes", "buffers"])
def test_a_module_keeps_its_graph(as_buffers: bool) -> None:
    def graph(n: int, e: int) -> dict[str, Tensor]:
        kept = {"weight": torch.rand(e), "position": torch.rand(n, 4), "mean": torch.rand(4)}
        kept = {name: x.double() for name, x in kept.items()}
        return {"edge_index": torch.randint(n, (2, e)), **kept}

    model = Edges(as_buffers, **graph(9, 30))
    compiled = gnnc.compile(model)
    same(model, compiled, features(9))
    for name, tensor in graph(13, 44).items():
        setattr(model, name, tensor)
    same(model, compiled, features(13))
    whole(compiled)


AROUND = square(layout="coo")


def test_variables_and_objects() -> None:
    inside = square(seed=2)
    data = Data(adj=square(seed=3), x=torch.rand(11, 2, dtype=torch.float64))

    def function(x: Tensor, data: Data) -> Tensor:
        x = torch.sparse.mm(AROUND, x).tanh() + (inside @ x).tanh()
        return data.adj @ torch.cat([x, data.x], 1)  # pyright: ignore

    compiled = gnnc.compile(function)
    same(function, compiled, features(), data)
    whole(compiled)


def test_a_matrix_that_is_kept_and_given() -> None:
    model = Product(True, adj=square())

    def function(x: Tensor, adj: Tensor) -> Tensor:
        return model(x) + adj @ model.lin(x)

    compiled = gnnc.compile(function)
    same(function, compiled, features(), model.adj)
    whole(compiled)


def test_behind_a_graph_break_it_is_the_users() -> None:
    seen: list[Tensor] = []
    model = Product(True, adj=square())

    @torch._dynamo.disable
    def look(adj: Tensor) -> None:
        seen.append(adj)
        assert adj.layout is torch.sparse_csr
        assert adj.to_dense().shape == (11, 11)

    def function(x: Tensor) -> Tensor:
        y = model(x)
        look(model.adj)
        return model.adj @ y

    same(function, gnnc.compile(function), features())
    assert len(seen) == 3


def test_a_step_with_a_matrix_that_the_model_keeps() -> None:
    torch.manual_seed(0)
    a, b = (Product(True, adj=square()) for _ in range(2))
    b.load_state_dict(a.state_dict())
    optimizers = [torch.optim.Adam(model.parameters(), 0.1) for model in (a, b)]
    x = features().detach()
    step = gnnc.train_step(lambda x: b(x).square().mean(), optimizers[1])
    for _ in range(5):
        expected = train_any(lambda x: a(x).square().mean(), optimizers[0], x).detach()
        torch.testing.assert_close(step(x), expected, rtol=1e-10, atol=0)
    assert in_one_program(step)


def test_blocks_are_left_to_torch() -> None:
    model = Product(False, adj=torch.eye(4, dtype=torch.float64).to_sparse_bsr((2, 2)))
    compiled = gnnc.compile(model)
    x = features(4).detach()
    torch.testing.assert_close(compiled(x), Product.forward(model, x))
    assert gnnc.explain(compiled).fallbacks
