"""An imported program run by the interpreter on torch tensors: what the importer's tests use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gnnc.dialects.meaning import SetVal, run
from gnnc.frontend.torch.importer.binding import (
    Constant,
    Copy,
    DropoutKey,
    FromSize,
    FromTensor,
    Imported,
    MapBinding,
    Number,
    Result,
    ResultBinding,
    RowsBinding,
    Same,
    View,
)
from gnnc.frontend.torch.importer.values.tensors import DTYPES


def evaluate(
    imported: Imported, args: Sequence[Any], key: int = 0
) -> tuple[Any, dict[int, Tensor]]:
    """The outputs of a program for the values of the graph's placeholders, and the new values of
    the placeholders that it edits, by position. `key` is that of its dropouts."""
    values = run(imported.module, "main", *bound(imported, args, key))
    count = len(imported.results)
    tensors = [rebuilt(b, v) for b, v in zip(imported.results, values[:count], strict=True)]
    updates = {
        u.placeholder: rebuilt(u.result, v)
        for u, v in zip(imported.updates, values[count:], strict=True)
    }
    return outputs(imported.outputs, tensors, args), updates


def bound(imported: Imported, args: Sequence[Any], key: int = 0) -> list[Any]:
    """The arguments of the program, for the interpreter. Raises ValueError where sizes of the
    placeholders that have to agree do not."""
    imported.check(args)
    sets = [
        SetVal(b.size(args), {m.label: map_column(m, args) for m in b.maps}) for b in imported.sets
    ]
    return [*sets, *(bound_rows(b, args, key) for b in imported.rows)]


def map_column(m: MapBinding, args: Sequence[Any]) -> np.ndarray[Any, Any]:
    """The integers of a map."""
    moved = args[m.placeholder].detach().movedim(m.row_axis, 0)
    return moved[(slice(None), *m.index)].numpy()


def bound_rows(b: RowsBinding, args: Sequence[Any], key: int) -> np.ndarray[Any, Any]:
    """A rows argument with the row axis in front."""
    match b.source:
        case FromTensor(placeholder, axis):
            x = args[placeholder].detach()
            return (x[None] if axis is None else x.movedim(axis, 0)).numpy()
        case FromSize(size):
            return np.array([size(args)])
        case DropoutKey():
            return np.array([key])


def rebuilt(b: ResultBinding, x: np.ndarray[Any, Any]) -> Tensor:
    """A result as the tensor that the graph returns."""
    if b.row_axis is None:
        x = x[0].reshape(b.dims)
    else:
        front = b.row_axis if b.merge == 1 or b.within else b.row_axis + 1
        n = x.shape[0]
        x = np.moveaxis(x, 0, front)
        x = x.reshape([b.merge * n if d == -1 else d for d in b.dims])
    return torch.from_numpy(np.array(x, order="C")).to(DTYPES[b.elem])


def outputs(tree: Any, results: Sequence[Tensor], args: Sequence[Any]) -> Any:
    """The structure that the graph returns, filled in."""
    match tree:
        case Result(number):
            return results[number]
        case Copy(placeholder, contiguous):
            kept = torch.contiguous_format if contiguous else torch.preserve_format
            return args[placeholder].clone(memory_format=kept)
        case View(of, steps):
            y = outputs(of, results, args)
            for step in steps:
                y = step(y, args)
            return y
        case Same(placeholder):
            return args[placeholder]
        case Number(size):
            return size(args)
        case Constant(value):
            return value
        case dict():
            return {k: outputs(v, results, args) for k, v in tree.items()}
        case _:
            return type(tree)(outputs(v, results, args) for v in tree)
