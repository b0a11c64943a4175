"""Sparse matrices that a program does not get as arguments: those of its modules, of objects that
it is given, of variables around it. Dynamo comes upon them while it traces. They enter as an
attribute of the user's matrix, which code before the compiled graph asks for at every call.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._dynamo.source import AttrSource
from torch._dynamo.variables.builder import VariableBuilder

from .matrix import Matrix, has_order, is_sparse, kept_matrix, tell_layouts, why_not

ATTRIBUTE = "_gnnc_matrix"


def _takes(x: Tensor) -> bool:
    """Whether this is a matrix that stays one object from call to call."""
    return is_sparse(x) and why_not(x) is None and not x.requires_grad and has_order(x)


@torch._dynamo.disable  # it runs between the guards and the compiled graph
def _matrix(x: Tensor) -> Matrix:
    """Raises:
    AttributeError: it is none of those (any more). A guard fails then.
    """
    if not _takes(x):
        raise AttributeError(ATTRIBUTE)
    return kept_matrix(x)


setattr(Tensor, ATTRIBUTE, property(_matrix))


@contextmanager
def taken_apart() -> Generator[None]:
    """While it holds Dynamo takes sparse matrices that it finds as `Matrix`."""
    plain = VariableBuilder.wrap_tensor

    def wrap_tensor(self: VariableBuilder, value: Tensor) -> Any:
        if not _takes(value):
            return plain(self, value)
        tell_layouts()
        source = AttrSource(self.get_source(), ATTRIBUTE)
        return VariableBuilder(self.tx, source)(kept_matrix(value))

    VariableBuilder.wrap_tensor = wrap_tensor  # type: ignore[method-assign]
    try:
        yield
    finally:
        VariableBuilder.wrap_tensor = plain  # type: ignore[method-assign]
