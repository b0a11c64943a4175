"""Runs compiled phases on torch tensors, and joins @forward and @backward to torch's autograd.

The one file of the runtime that imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import threads
from .pool import SMALL, take
from .program import DTYPES, OnGraph, PhaseOnGraph

TORCH = {
    "f32": torch.float32,
    "f64": torch.float64,
    "i32": torch.int32,
    "i64": torch.int64,
    "i1": torch.bool,
}

TYPESTR = {name: np.dtype(DTYPES[name]).str for name in TORCH}

threads.follow(torch.get_num_threads)


def empty(shape: tuple[int, ...], dtype: str) -> Tensor:
    """A tensor of undefined content, in memory of the pool where it is large."""
    size = math.prod(shape) * TORCH[dtype].itemsize
    if size < SMALL:
        return torch.empty(shape, dtype=TORCH[dtype])
    return torch.from_numpy(np.asarray(take(size).shaped(shape, TYPESTR[dtype])))


def run_phase(phase: PhaseOnGraph, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Call one phase: inputs by name, with a leading row axis, which those of a single row may
    lack; the outputs by name, single rows without it. An output may be an input, which was written
    to.

    Raises:
        ValueError: an input has another dtype or row shape than the program was compiled for.
    """
    addresses: dict[int, int] = {}
    keep: list[Tensor] = []
    out: dict[str, Tensor] = {}
    for b in phase.phase.inputs:
        x = values[b.name]
        row = x.shape if b.domain is None and x.dim() == len(b.row) else x.shape[1:]
        if x.dtype != TORCH[b.dtype] or row != b.row:
            raise ValueError(
                f"{b.name}: the program takes rows of shape {b.row} and type {b.dtype}, "
                f"got {tuple(row)} and {x.dtype}"
            )
        x = x.contiguous()
        keep.append(x)
        addresses[b.slot] = x.data_ptr()
        if b.gives is not None:
            out[b.gives] = x
    for b in phase.phase.outputs:
        shape = b.row if b.domain is None else (phase.rows[b.slot], *b.row)
        out[b.name] = y = empty(shape, b.dtype)
        addresses[b.slot] = y.data_ptr()
    phase.call(addresses)
    return out


def prepare(graph: OnGraph, values: Mapping[str, Tensor]) -> None:
    """Run @prepare and keep what it computed, and what the structure plan handed on, with the
    graph.
    """
    for name, array in graph.rows.items():
        if isinstance(array, np.ndarray):
            graph.rows[name] = torch.from_numpy(array)
    if "prepare" in graph.phases:
        graph.rows.update(run_phase(graph.phases["prepare"], {**values, **graph.rows}))


class Signature:
    """Which arguments and results of a program take part in differentiation.

    `inputs` are the rows arguments in order, `gradients` maps an argument to the output of
    @backward that holds its gradient, `results` are those of @forward that the caller sees, `saved`
    those kept for @backward, `wanted` what @backward reads. From these follow `kept`, the names of
    what a call keeps until its backward, in order, and `constant`, the results without a gradient.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        results: Sequence[str],
        saved: Sequence[str],
        gradients: Mapping[str, str],
        cotangents: Mapping[str, str],
        wanted: Collection[str],
    ) -> None:
        self.inputs = tuple(inputs)
        self.results = tuple(results)
        self.saved = tuple(saved)
        # computed here once: these lines would be run at every call
        self.gradients = tuple(gradients.get(n) for n in inputs)
        self.cotangents = tuple(cotangents.get(n) for n in results)
        self.kept_inputs = tuple(n for n in inputs if n in wanted)
        outputs = dict.fromkeys((*saved, *results))
        self.kept_outputs = tuple(n for n in outputs if n in wanted)
        self.kept = self.kept_inputs + self.kept_outputs
        self.constant = tuple(n for n in results if n not in cotangents)


class CompiledCall(torch.autograd.Function):
    """One call of a compiled program with gradients."""

    @staticmethod
    def forward(
        ctx: Any, graph: OnGraph, signature: Signature, *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        given = dict(zip(signature.inputs, inputs, strict=True))
        out = run_phase(graph.phases["forward"], given | graph.rows)
        kept = [given[n] for n in signature.kept_inputs]
        ctx.save_for_backward(*kept, *(out[n] for n in signature.kept_outputs))
        ctx.graph, ctx.signature = graph, signature
        if signature.constant:
            ctx.mark_non_differentiable(*(out[n] for n in signature.constant))
        return tuple(out[n] for n in signature.results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        graph, signature = ctx.graph, ctx.signature
        values = dict(zip(signature.kept, ctx.saved_tensors, strict=True)) | graph.rows
        for name, d in zip(signature.cotangents, cotangents, strict=True):
            if name is not None and d is not None:
                values[name] = d
        out = run_phase(graph.phases["backward"], values)
        return None, None, *(None if n is None else out[n] for n in signature.gradients)
