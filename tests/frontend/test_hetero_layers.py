"""Compiled models of several node and edge types, or of one, equal PyG's: HGT, HeteroConv,
to_hetero, and their linear layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GraphConv,
    HeteroConv,
    HeteroDictLinear,
    HeteroLinear,
    HGTConv,
    SAGEConv,
    to_hetero,
    to_hetero_with_bases,
)

from .equality import Edges
from .layer_checks import (
    RELATIONS,
    WIDTH,
    Arguments,
    Layer,
    check,
    check_large,
    numbers,
    parameters,
    rows,
)

KINDS = ("p", "a", "s")
ONE = KINDS[:1]
SELF = (("p", "x", "p"), ("p", "y", "p"), ("p", "z", "p"))
EDGES = (("p", "c", "p"), ("a", "w", "p"), ("p", "r", "a"), ("s", "q", "p"), ("p", "d", "p"))
"""No edge ends at an `s`."""
BACK = ("p", "b", "s")
PAIR = (SELF[0], ("a", "w", "p"))
SELVES = (SELF[0], ("a", "w", "a"), ("p", "r", "a"))
META = (list(KINDS), list(EDGES))
ALL_META = (list(KINDS), [*EDGES, BACK])
"""What to_hetero asks for: every node type is a destination."""


def some(
    g: Edges, seed: int, types: tuple[Any, ...], kinds: Sequence[str] = KINDS
) -> tuple[Tensor, ...]:
    """Features of each node type, and edges of each type: as many as the graph has, a third, one,
    none by turns."""
    count = {"p": g.sources, "a": max(1, g.sources // 2), "s": 3}
    out = [rows(seed + k, count[kind], WIDTH) for k, kind in enumerate(kinds)]
    for k, (source, _, target) in enumerate(types):
        edges = (g.count, g.count // 3, min(g.count, 1), 0)[(k + seed) % 4]
        ends = [numbers(seed + 10 * k + j, count[n], edges) for j, n in enumerate((source, target))]
        out.append(torch.stack(ends))
    return tuple(out)


def typed(g: Edges, seed: int) -> tuple[Tensor, ...]:
    return some(g, seed, EDGES)


def all_typed(g: Edges, seed: int) -> tuple[Tensor, ...]:
    return some(g, seed, (*EDGES, BACK))


def between(types: tuple[Any, ...], kinds: Sequence[str] = ONE) -> Arguments:
    """The arguments of a model of these edge and node types."""
    return lambda g, seed: some(g, seed, types, kinds)


def few(g: Edges, seed: int) -> tuple[Tensor, ...]:
    """On the first graph, and every second, far more nodes than edges: a program for that shape."""
    nodes = 8 * max(1, g.count) if seed % 2 == 0 else g.sources
    ends = [numbers(seed + k, nodes, 2 * g.count).view(2, -1) for k in (1, 2)]
    return rows(seed, nodes, WIDTH), *ends


def not_alone(g: Edges, seed: int) -> tuple[Tensor, ...]:
    """Two nodes or more: where HGT flattens the features of its only relation, torch asks whether
    there is one row, so one node is traced anew."""
    return between(SELF[:1])(replace(g, sources=g.sources + 1), seed)


class Flat(nn.Module):
    """A model of dicts as one of plain arguments, after a first call for lazy parts."""

    def __init__(
        self, model: nn.Module, edges: tuple[Any, ...] = EDGES, kinds: Sequence[str] = KINDS
    ) -> None:
        super().__init__()
        self.model, self.edges, self.kinds = model, edges, kinds
        with torch.no_grad():
            self(
                *(torch.randn(3, WIDTH) for _ in kinds), *(torch.zeros(2, 1).long() for _ in edges)
            )

    def forward(self, *args: Tensor) -> tuple[Tensor, ...]:
        xs = dict(zip(self.kinds, args[: len(self.kinds)], strict=True))
        edges = dict(zip(self.edges, args[len(self.kinds) :], strict=True))
        return tuple(y for y in self.model(xs, edges).values() if y is not None)


class TwoLayers(nn.Module):
    """What to_hetero gets."""

    def __init__(self, layer: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = layer(7), layer(5)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


class OneLayer(nn.Module):
    """What to_hetero_with_bases gets."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(WIDTH, 5)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index)


