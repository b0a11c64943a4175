"""Runs compiled phases on torch tensors.

This file and autograd.py are those of the runtime that import torch when they are imported.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np
import torch
from torch import Tensor

from .cpu import threads
from .cpu.heap import HUGE_PAGE, heap
from .cpu.pool import SMALL, take
from .cuda.device import memory_errors
from .program import DTYPES, Buffer, OnGraph, PhaseOnGraph

TORCH = {
    "f32": torch.float32,
    "f64": torch.float64,
    "i32": torch.int32,
    "i64": torch.int64,
    "i1": torch.bool,
}

CPU = torch.device("cpu")
"""Named wherever a tensor is made: there may be another default."""

TYPESTR = {name: np.dtype(DTYPES[name]).str for name in TORCH}

threads.follow(torch.get_num_threads)


class Elsewhere(RuntimeError):
    """An input of a program is on another device, where its addresses mean nothing."""

    def __init__(self, name: str, device: torch.device, where: str) -> None:
        at = "the CPU" if where == "cpu" else where
        super().__init__(f"{name} is on the device {device}: the program runs on {at}")


def empty(shape: tuple[int, ...], dtype: str, device: str = "cpu") -> Tensor:
    """A tensor of undefined content; on the host in memory of the pool where it is large, unless
    torch takes it from the heap that lends to us."""
    size = math.prod(shape) * TORCH[dtype].itemsize
    if device != "cpu":
        with memory_errors("the results of a program", size):
            return torch.empty(shape, dtype=TORCH[dtype], device=device)
    if size < SMALL or (size < HUGE_PAGE and heap.lends(size)):
        return torch.empty(shape, dtype=TORCH[dtype], device=CPU)
    return torch.from_numpy(np.asarray(take(size).shaped(shape, TYPESTR[dtype])))


def run_phase(
    phase: PhaseOnGraph, values: Mapping[str, Tensor], spent: Collection[str] = ()
) -> dict[str, Tensor]:
    """Call one phase: inputs by name, with a leading row axis, which those of a single row may
    lack; the outputs by name, single rows without it. An output may be an input, which was written
    to. Single rows of the host are copied to a device. The inputs whose names are `spent` hold
    anything afterwards: the phase may lay what it computes where they are.

    Raises:
        ValueError: an input has another dtype or row shape than the program was compiled for.
        Elsewhere: an input is on another device.
    """
    addresses: dict[int, int] = {}
    keep: list[Tensor] = []
    out: dict[str, Tensor] = {}
    moved: list[tuple[Tensor, Tensor]] = []
    device, alignment = phase.memory.device, phase.memory.alignment
    on_host = device == "cpu"
    for b in phase.phase.inputs:
        x = values[b.name]
        shape = x.shape
        if b.domain is not None or len(shape) != len(b.row):
            shape = shape[1:]
        if shape != b.row or x.dtype is not TORCH[b.dtype]:
            raise ValueError(
                f"{b.name}: the program takes rows of shape {b.row} and type {b.dtype}, "
                f"got {tuple(shape)} and {x.dtype}"
            )
        if x.is_cpu != on_host:
            x = on_device(b, x, device)
        x = x.contiguous()
        if b.gives is not None:
            out[b.gives] = x
        if alignment > 1 and x.data_ptr() % alignment:
            moved.append((x, x := x.clone()))
        keep.append(x)
        addresses[b.slot] = x.data_ptr()
    rows = phase.rows
    for b in phase.phase.outputs:
        n = rows[b.slot]
        shape = b.row if b.domain is None else (n, *b.row)
        if on_host and n * b.bytes_of_row < SMALL:  # as `empty` does, without more calls
            y = torch.empty(shape, dtype=TORCH[b.dtype], device=CPU)
        else:
            y = empty(shape, b.dtype, device)
        out[b.name] = y
        addresses[b.slot] = y.data_ptr()
    if spent:
        places = tuple(b.slot for b in phase.phase.inputs if b.name in spent)
        phase.call(addresses, places)
    else:
        phase.call(addresses)
    if moved:
        written = {id(x) for x in out.values()}
        for x, copy in moved:
            if id(x) in written:
                x.copy_(copy)
    return out


def on_device(b: Buffer, x: Tensor, device: str) -> Tensor:
    """A single row of the host (a rate, the key of dropout) on a device.

    Raises:
        Elsewhere: it is another input, or the program runs on the host.
    """
    if not x.is_cpu or b.domain is not None or b.gives is not None:
        raise Elsewhere(b.name, x.device, device)
    return x.to(device)


def prepare(graph: OnGraph, values: Mapping[str, Tensor]) -> None:
    """Run @prepare and keep what it computed, and what the structure plan handed on, with the
    graph.
    """
    for name, array in graph.rows.items():
        if isinstance(array, np.ndarray):
            x = torch.from_numpy(array)
            graph.rows[name] = x if graph.memory.device == "cpu" else x.to(graph.memory.device)
    if "prepare" in graph.phases:
        graph.rows.update(run_phase(graph.phases["prepare"], {**values, **graph.rows}))
