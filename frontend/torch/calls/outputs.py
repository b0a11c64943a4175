"""What a compiled program gives, as the tensors and structures of the user's code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from ....runtime.program import Buffer
from ..importer.binding import Constant, Copy, Number, Result, ResultBinding, Same, View


def tensor_of(b: ResultBinding, y: Tensor) -> Tensor:
    """A result as the tensor that the user's code would have made."""
    y = shaped(b, y)
    if b.order is None:
        return y
    inverse = [b.order.index(d) for d in range(len(b.order))]
    return y.permute(b.order).contiguous().permute(inverse)


def is_given_as_is(b: ResultBinding, buffer: Buffer | None) -> bool:
    """Whether `tensor_of` gives what it gets: rows from this output of a phase."""
    plain = b.row_axis == 0 and b.merge == 1 and b.order is None
    on_set = buffer is not None and buffer.domain is not None
    return plain and on_set and tuple(b.dims[1:]) == buffer.row


def shaped(b: ResultBinding, y: Tensor) -> Tensor:
    """The rows of a result with the row axis where it belongs."""
    if b.row_axis is None:
        return y if y.shape == b.dims else y.reshape(b.dims)
    if b.row_axis == 0 and b.merge == 1 and y.shape[1:] == b.dims[1:]:
        return y
    n = y.shape[0]
    before = b.dims[: b.row_axis]
    after = b.dims[b.row_axis + 1 :]
    rows = [*before, *([b.merge] if b.merge > 1 else []), *after]
    y = y.reshape(n, *rows)
    y = y.movedim(0, len(before) + (b.merge > 1 and not b.within))
    return y.reshape(*before, b.merge * n, *after)


LEAVES = (Result, Same, Copy, View, Number, Constant)


class Outputs:
    """The structure the user's function returns."""

    def __init__(self, outputs: Any) -> None:
        self.leaves, self.structure = pytree.tree_flatten(
            outputs, is_leaf=lambda x: isinstance(x, LEAVES)
        )
        # what Dynamo's graphs return; to unflatten takes ten times as long, at every call
        self.is_tuple = type(outputs) is tuple and all(isinstance(x, LEAVES) for x in outputs)
        results = [x.number for x in self.leaves if isinstance(x, Result)]
        self.is_results = self.is_tuple and results == list(range(len(self.leaves)))
        first: dict[int, int] = {}
        places = [first.setdefault(id(x), i) for i, x in enumerate(self.leaves)]
        self.again = [(i, k) for i, k in enumerate(places) if i != k]
        """Leaves that are the same tensor as an earlier one."""

    def rebuild(self, tensors: Sequence[Tensor], args: Sequence[Any]) -> Any:
        """That structure, of the results and arguments of a call."""
        if self.is_results and len(tensors) == len(self.leaves):
            return tuple(tensors)
        leaves = [self.leaf(x, tensors, args) for x in self.leaves]
        for i, k in self.again:
            leaves[i] = leaves[k]
        return tuple(leaves) if self.is_tuple else pytree.tree_unflatten(leaves, self.structure)

    @staticmethod
    def leaf(x: Any, tensors: Sequence[Tensor], args: Sequence[Any]) -> Any:
        match x:
            case Result(number):
                return tensors[number]
            case Same(placeholder):
                return args[placeholder]
            case View(of, steps):
                y = Outputs.leaf(of, tensors, args)
                for step in steps:
                    y = step(y, args)
                return y
            case Copy(placeholder, contiguous):
                kept = torch.contiguous_format if contiguous else torch.preserve_format
                return args[placeholder].clone(memory_format=kept)
            case Number(size):
                return size(args)
            case Constant(value):
                return value
        raise AssertionError(x)