class LinearDict(nn.Module):
    """HeteroDictLinear on plain arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = HeteroDictLinear(WIDTH, 8, types=list(KINDS))

    def forward(self, *xs: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.lin(dict(zip(KINDS, xs, strict=True))).values())


def sage(width: int) -> nn.Module:
    return SAGEConv((-1, -1), width)


def gat(width: int) -> nn.Module:
    return GATConv((-1, -1), width, heads=2, concat=False, add_self_loops=False)


def each(make: Callable[[int], nn.Module], aggr: str | None) -> nn.Module:
    return Flat(HeteroConv({t: make(8) for t in EDGES}, aggr=aggr))


def mixed() -> nn.Module:
    """A different layer for each edge type."""
    layers = (
        GCNConv(-1, 8),
        GATConv((-1, -1), 8, add_self_loops=False),
        sage(8),
        GraphConv((-1, -1), 8),
        GCNConv(-1, 8, add_self_loops=False),
    )
    return Flat(HeteroConv(dict(zip(EDGES, layers, strict=True)), aggr="mean"))


def hetero(make: Callable[[int], nn.Module], aggr: str = "sum") -> nn.Module:
    return Flat(to_hetero(TwoLayers(make), ALL_META, aggr=aggr), (*EDGES, BACK))


def hgt(types: tuple[Any, ...], kinds: Sequence[str] = ONE) -> nn.Module:
    return Flat(HGTConv(WIDTH, 8, (list(kinds), list(types)), heads=2), types, kinds)


def gcn_each(types: tuple[Any, ...]) -> nn.Module:
    return Flat(HeteroConv({t: GCNConv(WIDTH, 8) for t in types}), types, ONE)


def both(make: Callable[[int], nn.Module]) -> nn.Module:
    """Two relations on one node type, for graphs of `few` edges."""
    return Flat(HeteroConv({t: make(8) for t in SELF[:2]}), SELF[:2], ONE)


def one_type(types: tuple[Any, ...]) -> nn.Module:
    return Flat(to_hetero(TwoLayers(sage), (list(ONE), list(types))), types, ONE)


def bases(types: tuple[Any, ...], kinds: Sequence[str]) -> nn.Module:
    """One layer whose weights are sums of two, on the union of all types: that each edge type has
    its own weights is a hook on the messages."""
    meta, width = (list(kinds), list(types)), {"x": WIDTH}
    return Flat(to_hetero_with_bases(OneLayer(), meta, 2, in_channels=width), types, kinds)


def sorted_types(g: Edges, seed: int) -> tuple[Any, ...]:
    return rows(seed, g.sources, WIDTH), numbers(seed, RELATIONS - seed % 2, g.sources).sort()[0]


def any_types(g: Edges, seed: int) -> tuple[Any, ...]:
    return rows(seed, g.sources, WIDTH), numbers(seed, RELATIONS - seed % 2, g.sources)


LAYERS = [
    Layer("hgt", lambda: Flat(HGTConv(WIDTH, 8, META, heads=2)), typed),
    Layer("hgt-skip", lambda: Flat(HGTConv(WIDTH, WIDTH, META, heads=3)), typed, False),
    Layer("hgt-one-relation", lambda: hgt(SELF[:1]), not_alone),
    Layer("hgt-one-type", lambda: hgt(SELF[:2]), between(SELF[:2])),
    Layer("hgt-three-relations", lambda: hgt(SELF), between(SELF), False),
    Layer("hgt-self", lambda: hgt(PAIR, KINDS[:2]), between(PAIR, KINDS[:2]), False),
    Layer("hgt-selves", lambda: hgt(SELVES, KINDS[:2]), between(SELVES, KINDS[:2]), False),
    Layer("conv-one-type", lambda: gcn_each(SELF[:2]), between(SELF[:2])),
    Layer("to-hetero-one-type", lambda: one_type(SELF[:2]), between(SELF[:2]), False),
    Layer("bases-one-relation", lambda: bases(SELF[:1], ONE), between(SELF[:1])),
    Layer("bases", lambda: bases(SELVES, KINDS[:2]), between(SELVES, KINDS[:2]), False),
    Layer("conv-sage-sum", lambda: each(sage, "sum"), typed, False),
    Layer("conv-sage-max", lambda: each(sage, "max"), typed, False),
    Layer("conv-sage-cat", lambda: each(sage, "cat"), typed, False),
    Layer("conv-gat", lambda: each(gat, "sum"), typed, False),
    Layer("conv-mixed", mixed, typed),
    Layer("conv-sage-few", lambda: both(sage), few),
    Layer("conv-gat-few", lambda: both(gat), few, False),
    Layer("to-hetero-sage", lambda: hetero(sage, "mean"), all_typed),
    Layer("to-hetero-sage-max", lambda: hetero(sage, "max"), all_typed, False),
    Layer("to-hetero-gat", lambda: hetero(gat), all_typed, False),
    Layer("dict-linear", LinearDict, lambda g, seed: typed(g, seed)[: len(KINDS)]),
    Layer("linear", lambda: HeteroLinear(WIDTH, 8, RELATIONS), any_types),
    Layer("linear-sorted", lambda: HeteroLinear(WIDTH, 8, RELATIONS, is_sorted=True), sorted_types),
]


@pytest.mark.one_in(3)
@pytest.mark.filterwarnings("ignore:There exist node types:UserWarning")
@pytest.mark.parametrize("layer", parameters(LAYERS))
def test_equal_to_pyg(layer: Layer) -> None:
    check(layer)


def test_large_scores_overflow_nowhere() -> None:
    def large(g: Edges, seed: int) -> tuple[Any, ...]:
        first, *rest = typed(g, seed)
        return (first, *((x.detach() * 30).requires_grad_() for x in rest[:2]), *rest[2:])

    check_large(Layer("hgt", lambda: Flat(HGTConv(WIDTH, 8, META, heads=2)), large), 30.0)
