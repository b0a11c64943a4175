"""Inputs that may stay as they are from call to call: the features of a graph that is trained on.

What is made from such a tensor once (its aggregation in @prepare, its form as a sparse matrix) is
kept until its version counter is another. Writes through NumPy, through `.data` and by other
processes do not raise the counter; most of them are seen by a look at some of the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, UnitAttr

from ...dialects.attributes import CONSTANT
from ...dialects.signature import arg_attributes, arguments
from .importer.binding import FromTensor, Imported
from .ranks import cut_tensors

LEAST = 1 << 18
"""Numbers of a tensor below which nothing is worth being kept."""
_ACROSS = 8
"""Numbers that are looked at in each dimension."""


def may_stay(x: Any) -> TypeGuard[Tensor]:
    """Whether an argument may be numbers that are the same for many calls, and enough of them. Rows
    of a part of a graph count as those of the whole: all ranks get the same answer."""
    return (
        type(x) is Tensor
        and x.is_cpu  # to look at numbers of a device is to wait for it
        and math.prod(cut_tensors.whole(x).shape) >= LEAST
        and x.dtype in (torch.float32, torch.float64)
        and x.layout is torch.strided
        and not x.requires_grad
        and not isinstance(x, nn.Parameter)
        and not x.is_inference()
        and torch._C._functorch.peek_interpreter_stack() is None  # numbers cannot be looked at
    )


def look(x: Tensor) -> bytes:
    """Some of the numbers that a tensor holds now, spread over all of it; of a device's none."""
    if not x.is_cpu:
        return b""
    grid = tuple(slice(n // _ACROSS // 2, None, max(1, n // _ACROSS)) for n in x.shape)
    return x.detach().numpy()[grid].tobytes()


def mark_constants(imported: Imported, examples: Sequence[Any]) -> None:
    """Marks the arguments of a program that may stay as `inter.constant`: floats on sets, that want
    no gradient and that the program does not write to."""
    written = {u.argument for u in imported.updates}
    stay = {
        r.name
        for r in imported.rows
        if isinstance(r.source, FromTensor)
        and r.source.row_axis is not None
        and r.name not in written
        and not r.needs_grad
        and may_stay(examples[r.source.placeholder])
    }
    func = imported.function
    names = [name for name, _, _ in arguments(func)]
    attributes = [dict(d) for d in arg_attributes(func)]
    for name, attrs in zip(names, attributes, strict=True):
        if name in stay:
            attrs[CONSTANT] = UnitAttr()
    func.arg_attrs = ArrayAttr(DictionaryAttr(a) for a in attributes)
