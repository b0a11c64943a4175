"""Runs compiled phases on torch tensors, and joins @forward and @backward to torch's autograd.

The one file of the runtime that imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import threads
from .pool import SMALL, pool
from .program import DTYPES, OnGraph, PhaseOnGraph

TORCH = {
    "f32": torch.float32,
    "f64": torch.float64,
    "i32": torch.int32,
    "i64": torch.int64,
    "i1": torch.bool,
}

threads.follow(torch.get_num_threads)


def empty(shape: tuple[int, ...], dtype: str) -> Tensor:
    """A tensor of undefined content, in memory of the pool where it is large."""
    size = math.prod(shape) * TORCH[dtype].itemsize
    if size < SMALL:
        return torch.empty(shape, dtype=TORCH[dtype])
    typestr = np.dtype(DTYPES[dtype]).str
    return torch.from_numpy(np.asarray(pool.take(size).shaped(shape, typestr)))


def run_phase(phase: PhaseOnGraph, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Call one phase: inputs by name, contiguous with a leading row axis; the outputs by name.

    Raises:
        ValueError: an input has another dtype or row shape than the program was compiled for.
    """
    addresses: dict[int, int] = {}
    keep: list[Tensor] = []
    for b in phase.phase.inputs:
        x = values[b.name]
        if x.dtype != TORCH[b.dtype] or tuple(x.shape[1:]) != b.row:
            raise ValueError(
                f"{b.name}: the program takes rows of shape {b.row} and type {b.dtype}, "
                f"got {tuple(x.shape[1:])} and {x.dtype}"
            )
        x = x.contiguous()
        keep.append(x)
        addresses[b.slot] = x.data_ptr()
    out: dict[str, Tensor] = {}
    for b in phase.phase.outputs:
        out[b.name] = y = empty((phase.rows[b.slot], *b.row), b.dtype)
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
    those kept for @backward.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        results: Sequence[str],
        saved: Sequence[str],
        gradients: Mapping[str, str],
        cotangents: Mapping[str, str],
    ) -> None:
        self.inputs = tuple(inputs)
        self.results = tuple(results)
        self.saved = tuple(saved)
        self.gradients = dict(gradients)
        self.cotangents = dict(cotangents)


class CompiledCall(torch.autograd.Function):
    """One call of a compiled program with gradients."""

    @staticmethod
    def forward(
        ctx: Any, graph: OnGraph, signature: Signature, *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        values = dict(zip(signature.inputs, inputs, strict=True)) | graph.rows
        out = run_phase(graph.phases["forward"], values)
        backward = graph.phases.get("backward")
        wanted = {b.name for b in backward.phase.inputs} if backward is not None else set[str]()
        kept = [n for n in signature.inputs if n in wanted]
        saved = [n for n in dict.fromkeys((*signature.saved, *signature.results)) if n in wanted]
        results = tuple(out[n] for n in signature.results)
        by_name = dict(zip(signature.inputs, inputs, strict=True))
        ctx.save_for_backward(*(by_name[n] for n in kept), *(out[n] for n in saved))
        ctx.names = [*kept, *saved]
        ctx.graph, ctx.signature = graph, signature
        pairs = zip(signature.results, results, strict=True)
        ctx.mark_non_differentiable(*(y for n, y in pairs if n not in signature.cotangents))
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        graph, signature = ctx.graph, ctx.signature
        values = dict(zip(ctx.names, ctx.saved_tensors, strict=True)) | graph.rows
        for name, d in zip(signature.results, cotangents, strict=True):
            if name in signature.cotangents and d is not None:
                values[signature.cotangents[name]] = d
        out = run_phase(graph.phases["backward"], values)
        grads = [out.get(signature.gradients.get(n, "")) for n in signature.inputs]
        return None, None, *grads
