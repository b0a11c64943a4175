"""One check for all layers of PyG: compiled as a whole, equal to the eager layer on many graphs,
and compiled once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import gnnc
from gnnc.runtime.cpu import toolchain

from .equality import (
    FIXED,
    Edges,
    as_double,
    assert_interchangeable,
    graphs,
    largest,
    random_edges,
    run,
)

WIDTH, RELATIONS = 6, 4

Arguments = Callable[[Edges, int], tuple[Any, ...]]
"""The arguments of a layer for a graph and a seed."""


@dataclass(frozen=True)
class Layer:
    """A layer with its arguments; those that are not `quick` are left to the long tests."""

    name: str
    make: Callable[[], nn.Module]
    arguments: Arguments
    quick: bool = True
    bipartite: bool = False


def parameters(layers: Sequence[Layer]) -> list[Any]:
    """The layers as parameters of a test."""
    return [pytest.param(x, id=x.name, marks=[] if x.quick else [pytest.mark.long]) for x in layers]


def perturbed(make: Callable[[], nn.Module]) -> nn.Module:
    """A module whose parameters are all different: biases start as zeros, which hides mistakes."""
    torch.manual_seed(3)
    module = make()
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.1 * torch.randn_like(p))
    return module


def check(layer: Layer, examples: int = 8) -> None:
    """Compares outputs and gradients on the fixed graphs and on drawn ones; nothing may run in
    torch, and the first graph must be the only one that is compiled for."""
    eager = perturbed(layer.make)
    compiled = gnnc.compile(copy.deepcopy(eager))
    fixed = [to_targets(g) for g in FIXED] if layer.bipartite else list(FIXED)

    def equal(g: Edges, seed: int) -> bool:
        # the weights of the only edge of a node are 1, and gradients of its score rounding
        return assert_interchangeable(
            eager, compiled, layer.arguments(g, seed), seed=seed, together=True
        )

    smooth = equal(fixed[0], 0)
    report, before = gnnc.explain(compiled), toolchain.stats().compiled
    assert report.fallbacks == []
    assert report.graphs == 1
    for k, g in enumerate(fixed):
        smooth += equal(g, k)
    assert smooth

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(g=graphs(layer.bipartite), seed=st.integers(0, 2**16))
    def others(g: Edges, seed: int) -> None:
        equal(g, seed)

    others()
    assert toolchain.stats().compiled == before, "a new graph was compiled for"
    assert report.graphs == 1
    assert report.fallbacks == []


def check_large(layer: Layer, scale: float = 1e3) -> None:
    """Features so large that exp of a score overflows: what softmax gives, and its gradients, are
    finite and as near to a float64 run as scores of that size allow."""
    eager = perturbed(layer.make)
    compiled = gnnc.compile(copy.deepcopy(eager))
    reference = copy.deepcopy(eager).double()
    for k, g in enumerate(FIXED):
        first, *rest = layer.arguments(g, k)
        args = ((first.detach() * scale).requires_grad_(), *rest)
        got, exact = run(compiled, args, k), run(reference, as_double(args), k)
        for have, want in ((got.outputs, exact.outputs), (got.gradients, exact.gradients)):
            size = max((largest(x) for x in want.values()), default=0.0)
            for name, x in have.items():
                assert bool(torch.isfinite(x).all()), name
                assert largest(x.double() - want[name]) <= 1e-2 * size, name
    assert gnnc.explain(compiled).fallbacks == []


def to_targets(g: Edges) -> Edges:
    """A graph with as many edges to five targets."""
    return random_edges(g.count, g.sources, 5, g.count, "hub")


# ---------------------------------------------------------------- arguments


def rows(seed: int, *shape: int) -> Tensor:
    """Random features that want a gradient."""
    generator = torch.Generator().manual_seed(seed + 1)
    return torch.randn(*shape, generator=generator).requires_grad_()


def numbers(seed: int, high: int, *shape: int) -> Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed + 2))


def types(g: Edges, seed: int) -> Tensor:
    """A type for each edge, the same for parallel edges: by turns all relations have edges, or the
    last has none, or all edges but one have the same type, or all."""
    kind = (7 * g.index[0] + 3 * g.index[1] + seed) % RELATIONS
    match seed % 4:
        case 1:
            kind = kind % (RELATIONS - 1)
        case 2:
            kind = torch.full_like(kind, 2)
            kind[:1] = 0
        case 3:
            kind = torch.full_like(kind, 1)
    return kind


def plain(g: Edges, seed: int) -> tuple[Any, ...]:
    return rows(seed, g.sources, WIDTH), g.index


def attributed(g: Edges, seed: int) -> tuple[Any, ...]:
    return (*plain(g, seed), rows(seed + 7, g.count, 2))


def both_ends(g: Edges, seed: int) -> tuple[Any, ...]:
    return (rows(seed, g.sources, WIDTH), rows(seed + 5, g.targets, WIDTH)), g.index


def typed(g: Edges, seed: int) -> tuple[Any, ...]:
    return (*plain(g, seed), types(g, seed))


def typed_attributed(g: Edges, seed: int) -> tuple[Any, ...]:
    return (*typed(g, seed), rows(seed + 7, g.count, 2))


def typed_both_ends(g: Edges, seed: int) -> tuple[Any, ...]:
    return (*both_ends(g, seed), types(g, seed))
