"""Sparse matrices that a program does not get as arguments: those of its modules, of objects that
it is given, of variables around it.
"""

from __future__ import annotations

from torch import Tensor

from ..capture.exchanged import exchange
from .matrix import Matrix, has_order, is_sparse, kept_matrix, tell_layouts, why_not


def _takes(x: Tensor) -> bool:
    """Whether this is a matrix that stays one object from call to call."""
    return is_sparse(x) and why_not(x) is None and not x.requires_grad and has_order(x)


def _matrix(x: Tensor) -> Matrix:
    tell_layouts()
    return kept_matrix(x)


exchange(Tensor, "_gnnc_matrix", _takes, _matrix)
