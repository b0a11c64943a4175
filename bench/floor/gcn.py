"""The GCN of gcn.c as a torch module: a call gives the loss, its backward pass all gradients."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...runtime.cpu import toolchain
from ...runtime.sets import kernels
from ...runtime.sets.kernels import Int32s, Int64s

CHUNKS = 128
ROW_COST = 4
"""What a row counts beside its edges where rows are cut into chunks of equal work."""
LINE = 64
AHEAD = 32
"""As in gcn.c: how far behind the last edge it looks up neighbours to fetch."""


@functools.cache
def _library(widths: tuple[int, ...]) -> ctypes.CDLL:
    features, hidden, classes = widths[0], widths[1], widths[-1]
    macros = {
        "FEATURES": features,
        "HIDDEN": hidden,
        "CLASSES": classes,
        "LAYERS": len(widths) - 1,
        "VECTOR_BYTES": toolchain.vector_bytes(),
    }
    text = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    text += "".join((files("gnnc.bench.floor") / name).read_text() for name in ("tiles.h", "gcn.c"))
    library = toolchain.load(toolchain.compile_source(text))
    address, count, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    library.gcn_workspace.argtypes = [count, number]
    library.gcn_workspace.restype = count
    library.gcn_step.argtypes = [count, number, number, *[address] * 14]
    library.gcn_step.restype = ctypes.c_float
    return library


class _Neighbours:
    """The edges that are no loops, grouped by one end: offsets, and the other ends."""

    def __init__(self, by: Int32s, other: Int32s, nodes: int):
        self.offsets, rows = kernels.group(by, nodes)
        self.rows = np.concatenate([kernels.take(other, rows), np.zeros(AHEAD, np.int32)])
        work = self.offsets + ROW_COST * np.arange(nodes + 1)
        cuts = np.searchsorted(work, np.linspace(0, work[-1], CHUNKS + 1)[1:-1])
        self.chunks: Int64s = np.concatenate([[0], cuts, [nodes]]).astype(np.int64)


class Floor(nn.Module):
    """The model `frontend.models.Net("gcn", ..)` of equal inner widths, on one graph.

    Its parameters are those of `net`. A call takes x (nodes x features, float32) and y (nodes,
    int64) and returns the mean cross-entropy.

    Raises:
        ValueError: a net of one layer, or with inner widths that differ.
    """

    def __init__(self, net: nn.Module, edge_index: Tensor, nodes: int):
        super().__init__()
        convs: Any = net.convs
        self.weights = nn.ParameterList(conv.lin.weight for conv in convs)
        self.biases = nn.ParameterList(conv.bias for conv in convs)
        widths = (self.weights[0].shape[1], *(len(w) for w in self.weights))
        if len(widths) < 3 or len(set(widths[1:-1])) != 1:
            raise ValueError(f"net needs two layers or more and one inner width, not {widths}")
        self.library = _library(widths)
        src, dst = edge_index[:, edge_index[0] != edge_index[1]].numpy().astype(np.int32)
        self.nodes = nodes
        self.by_dst = _Neighbours(dst, src, nodes)
        self.by_src = _Neighbours(src, dst, nodes)
        degree = np.diff(self.by_dst.offsets) + 1
        self.scale = (1 / np.sqrt(degree)).astype(np.float32)
        self.workspace: NDArray[np.float32] | None = None

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return _Step.apply(self, x, y, *self.weights, *self.biases)

    def step(
        self, x: Tensor, y: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]
    ) -> tuple[float, list[Tensor]]:
        """The loss, and the gradients of the weights followed by those of the biases."""
        threads = torch.get_num_threads()
        floats = self.library.gcn_workspace(self.nodes, threads)
        if self.workspace is None or len(self.workspace) != floats:
            self.workspace = _aligned(floats)
        made = [[torch.empty_like(t) for t in given] for given in (weights, biases)]
        tables = [
            *(self.by_dst.offsets, self.by_src.offsets, self.by_dst.chunks, self.by_src.chunks),
            *(self.by_dst.rows, self.by_src.rows, self.scale),
        ]
        loss = self.library.gcn_step(
            *(self.nodes, CHUNKS, threads),
            *(table.ctypes.data for table in tables),
            *(x.data_ptr(), y.data_ptr()),
            *(_addresses(tensors) for tensors in (weights, biases, *made)),
            self.workspace.ctypes.data,
        )
        return loss, [*made[0], *made[1]]


def _aligned(floats: int) -> NDArray[np.float32]:
    """Memory that begins with a cache line: no padded row lies on one more than it must."""
    memory = np.empty(floats + LINE // 4, np.float32)
    skip = -memory.ctypes.data % LINE // 4
    return memory[skip : skip + floats]


def _addresses(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*(t.data_ptr() for t in tensors))


class _Step(torch.autograd.Function):
    """Computes the gradients together with the loss, and hands them out in backward."""

    @staticmethod
    def forward(ctx: Any, floor: Floor, x: Tensor, y: Tensor, *parameters: Tensor) -> Tensor:
        half = len(parameters) // 2
        plain = [p.detach() for p in parameters]
        loss, ctx.gradients = floor.step(x.contiguous(), y, plain[:half], plain[half:])
        return torch.tensor(loss)

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, *(d_loss * g for g in ctx.gradients)
