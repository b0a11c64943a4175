"""Compiled attention layers equal PyG's: GAT, GATv2, TransformerConv, and what is like them."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor, nn
from torch_geometric.nn import (
    AGNNConv,
    FAConv,
    GATConv,
    GATv2Conv,
    SuperGATConv,
    TransformerConv,
)

from .equality import FIXED, Edges
from .layer_checks import (
    WIDTH,
    Layer,
    attributed,
    both_ends,
    check,
    check_large,
    parameters,
    perturbed,
    plain,
    rows,
)


class WithWeights(nn.Module):
    """A layer that also returns its edges and their attention."""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, *args: Any) -> tuple[Tensor, Tensor, Tensor]:
        y, (edges, weights) = self.conv(*args, return_attention_weights=True)
        return y, weights, edges


class WithFirst(nn.Module):
    """FAConv, whose second argument are the features of the first layer."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.conv = FAConv(WIDTH, **options)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, x.tanh(), edge_index)


def gat(*where: int, **options: Any) -> GATConv:
    return GATConv(where or WIDTH, 4, **options)


def gat2(*where: int, **options: Any) -> GATv2Conv:
    return GATv2Conv(where or WIDTH, 4, **options)


def transformer(*where: int, **options: Any) -> TransformerConv:
    return TransformerConv(where or WIDTH, 4, **options)


def weighted(g: Edges, seed: int) -> tuple[Any, ...]:
    """One number an edge."""
    return (*plain(g, seed), rows(seed + 7, g.count))


def sources_only(g: Edges, seed: int) -> tuple[Any, ...]:
    """No features of the destinations."""
    return (rows(seed, g.sources, WIDTH), None), g.index, None, (g.sources, g.targets)


PAIR = (WIDTH, WIDTH)

GAT = [
    Layer("heads", lambda: gat(heads=2), plain),
    Layer("mean", lambda: gat(heads=3, concat=False, bias=False), plain, False),
    Layer("residual", lambda: gat(heads=2, add_self_loops=False, residual=True), plain, False),
    *(
        Layer(
            f"edges-{fill}",
            lambda fill=fill: gat(heads=2, edge_dim=2, fill_value=fill),
            attributed,
            fill in ("mean", 0.5),
        )
        for fill in ("mean", "add", "max", "min", "mul", 0.5)
    ),
    Layer(
        "edges-no-loops", lambda: gat(heads=2, edge_dim=2, add_self_loops=False), attributed, False
    ),
    Layer("edge-weight", lambda: gat(heads=2, edge_dim=1), weighted, False),
    Layer("pair", lambda: gat(*PAIR, heads=2), both_ends, bipartite=True),
    Layer(
        "pair-residual",
        lambda: gat(*PAIR, add_self_loops=False, residual=True),
        both_ends,
        False,
        bipartite=True,
    ),
    Layer(
        "sources-only",
        lambda: gat(*PAIR, heads=2, add_self_loops=False),
        sources_only,
        bipartite=True,
    ),
    Layer("weights", lambda: WithWeights(gat(heads=2)), plain),
]

GAT2 = [
    Layer("heads", lambda: gat2(heads=2), plain, False),
    Layer(
        "shared",
        lambda: gat2(heads=2, share_weights=True, concat=False, residual=True),
        plain,
        False,
    ),
    Layer("edges", lambda: gat2(heads=2, edge_dim=2), attributed),
    Layer(
        "edges-max",
        lambda: gat2(heads=2, edge_dim=2, fill_value="max", bias=False),
        attributed,
        False,
    ),
    Layer("pair", lambda: gat2(*PAIR, heads=2), both_ends, False, bipartite=True),
    Layer("weights", lambda: WithWeights(gat2(heads=2, add_self_loops=False)), plain, False),
]

TRANSFORMER = [
    Layer("heads", lambda: transformer(heads=2), plain, False),
    Layer("beta-edges", lambda: transformer(heads=2, beta=True, edge_dim=2), attributed),
    Layer("mean-beta", lambda: transformer(heads=2, concat=False, beta=True), plain, False),
    Layer("no-root", lambda: transformer(heads=2, root_weight=False, bias=False), plain, False),
    Layer("pair", lambda: transformer(*PAIR, heads=2), both_ends, False, bipartite=True),
    Layer("weights", lambda: WithWeights(transformer(heads=2)), plain, False),
]

OTHERS = [
    Layer("agnn", AGNNConv, plain),
    Layer("agnn-fixed", lambda: AGNNConv(requires_grad=False, add_self_loops=False), plain, False),
    Layer("fa", lambda: WithFirst(eps=0.3), plain),
    Layer("fa-no-loops", lambda: WithFirst(add_self_loops=False), plain, False),
    # in training it draws edges that do not exist, which depends on the data
    Layer("super-gat", lambda: SuperGATConv(WIDTH, 4, heads=2).eval(), plain, False),
    Layer("super-gat-sd", lambda: SuperGATConv(WIDTH, 4, attention_type="SD").eval(), plain, False),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("layer", parameters(GAT))
def test_gat(layer: Layer) -> None:
    check(layer)


@pytest.mark.parametrize("layer", parameters(GAT2))
def test_gat2(layer: Layer) -> None:
    check(layer)


@pytest.mark.parametrize("layer", parameters(TRANSFORMER))
def test_transformer(layer: Layer) -> None:
    check(layer)


@pytest.mark.parametrize("layer", parameters(OTHERS))
def test_others(layer: Layer) -> None:
    check(layer)


LARGE = [
    Layer("gat", lambda: gat(heads=2), plain),
    Layer("gat2", lambda: gat2(heads=2, edge_dim=2), attributed, False),
    Layer("transformer", lambda: transformer(heads=2), plain, False),
]


@pytest.mark.parametrize("layer", parameters(LARGE))
def test_large_scores_overflow_nowhere(layer: Layer) -> None:
    # queries and keys of the transformer both grow with the features
    check_large(layer, 30.0 if layer.name == "transformer" else 1e3)


def test_scores_are_as_large_as_the_tests_say() -> None:
    layer = perturbed(lambda: gat(heads=2))
    x, _ = plain(FIXED[0], 0)
    scores = (layer.lin(1e3 * x).view(-1, 2, 4) * layer.att_src).sum(-1)
    assert float(scores.detach().abs().max()) > 1e3
