"""`dgl.init`: what features of nodes and edges begin with where nobody gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["base_initializer", "zero_initializer"]

Initializer = Callable[[tuple[int, ...], torch.dtype, Any, slice], Tensor]
"""Of a shape, a type, a device and the ids of the rows."""


def base_initializer(
    shape: tuple[int, ...], dtype: torch.dtype, ctx: Any, id_range: slice
) -> Tensor:
    """The signature of an initializer: a tensor of `shape` and `dtype` on `ctx`, for the rows
    `id_range`. Raises `NotImplementedError`."""
    raise NotImplementedError(
        "base_initializer makes no features: set zero_initializer, or a function of the same "
        "arguments that returns a tensor of this shape"
    )


def zero_initializer(
    shape: tuple[int, ...], dtype: torch.dtype, ctx: Any, id_range: slice
) -> Tensor:
    """Zeros, which features begin with where no other initializer is set."""
    return torch.zeros(shape, dtype=dtype, device=ctx)


class Initializers(NamedTuple):
    """Those of the features of one type: of some by name, and of the others."""

    named: dict[str, Initializer]
    other: Initializer | None = None

    def rows(self, key: str, like: Tensor, first: int, count: int) -> Tensor:
        """`count` rows of a feature from row `first` on, like one row of a tensor."""
        make = self.named.get(key, self.other) or zero_initializer
        shape = (count, *like.shape[1:])
        return make(shape, like.dtype, like.device, slice(first, first + count))


ZEROS = Initializers({})
