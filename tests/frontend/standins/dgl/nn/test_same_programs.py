"""A formula written for DGL and the same written for PyG are one program: equal C, up to names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import degree
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

import gnnc
import gnnc.dgl as dgl
from gnnc.dgl import nn as conv
from gnnc.frontend import compiler
from gnnc.frontend.torch import compile as torch_compile
from gnnc.passes.driver.pipelines import Between, pipeline
from gnnc.passes.targets import target_named

NODES, EDGES, RELATIONS = 30, 90, 3


class Printed(PassFailedException):
    """The C is there, which is all that is wanted of the program."""


@pytest.fixture
def artifacts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The artifacts of what is compiled from here on, in place of programs."""
    found: list[dict[str, Any]] = []

    def printed(
        module: ModuleOp, training: bool, options: compiler.Options, ranks: Between | None
    ) -> None:
        target = target_named("openmp")
        text = compiler.run_pipeline(module, pipeline(training, target), target, [])
        found.append(json.loads(text))
        raise Printed("printed")

    monkeypatch.setattr(torch_compile, "compile_module", printed)
    return found


def without_names(source: str) -> list[str]:
    """The tokens of C without comments, identifiers numbered by their first occurrence."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)
    numbers: dict[str, str] = {}
    return [
        numbers.setdefault(token, f"n{len(numbers)}") if re.match(r"[A-Za-z_]", token) else token
        for token in re.findall(r"[A-Za-z_]\w*|[\d.]\w*|\S", code)
    ]


def kernels(artifact: dict[str, Any]) -> list[str]:
    """The kernels of all phases, in order."""
    return [name for phase in artifact["phases"].values() for name in phase["kernels"]]


class Stack(nn.Module):
    """Layers one after the other, heads side by side; `pyg`: features come before edges."""

    def __init__(self, layers: list[nn.Module], pyg: bool) -> None:
        super().__init__()
        self.layers, self.pyg = nn.ModuleList(layers), pyg

    def forward(self, edges: Any, x: Tensor, *more: Tensor) -> Tensor:
        for k, layer in enumerate(self.layers):
            x = x if k == 0 else x.relu()
            x = layer(x, edges, *more) if self.pyg else layer(edges, x, *more)
            x = x.flatten(1)
        return x


class Gcn(MessagePassing):
    """D_in^-1/2 A D_out^-1/2 X W + b"""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(a, b)), nn.Parameter(torch.rand(b))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        scale = [degree(i, x.size(0)).clamp(min=1).pow(-0.5).unsqueeze(-1) for i in edge_index]
        return self.propagate(edge_index, x=x * scale[0] @ self.weight) * scale[1] + self.bias


class Sage(MessagePassing):
    """X W_1 + b + mean(X) W_2"""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(aggr="mean")
        self.neighbours, self.own = nn.Linear(a, b, bias=False), nn.Linear(a, b)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.own(x) + self.neighbours(self.propagate(edge_index, x=x))


class Gin(MessagePassing):
    """mlp((1 + eps) X + sum(X))"""

    def __init__(self, mlp: nn.Module) -> None:
        super().__init__()
        self.mlp, self.eps = mlp, nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        sums = self.propagate(edge_index, x=x)
        return self.mlp((1 + self.eps) * x + sums)


class Rgcn(MessagePassing):
    """sum over relations of sum(X) W_r, + b + X W"""

    def __init__(self, a: int, b: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(RELATIONS, a, b))
        self.bias, self.root = nn.Parameter(torch.rand(b)), nn.Parameter(torch.rand(a, b))

    def forward(self, x: Tensor, edge_index: Tensor, kind: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, kind=kind) + self.bias + x @ self.root

    def message(self, x_j: Tensor, kind: Tensor) -> Tensor:  # pyright: ignore
        return torch.bmm(x_j.unsqueeze(1), self.weight[kind]).squeeze(1)


def mlp(a: int, b: int) -> nn.Module:
    return nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, b))


Layers = Callable[[], list[nn.Module]]
SAME_C: dict[str, tuple[Layers, Layers]] = {
    "GraphConv": (
        lambda: [conv.GraphConv(16, 8), conv.GraphConv(8, 4)],
        lambda: [Gcn(16, 8), Gcn(8, 4)],
    ),
    "SAGEConv": (
        lambda: [conv.SAGEConv(16, 8, "mean"), conv.SAGEConv(8, 4, "mean")],
        lambda: [Sage(16, 8), Sage(8, 4)],
    ),
    "GINConv": (
        lambda: [conv.GINConv(mlp(16, 8), learn_eps=True)],
        lambda: [Gin(mlp(16, 8))],
    ),
    "GATConv": (
        lambda: [conv.GATConv(16, 8, 4), conv.GATConv(32, 8, 1)],
        lambda: [pyg.GATConv(a, 8, h, add_self_loops=False) for a, h in ((16, 4), (32, 1))],
    ),
    "RelGraphConv": (
        lambda: [conv.RelGraphConv(16, 8, RELATIONS)],
        lambda: [Rgcn(16, 8)],
    ),
}
SAME_KERNELS: dict[str, tuple[Layers, Layers]] = {
    "GraphConv": (
        lambda: [conv.GraphConv(16, 8, norm="none"), conv.GraphConv(8, 4, norm="none")],
        lambda: [pyg.GCNConv(a, b, normalize=False) for a, b in ((16, 8), (8, 4))],
    ),
    "GINConv": (
        lambda: [conv.GINConv(mlp(16, 8)), conv.GINConv(mlp(8, 4))],
        lambda: [pyg.GINConv(mlp(16, 8)), pyg.GINConv(mlp(8, 4))],
    ),
    "RelGraphConv": (
        lambda: [conv.RelGraphConv(16, 8, RELATIONS)],
        lambda: [pyg.RGCNConv(16, 8, RELATIONS, aggr="sum")],
    ),
}
"""PyG's layers, with weights of another shape, terms in another order, or a filter in front."""


