"""Compiled layers with typed edges equal PyG's: RGCN, RGAT, and relation loops as users write
them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch_geometric
from torch import Tensor, nn
from torch_geometric.nn import FastRGCNConv, RGATConv, RGCNConv, SimpleConv

import gnnc

from .equality import FIXED, Edges, random_edges
from .layer_checks import (
    RELATIONS,
    WIDTH,
    Layer,
    check,
    check_large,
    numbers,
    parameters,
    rows,
    typed,
    typed_attributed,
    typed_both_ends,
    types,
)

NODES = 17
"""The nodes of layers that know their nodes by number."""


@pytest.fixture(autouse=True)
def mean_per_relation() -> Iterator[None]:
    """With pyg-lib PyG's RGCN takes the mean over all in-edges, not over those of a relation."""
    before = torch_geometric.backend.use_segment_matmul
    torch_geometric.backend.use_segment_matmul = False
    yield
    torch_geometric.backend.use_segment_matmul = before


# ---------------------------------------------------------------- RGCN


def in_order(g: Edges, seed: int) -> tuple[Any, ...]:
    """Edges sorted by type."""
    x, edges, kind = typed(g, seed)
    kind, order = torch.sort(kind, stable=True)
    return x, edges[:, order], kind


def by_number(g: Edges, seed: int) -> tuple[Any, ...]:
    return numbers(seed, NODES, g.sources), g.index, types(g, seed)


def all_nodes(g: Edges, seed: int) -> tuple[Any, ...]:
    return None, g.index % NODES, types(g, seed)


def all_sources(g: Edges, seed: int) -> tuple[Any, ...]:
    ends = torch.stack([g.index[0] % NODES, g.index[1]])
    return (None, numbers(seed, NODES, g.targets)), ends, types(g, seed)


