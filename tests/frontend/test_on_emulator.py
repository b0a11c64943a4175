"""Models compiled for CUDA and run on the emulator are interchangeable with those of torch: values,
gradients, buffers, in double precision; and they train alike."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Adam
from torch_geometric import nn as G

import gnnc

from . import zoo
from .equality import FIXED, Edges, as_double, assert_interchangeable, random_edges
from .layer_checks import Arguments, plain, typed
from .models import mlp
from .train_steps import (
    CLASSES,
    N,
    Net,
    assert_same,
    assert_same_state,
    data,
    in_one_program,
    loss_of,
    sage,
    train_both,
)

TARGET = "cuda-emulated"
WIDTH, RELATIONS = 6, 4
GRAPHS = (FIXED[1], FIXED[3], FIXED[6])
"""One with a hub, one with loops, one node without edges."""
LONG = pytest.mark.long


class Between(nn.Module):
    """Two layers, with batch normalisation and an activation between them."""

    def __init__(self, first: nn.Module, second: nn.Module, norm: bool = True) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()

    def forward(self, x: Tensor, *edges: Tensor) -> Tensor:
        return self.second(F.elu(self.norm(self.first(x, *edges))), *edges)


MODELS: dict[str, tuple[Callable[[], nn.Module], Arguments]] = {
    "gcn": (lambda: Between(G.GCNConv(WIDTH, 8), G.GCNConv(8, 3)), plain),
    "sage": (lambda: Between(G.SAGEConv(WIDTH, 8), G.SAGEConv(8, 3)), plain),
    "sage-max": (lambda: G.SAGEConv(WIDTH, 8, aggr="max"), plain),
    "gin": (lambda: Between(G.GINConv(mlp(WIDTH, 8)), G.GINConv(mlp(8, 3)), False), plain),
    "gat": (
        lambda: Between(G.GATConv(WIDTH, 4, heads=2), G.GATConv(8, 3)),
        plain,
    ),
    "gatv2": (lambda: G.GATv2Conv(WIDTH, 4, heads=2), plain),
    "transformer": (lambda: G.TransformerConv(WIDTH, 4, heads=2), plain),
    "rgcn": (
        lambda: Between(G.RGCNConv(WIDTH, 8, RELATIONS), G.RGCNConv(8, 3, RELATIONS, num_bases=2)),
        typed,
    ),
    "rgat": (lambda: G.RGATConv(WIDTH, 8, RELATIONS), typed),
}


def made(make: Callable[[], nn.Module]) -> tuple[nn.Module, nn.Module]:
    """A model of float64 numbers, none of which is 0, and the same on the emulator."""
    torch.manual_seed(3)
    eager = make().double()
    with torch.no_grad():
        for p in eager.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return eager, gnnc.compile(copy.deepcopy(eager), target=TARGET)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", MODELS)
def test_models_are_interchangeable(name: str) -> None:
    make, arguments = MODELS[name]
    eager, compiled = made(make)
    for k, g in enumerate(GRAPHS):
        if g.sources == 1:  # batch statistics of a single row
            eager.eval(), compiled.eval()
        args = as_double(arguments(g, k))
        assert_interchangeable(eager, compiled, args, seed=k, together=True)
    told = gnnc.explain(compiled)
    assert told.fallbacks == [] and told.kernels


@pytest.mark.parametrize(
    "name", ["HGT", *(pytest.param(n, marks=LONG) for n in ("to_hetero_sage", "HeteroConv_gat"))]
)
def test_heterogeneous_models(name: str) -> None:
    make, arguments = zoo.ZOO[name]
    eager, compiled = made(make)
    for nodes, edges in ((12, 40), (8, 0)):
        args = as_double(arguments(nodes, edges, 1))
        assert_interchangeable(eager, compiled, args, together=True)
    assert gnnc.explain(compiled).fallbacks == []


def with_types(g: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    x, edges, y = g
    return x, edges, (edges[0] + edges[1]) % RELATIONS, y


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (lambda: sage(norm=True), lambda g: g),
        pytest.param(
            lambda: Net(G.GATConv(WIDTH, 4, heads=2), G.GATConv(8, CLASSES)),
            lambda g: g,
            marks=LONG,
        ),
        pytest.param(
            lambda: Net(G.RGCNConv(WIDTH, 8, RELATIONS), G.RGCNConv(8, CLASSES, RELATIONS)),
            with_types,
            marks=LONG,
        ),
    ],
    ids=["sage", "gat", "rgcn"],
)
def test_train_step_with_adam(make: Callable[[], nn.Module], arguments: Any) -> None:
    torch.manual_seed(0)
    a = make().double()
    b = copy.deepcopy(a)
    o, p = Adam(a.parameters(), lr=0.01), Adam(b.parameters(), lr=0.01)
    step = gnnc.train_step(loss_of(b), p, target=TARGET)
    train_both(3, a, o, step, *arguments(data(dtype=torch.float64)))
    assert_same(a, b, 1e-9)
    assert_same_state(o, p, 1e-9)
    assert in_one_program(step)


def test_dropout_drops_what_it_drops_on_the_processor() -> None:
    """The same numbers from the same seed, in both directions."""

    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = G.GATConv(WIDTH, CLASSES, dropout=0.3)

        def forward(self, x: Tensor, edges: Tensor) -> Tensor:
            return self.conv(F.dropout(x, 0.4, self.training), edges)

    torch.manual_seed(0)
    model = Dropping().double()
    x, edges, y = data(dtype=torch.float64)
    found: list[list[Tensor]] = []
    for target in ("openmp", TARGET):
        compiled = gnnc.compile(copy.deepcopy(model), target=target)
        torch.manual_seed(7)
        out = compiled(x, edges)
        loss = F.cross_entropy(out, y)
        found.append([out, *torch.autograd.grad(loss, list(compiled.parameters()))])
        assert gnnc.explain(compiled).fallbacks == []
    for have, want in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(have, want, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(found[0][0], model.eval()(x, edges))


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross-entropy": lambda y, t: F.cross_entropy(y, t, label_smoothing=0.1),
    "nll": lambda y, t: F.nll_loss(F.log_softmax(y, dim=-1), t),
    "mse": lambda y, t: F.mse_loss(y, F.one_hot(t, CLASSES).double()),
    "bce": lambda y, t: F.binary_cross_entropy_with_logits(y, F.one_hot(t, CLASSES).double()),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if k == 0 else [LONG]) for k, n in enumerate(LOSSES)]
)
def test_losses(name: str) -> None:
    """A loss with its model is one program, at all nodes and at some."""
    torch.manual_seed(0)
    model = Net(G.GCNConv(WIDTH, 8), G.GCNConv(8, CLASSES)).double()
    x, edges, t = data(dtype=torch.float64)
    mask = torch.arange(N) % 7 == 0

    def loss(x: Tensor, edges: Tensor, t: Tensor, mask: Tensor) -> Tensor:
        return LOSSES[name](model(x, edges)[mask], t[mask])

    compiled = gnnc.compile(loss, target=TARGET)
    values = [f(x, edges, t, mask) for f in (compiled, loss)]
    torch.testing.assert_close(*values, rtol=1e-10, atol=1e-12)
    grads = [torch.autograd.grad(v, list(model.parameters())) for v in values]
    for have, want in zip(*grads, strict=True):
        torch.testing.assert_close(have, want, rtol=1e-9, atol=1e-12)
    assert gnnc.explain(compiled).fallbacks == []


def test_features_that_are_mostly_zeros() -> None:
    """Taken by their entries; too few numbers to be looked at would stay dense."""
    nodes, words = 192, 1400
    g: Edges = random_edges(0, nodes, nodes, 500, "hub")
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(nodes, words, generator=generator, dtype=torch.float64)
    x = x * (torch.rand(nodes, words, generator=generator) < 0.005)
    eager, compiled = made(lambda: Between(G.GCNConv(words, 8), G.SAGEConv(8, 3)))
    for _ in range(2):
        want, got = (m(x, g.index) for m in (eager, compiled))
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-12)
        pairs = ((eager, want), (compiled, got))
        grads = [torch.autograd.grad(y.square().sum(), list(m.parameters())) for m, y in pairs]
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(b, a, rtol=1e-7, atol=1e-9)
    report = gnnc.explain(compiled)
    assert report.fallbacks == []
    assert any(note.startswith("features are taken as sparse") for note in report.choices)
