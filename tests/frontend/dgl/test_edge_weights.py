"""Layers that take the norm of edge weights: their check that these are positive is asked when a
call runs, and ends no trace."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gnnc
import gnnc.dgl

from .compiled import check, dgl, graph

WIDTH = 4
LAYERS = {
    "GraphConv": lambda conv: conv.GraphConv(WIDTH, 3, norm="none"),
    "GCN2Conv": lambda conv: conv.GCN2Conv(WIDTH, 1),
    "SGConv": lambda conv: conv.SGConv(WIDTH, 3, 2),
    "APPNPConv": lambda conv: conv.APPNPConv(2, 0.1),
}


class Weighed(nn.Module):
    """A layer of weights, which some layers take the norm of themselves."""

    def __init__(self, library: Any, layer: str, norm: str | None = None) -> None:
        super().__init__()
        conv = library.nn.pytorch.conv
        self.layer = LAYERS[layer](conv)
        self.norm = None if norm is None else conv.EdgeWeightNorm(norm, eps=0.1)
        self.twice = layer == "GCN2Conv"

    def forward(self, g: Any, x: Tensor, w: Tensor) -> Tensor:
        weight = w if self.norm is None else self.norm(g, w)
        return self.layer(g, *([x, x] if self.twice else [x]), edge_weight=weight)


def sample(n: int, m: int, e: int) -> tuple[Any, ...]:
    g = graph(n, e)
    return g, torch.randn(n, WIDTH), torch.rand(g.num_edges()) + 0.5


@pytest.mark.parametrize(
    "layer, norm",
    [
        *[("GraphConv", n) for n in ("both", "right", "none")],
        *[(x, None) for x in LAYERS if x != "GraphConv"],
    ],
)
def test_layers_with_weights_are_one_program(layer: str, norm: str | None) -> None:
    check(Weighed(dgl, layer, norm), sample)


def test_layers_of_gnnc_dgl_are_one_program() -> None:
    def of_ours(*sizes: int) -> tuple[Any, ...]:
        g, *args = sample(*sizes)
        return gnnc.dgl.from_dgl(g), *args

    check(Weighed(gnnc.dgl, "SGConv"), of_ours)


@pytest.mark.parametrize("library", [dgl, gnnc.dgl], ids=["dgl", "gnnc.dgl"])
def test_weights_that_are_not_positive_are_refused(library: Any) -> None:
    g, x, w = sample(9, 0, 30)
    g = g if library is dgl else gnnc.dgl.from_dgl(g)
    model = Weighed(library, "GraphConv", "both")
    compiled = gnnc.compile(model)
    compiled(g, x, w)
    for bad in (0.0, -1.0):
        other = w.clone()
        other[3] = bad
        with pytest.raises(library.DGLError) as expected:
            Weighed.forward(model, g, x, other)
        with pytest.raises(library.DGLError) as found:
            compiled(g, x, other)
        assert (found.type, str(found.value)) == (expected.type, str(expected.value))
    assert gnnc.explain(compiled).fallbacks == []