class Stacked(nn.Module):
    """Two layers on nodes that the model knows by number, with or without features."""

    def __init__(self, features: bool) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.randn(NODES, WIDTH)) if features else None
        self.first = RGCNConv(WIDTH if features else NODES, 8, RELATIONS, num_bases=2)
        self.second = RGCNConv(8, 5, RELATIONS, num_blocks=1 if features else None)

    def forward(self, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        return self.second(self.first(self.x, edge_index, edge_type).relu(), edge_index, edge_type)


def known_nodes(g: Edges, seed: int) -> tuple[Any, ...]:
    return g.index % NODES, types(g, seed)


RGCN = [
    Layer("stacked-numbers", lambda: Stacked(False), known_nodes),
    Layer("stacked-features", lambda: Stacked(True), known_nodes, False),
    Layer("mean", lambda: RGCNConv(WIDTH, 8, RELATIONS), typed),
    Layer(
        "sum", lambda: RGCNConv(WIDTH, 8, RELATIONS, aggr="add", root_weight=False), typed, False
    ),
    Layer("bases", lambda: RGCNConv(WIDTH, 8, RELATIONS, num_bases=2), typed, False),
    Layer(
        "bases-pair-sum",
        lambda: RGCNConv((WIDTH, WIDTH), 8, RELATIONS, num_bases=3, aggr="add", bias=False),
        typed_both_ends,
        bipartite=True,
    ),
    Layer("blocks", lambda: RGCNConv(WIDTH, 8, RELATIONS, num_blocks=2), typed),
    Layer(
        "pair",
        lambda: RGCNConv((WIDTH, WIDTH), 8, RELATIONS),
        typed_both_ends,
        False,
        bipartite=True,
    ),
    Layer("sorted", lambda: RGCNConv(WIDTH, 8, RELATIONS, is_sorted=True), in_order, False),
    Layer("numbers", lambda: RGCNConv(NODES, 8, RELATIONS), by_number),
    Layer(
        "numbers-bases",
        lambda: RGCNConv(NODES, 8, RELATIONS, num_bases=2, aggr="add"),
        by_number,
        False,
    ),
    Layer("nodes", lambda: RGCNConv(NODES, 8, RELATIONS), all_nodes),
    Layer("nodes-bases", lambda: RGCNConv(NODES, 8, RELATIONS, num_bases=2), all_nodes),
    Layer(
        "nodes-pair",
        lambda: RGCNConv((NODES, NODES), 8, RELATIONS),
        all_sources,
        False,
        bipartite=True,
    ),
    Layer("max", lambda: RGCNConv(WIDTH, 8, RELATIONS, aggr="max"), typed),
    Layer("max-numbers", lambda: RGCNConv(NODES, 8, RELATIONS, aggr="max"), by_number, False),
    Layer("flow", lambda: RGCNConv(WIDTH, 8, RELATIONS, flow="target_to_source"), typed, False),
    Layer("fast", lambda: FastRGCNConv(WIDTH, 8, RELATIONS), typed),
    Layer("fast-sum", lambda: FastRGCNConv(WIDTH, 8, RELATIONS, aggr="add"), typed, False),
    Layer("fast-bases", lambda: FastRGCNConv(WIDTH, 8, RELATIONS, num_bases=2), typed, False),
    Layer("fast-blocks", lambda: FastRGCNConv(WIDTH, 8, RELATIONS, num_blocks=2), typed),
    Layer(
        "fast-pair",
        lambda: FastRGCNConv((WIDTH, WIDTH), 8, RELATIONS, bias=False),
        typed_both_ends,
        False,
        bipartite=True,
    ),
    Layer("fast-nodes", lambda: FastRGCNConv(NODES, 8, RELATIONS), all_nodes, False),
    Layer(
        "fast-nodes-bases",
        lambda: FastRGCNConv(NODES, 8, RELATIONS, num_bases=3, aggr="add"),
        all_nodes,
        False,
    ),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("layer", parameters(RGCN))
def test_rgcn(layer: Layer) -> None:
    check(layer)


# ---------------------------------------------------------------- RGAT


def rgat(mode: str, mechanism: str, **options: Any) -> RGATConv:
    layer = RGATConv(
        WIDTH,
        4,
        RELATIONS,
        attention_mode=f"{mode}-self-attention",
        attention_mechanism=f"{mechanism}-relation",
        **options,
    )
    nn.init.constant_(layer.l2, 0.25)  # PyG leaves it as the memory was
    return layer


RGAT = [
    Layer("plain", lambda: rgat("additive", "across"), typed, False),
    Layer("heads", lambda: rgat("additive", "across", heads=2), typed),
    Layer(
        "mean-edges-bases",
        lambda: rgat("additive", "across", heads=3, concat=False, edge_dim=2, num_bases=2),
        typed_attributed,
    ),
    Layer("within", lambda: rgat("additive", "within", heads=2, num_blocks=2), typed),
    Layer(
        "product-edges",
        lambda: rgat("multiplicative", "across", heads=2, dim=3, concat=False, edge_dim=2),
        typed_attributed,
        False,
    ),
    Layer(
        "product-within-edges",
        lambda: rgat("multiplicative", "within", dim=2, edge_dim=2, bias=False),
        typed_attributed,
        False,
    ),
    Layer(
        "product-scaled",
        lambda: rgat("multiplicative", "across", heads=2, dim=2, mod="scaled"),
        typed,
    ),
    *(
        Layer(
            f"{mode}-{mechanism}-{mod}",
            lambda mode=mode, mechanism=mechanism, mod=mod, dim=dim: rgat(
                mode, mechanism, mod=mod, heads=2, dim=dim
            ),
            typed,
            False,
        )
        for mode, mechanism, mod, dim in (
            ("additive", "across", "additive", 1),
            ("additive", "within", "scaled", 1),
            ("additive", "across", "f-additive", 1),
            ("additive", "within", "f-scaled", 1),
            ("multiplicative", "within", "additive", 2),
            ("multiplicative", "across", "f-scaled", 2),
            ("multiplicative", "within", "f-additive", 2),
        )
    ),
]


@pytest.mark.parametrize("layer", parameters(RGAT))
def test_rgat(layer: Layer) -> None:
    check(layer)


# ---------------------------------------------------------------- loops over relations


class Loop(nn.Module):
    """The loop that users write, one masked graph a relation. `how` names its parts: `modules` or
    `weights`, transformed `first` or after the aggregation, edges chosen by `mask`, `numbers` or
    `where`."""

    def __init__(self, how: str, aggr: str) -> None:
        super().__init__()
        self.how = how.split("-")
        self.lins = nn.ModuleList(
            nn.Linear(WIDTH, 8, bias="bias" in self.how) for _ in range(RELATIONS)
        )
        self.weight = nn.Parameter(torch.randn(RELATIONS, WIDTH, 8))
        self.aggregate = SimpleConv(aggr=aggr)

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        out = x.new_zeros(x.size(0), 8)
        for r in range(RELATIONS):
            edges = edge_index[:, self.chosen(edge_type == r)]
            if "first" in self.how:
                out = out + self.aggregate(self.transformed(x, r), edges)
            else:
                out = out + self.transformed(self.aggregate(x, edges), r)
        return out

    def transformed(self, x: Tensor, r: int) -> Tensor:
        return self.lins[r](x) if "modules" in self.how else x @ self.weight[r]

    def chosen(self, mask: Tensor) -> Tensor:
        if "numbers" in self.how:
            return mask.nonzero().view(-1)
        return torch.where(mask)[0] if "where" in self.how else mask


class EdgeLoop(nn.Module):
    """A loop whose messages read features of the edge."""

    def __init__(self) -> None:
        super().__init__()
        self.lins = nn.ModuleList(nn.Linear(WIDTH, 8) for _ in range(RELATIONS))
        self.edge = nn.Linear(2, WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor, attr: Tensor) -> Tensor:
        out = x.new_zeros(x.size(0), 8)
        e = self.edge(attr)
        for r, lin in enumerate(self.lins):
            mask = edge_type == r
            src, dst = edge_index[:, mask]
            out = out.index_add(0, dst, lin(torch.relu(x[src] + e[mask])))
        return out


LOOPS = [
    *(
        Layer(
            f"{how}-{aggr}",
            lambda how=how, aggr=aggr: Loop(how, aggr),
            typed,
            quick and aggr == "mean",
        )
        for how, quick in (
            ("weights-mask", True),
            ("weights-first-numbers", True),
            ("modules-first-mask", False),
            ("modules-where", False),
            ("modules-bias-first-mask", False),
            ("modules-bias-mask", False),
        )
        for aggr in ("mean", "add", "max")
    ),
    Layer("edge-features", EdgeLoop, typed_attributed),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("layer", parameters(LOOPS))
def test_loop(layer: Layer) -> None:
    check(layer)


def with_other_types(g: Edges, seed: int) -> tuple[Any, ...]:
    """Some edges are of a type that no relation has."""
    kind = types(g, seed)
    kind = torch.where(numbers(seed, 3, g.count) == 0, kind * 5 - 1, kind)
    return rows(seed, g.sources, WIDTH), g.index, kind


@pytest.mark.parametrize(
    "layer",
    parameters(
        [
            Layer("loop", lambda: Loop("weights-mask", "mean"), with_other_types),
            Layer("loop-sum", lambda: Loop("modules-first-mask", "add"), with_other_types, False),
            Layer("rgcn", lambda: RGCNConv(WIDTH, 8, RELATIONS), with_other_types),
            Layer(
                "edges",
                EdgeLoop,
                lambda g, seed: (*with_other_types(g, seed), rows(seed, g.count, 2)),
                False,
            ),
        ]
    ),
)
def test_edges_of_other_types_contribute_nothing(layer: Layer) -> None:
    check(layer)


# ---------------------------------------------------------------- indices out of range


def padded(x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    edge_index = edge_index[:, edge_index[0] >= 0]
    src, dst = edge_index
    return torch.zeros(x.size(0), weight.size(1)).index_add(0, dst, x[src] @ weight)


def of_known_type(x: Tensor, edge_index: Tensor, edge_type: Tensor, weight: Tensor) -> Tensor:
    known = edge_type < weight.size(0)
    (src, dst), kind = edge_index[:, known], edge_type[known]
    messages = torch.bmm(x[src].unsqueeze(1), weight[kind]).squeeze(1)
    return torch.zeros(x.size(0), weight.size(2)).index_add(0, dst, messages)


def test_only_rows_that_a_mask_keeps_must_be_in_range() -> None:
    x, weight = rows(0, NODES, WIDTH), torch.randn(RELATIONS, WIDTH, 8)
    edges = random_edges(0, NODES, NODES, 60, "uniform").index
    with_padding = torch.cat([edges, torch.full((2, 9), -1)], 1)
    compiled = gnnc.compile(padded)
    assert torch.allclose(
        compiled(x, with_padding, weight[0]), padded(x, with_padding, weight[0]), atol=1e-5
    )
    kind = numbers(0, 2 * RELATIONS, 60)
    typed_call = gnnc.compile(of_known_type)
    want = of_known_type(x, edges, kind, weight)
    assert torch.allclose(typed_call(x, edges, kind, weight), want, atol=1e-5)
    for call in (compiled, typed_call):
        assert gnnc.explain(call).fallbacks == []
    edges[0, 3] = NODES
    with pytest.raises(IndexError, match=rf"edge_index\[0\]\[3\] is {NODES}"):
        typed_call(x, edges, kind, weight)
    kind[3], edges[0, 3] = -1, 0  # what the mask keeps is checked; torch counts from the end
    want = of_known_type(x, edges, kind, weight)
    assert torch.allclose(typed_call(x, edges, kind, weight), want, atol=1e-5)
    assert any("is -1, but" in message for message in gnnc.explain(typed_call).fallbacks)


def test_weights_larger_than_a_stack() -> None:
    nodes, relations = 3000, 40
    torch.manual_seed(0)
    layer = RGCNConv(nodes, 32, relations, num_bases=2)  # 15 MB of weights from two bases
    edges, kind = numbers(0, nodes, 2, 500), numbers(1, relations, 500)
    want = layer(None, edges, kind)
    want.square().sum().backward()
    gradients = [p.grad for p in layer.parameters()]
    layer.zero_grad()
    got = gnnc.compile(layer)(None, edges, kind)
    got.square().sum().backward()
    assert torch.allclose(got, want, atol=1e-6)
    for p, gradient in zip(layer.parameters(), gradients, strict=True):
        assert torch.allclose(p.grad, gradient, atol=1e-5)
    assert gnnc.explain(layer).fallbacks == []


def test_node_numbers_beyond_the_weights_raise() -> None:
    layer = gnnc.compile(RGCNConv(NODES, 8, RELATIONS))
    x, edges, kind = by_number(FIXED[0], 0)
    layer(x, edges, kind)
    x[2] = NODES
    with pytest.raises(IndexError, match=rf"x\[2\] is {NODES}"):
        layer(x, edges, kind)


# ---------------------------------------------------------------- large scores


@pytest.mark.parametrize("mechanism", ["across", pytest.param("within", marks=pytest.mark.long)])
def test_large_scores_overflow_nowhere(mechanism: str) -> None:
    check_large(Layer("large", lambda: rgat("additive", mechanism, heads=2), typed))