def compile_both(dgl_layers: Layers, pyg_layers: Layers, relations: bool) -> None:
    """A training step of both on one graph, without nodes that no edge leads to."""
    ends = torch.randint(NODES, (2, EDGES))
    ends[1, :NODES] = torch.arange(NODES)
    graph = dgl.graph((ends[0], ends[1]), num_nodes=NODES)
    more = (torch.randint(RELATIONS, (EDGES,)),) if relations else ()
    x = torch.randn(NODES, 16)
    gnnc.compile(Stack(dgl_layers(), pyg=False))(graph, x, *more)
    gnnc.compile(Stack(pyg_layers(), pyg=True))(ends, x, *more)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SAME_C)
def test_the_c_is_the_same(name: str, artifacts: list[dict[str, Any]]) -> None:
    compile_both(*SAME_C[name], name == "RelGraphConv")
    ours, theirs = artifacts
    assert any("backward" in kernel for kernel in kernels(ours))
    assert kernels(ours) == kernels(theirs)
    assert without_names(ours["source"]) == without_names(theirs["source"])


@pytest.mark.parametrize("name", SAME_KERNELS)
def test_the_kernels_are_the_same(name: str, artifacts: list[dict[str, Any]]) -> None:
    compile_both(*SAME_KERNELS[name], name == "RelGraphConv")
    ours, theirs = artifacts
    assert any("backward" in kernel for kernel in kernels(ours))
    assert kernels(ours) == kernels(theirs)


def test_another_formula_is_another_program(artifacts: list[dict[str, Any]]) -> None:
    compile_both(lambda: [conv.SAGEConv(16, 8, "gcn")], lambda: [Sage(16, 8)], False)
    ours, theirs = artifacts
    assert without_names(ours["source"]) != without_names(theirs["source"])
