"""Training steps in C as torch modules: a call gives the loss, its backward pass all gradients."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
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
LAYERED = ("gcn", "sage", "gin")
"""Programs whose step is that of layers.h."""
LINE = 64
AHEAD = 32
"""As in rows.h: how far behind the last edge neighbours are looked up to be fetched."""


def library(name: str, macros: Mapping[str, int]) -> ctypes.CDLL:
    """The compiled program NAME.c, with these macros defined."""
    return _library(name, tuple(macros.items()))


@functools.cache
def _library(name: str, macros: tuple[tuple[str, int], ...]) -> ctypes.CDLL:
    defined = [*macros, ("VECTOR_BYTES", toolchain.vector_bytes())]
    text = "".join(f"#define {macro} {value}\n" for macro, value in defined)
    parts = ["tiles.h", "rows.h", f"{name}.c", *["layers.h"] * (name in LAYERED)]
    text += "".join((files("gnnc.bench.floor") / part).read_text() for part in parts)
    built = toolchain.load(toolchain.compile_source(text))
    address, count, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    built.workspace_floats.argtypes = [count, number, address]
    built.workspace_floats.restype = count
    built.step.argtypes = [count, number, number, *[address] * 6]
    built.step.restype = ctypes.c_float
    return built


def macros_of(widths: Sequence[int]) -> dict[str, int]:
    """FEATURES, HIDDEN, CLASSES and LAYERS of a net with these widths.

    Raises:
        ValueError: one layer, or inner widths that differ.
    """
    if len(widths) < 3 or len(set(widths[1:-1])) != 1:
        raise ValueError(f"net needs two layers or more and one inner width, not {list(widths)}")
    sizes = {"FEATURES": widths[0], "HIDDEN": widths[1], "CLASSES": widths[-1]}
    return {**sizes, "LAYERS": len(widths) - 1}


class Neighbours:
    """Edges grouped by one end: offsets, chunks of about equal work, and the other ends."""

    def __init__(self, by: Int32s, other: Int32s, nodes: int):
        self.offsets, rows = kernels.group(by, nodes)
        self.rows = padded(kernels.take(other, rows))
        work = self.offsets + ROW_COST * np.arange(nodes + 1)
        cuts = np.searchsorted(work, np.linspace(0, work[-1], CHUNKS + 1)[1:-1])
        self.chunks: Int64s = np.concatenate([[0], cuts, [nodes]]).astype(np.int64)

    @property
    def tables(self) -> list[NDArray[Any]]:
        return [self.offsets, self.chunks, self.rows]


def padded(rows: Int32s) -> Int32s:
    """With numbers behind the last that may be looked up."""
    return np.concatenate([rows, np.zeros(AHEAD, np.int32)])


def graph_tables(src: Int32s, dst: Int32s, nodes: int) -> list[NDArray[Any]]:
    """What `graph_of` in rows.h reads: the neighbours by destination and by source."""
    return [*Neighbours(dst, src, nodes).tables, *Neighbours(src, dst, nodes).tables]


class Floor(nn.Module):
    """A model whose loss and gradients a C program computes, on one graph.

    A call takes x (nodes x features, float32) and y (nodes, int64) and returns the mean
    cross-entropy.
    """

    def __init__(
        self,
        program: ctypes.CDLL,
        parameters: Sequence[nn.Parameter],
        nodes: int,
        tables: Sequence[NDArray[Any]],
    ):
        super().__init__()
        self.parameter_list = nn.ParameterList(parameters)
        self.library = program
        self.nodes = nodes
        self.tables = [np.ascontiguousarray(table) for table in tables]
        self.workspace: NDArray[np.float32] | None = None

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return _Step.apply(self, x, y, *self.parameter_list)

    def step(self, x: Tensor, y: Tensor, given: Sequence[Tensor]) -> tuple[float, list[Tensor]]:
        """The loss, and the gradients of `given`, values of the parameters."""
        threads = torch.get_num_threads()
        tables = (ctypes.c_void_p * len(self.tables))(*(t.ctypes.data for t in self.tables))
        floats = self.library.workspace_floats(self.nodes, threads, tables)
        if self.workspace is None or len(self.workspace) != floats:
            self.workspace = _aligned(floats)
        made = [torch.empty_like(t) for t in given]
        loss = self.library.step(
            *(self.nodes, CHUNKS, threads, tables, x.data_ptr(), y.data_ptr()),
            *(_addresses(given), _addresses(made), self.workspace.ctypes.data),
        )
        return loss, made


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
        plain = [p.detach() for p in parameters]
        loss, ctx.gradients = floor.step(x.contiguous(), y, plain)
        return torch.tensor(loss)

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, *(d_loss * g for g in ctx.gradients)
