"""Registers of the kernels of real models, by NVRTC, which is what compiles them for users: every
kernel compiles for all that programs are made for, and holds its sums without spills."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    HGTConv,
    RGATConv,
    RGCNConv,
    SAGEConv,
    TransformerConv,
)

import gnnc
from gnnc.codegen.cuda.device_text import device_text
from gnnc.passes.intra.registers import FILE
from gnnc.runtime.cuda.errors import NvrtcError
from gnnc.runtime.cuda.nvrtc import compile_device
from gnnc.runtime.cuda.ptxas import Resources

from .build import with_nvcc

Layer = Callable[[int, int], torch.nn.Module]
HEADS, RELATIONS = 4, 3
LONG = pytest.mark.long


def attention(kind: Any) -> Layer:
    """A layer of four heads, whose last has them averaged."""

    def layer(inputs: int, outputs: int) -> torch.nn.Module:
        last = outputs % (4 * HEADS) != 0
        width = outputs if last else outputs // HEADS
        module: torch.nn.Module = kind(inputs, width, heads=HEADS, concat=not last)
        return module

    return layer


def perceptron(inputs: int, outputs: int) -> torch.nn.Module:
    linear = torch.nn.Linear
    return GINConv(
        torch.nn.Sequential(linear(inputs, outputs), torch.nn.ReLU(), linear(outputs, outputs))
    )


class Typed(torch.nn.Module):
    """HGT over nodes of one type and edges of two."""

    TYPES = (("n", "a", "n"), ("n", "b", "n"))

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        heads = HEADS if outputs % HEADS == 0 else 1
        self.layer = HGTConv(inputs, outputs, (["n"], list(self.TYPES)), heads)

    def forward(self, x: torch.Tensor, *graph: torch.Tensor) -> torch.Tensor:
        return self.layer({"n": x}, dict(zip(self.TYPES, graph, strict=True)))["n"]


LAYERS: dict[str, Layer] = {
    "gcn": GCNConv,
    "sage": SAGEConv,
    "sage-max": lambda a, b: SAGEConv(a, b, aggr="max"),
    "gin": perceptron,
    "gat": attention(GATConv),
    "gatv2": attention(GATv2Conv),
    "transformer": attention(TransformerConv),
    "rgcn": lambda a, b: RGCNConv(a, b, RELATIONS),
    "rgat": lambda a, b: RGATConv(a, b, RELATIONS),
    "hgt": Typed,
}
WIDTHS = {
    "narrow": (12, 16, 7),
    "small": (128, 64, 40),
    "wide": (256, 256, 40),
    "reddit": (602, 64, 40),
}
QUICK = "narrow"
FEW = ("gcn", "gat", "rgcn")
"""NVRTC takes some seconds for each."""
MOST_SPILLED = {("transformer", "small"): 600, ("transformer", "reddit"): 600}
"""Bytes of spills of a kernel that is too large for all registers: four weights' gradients at
once."""


class Model(torch.nn.Module):
    """Two layers with a batch norm between."""

    def __init__(self, name: str, widths: tuple[int, int, int]) -> None:
        super().__init__()
        features, hidden, classes = widths
        layer = LAYERS[name]
        self.first, self.norm = layer(features, hidden), torch.nn.BatchNorm1d(hidden)
        self.second = layer(hidden, classes)

    def forward(self, x: torch.Tensor, *graph: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x, *graph)))
        x = torch.nn.functional.dropout(x, 0.5, self.training)
        return self.second(x, *graph)


def kernels_of(name: str, widths: tuple[int, int, int]) -> tuple[str, str]:
    """The texts, of the device and of the host, of a model's training step with Adam."""
    torch.manual_seed(0)
    model = Model(name, widths)
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=1e-4)

    def loss(x: torch.Tensor, y: torch.Tensor, *graph: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(x, *graph), y)

    step = gnnc.train_step(loss, optimizer, target="cuda")
    graph = (torch.randint(0, 20, (2, 60)),)
    if name in ("rgcn", "rgat"):
        graph += (torch.randint(0, RELATIONS, (60,)),)
    if name == "hgt":
        graph += (torch.randint(0, 20, (2, 50)),)
    step(torch.randn(20, widths[0]), torch.randint(0, widths[2], (20,)), *graph)
    report = gnnc.explain(step)
    assert "runs on CUDA devices, not on cpu" in str(report.fallbacks)
    (bound,) = report.programs
    return bound.program.data["device"], bound.program.source


def cases() -> list[Any]:
    return [
        pytest.param(name, widths, marks=() if widths == QUICK and name in FEW else LONG)
        for name in LAYERS
        for widths in WIDTHS
    ]


@pytest.mark.parametrize(("name", "widths"), cases())
def test_no_kernel_spills(name: str, widths: str) -> None:
    device, host = kernels_of(name, WIDTHS[widths])
    for arch in ("sm_80", "sm_90"):
        check_resources(name, widths, host, compile_device(device, arch).kernels)


def check_resources(name: str, widths: str, host: str, resources: Mapping[str, Resources]) -> None:
    assert len(resources) > 5
    most = MOST_SPILLED.get((name, widths), 0)
    table = "\n".join(f"{kernel} {found}" for kernel, found in resources.items())
    for kernel, found in resources.items():
        allowed = most if kernel.endswith("segment_matmul_outer_total") else 0
        assert found.spill_stores <= allowed, table
        assert found.stack == 0 or allowed, table
        assert found.registers * 256 <= FILE, table
    shared = [int(n) for n in re.findall(r", 1, 1, (\d+), stream, arguments, 0\);", host)]
    assert len(shared) >= len(resources) and max(shared) <= 48 * 1024


@LONG
@pytest.mark.parametrize("name", FEW)
def test_nvcc_compiles_them_too(name, tmp_path):
    device, _ = kernels_of(name, WIDTHS["narrow"])
    assert with_nvcc(device, tmp_path, arch="sm_90")


def test_errors_name_the_op() -> None:
    """A mistake in the text of a kernel is told of the op that it was printed for."""
    device, _ = kernels_of("gcn", WIDTHS["narrow"])
    at = device.index("/* intra: intra.matmul", len(device_text()))
    wrong = device[:at] + device[at:].replace("matmul_tile<", "matmul_tale<", 1)
    with pytest.raises(NvrtcError, match="of the op intra.matmul : vector<16xf32>"):
        compile_device(wrong)
