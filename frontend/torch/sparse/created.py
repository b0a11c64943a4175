"""Matrices that users' code makes of their entries while it is traced.

Dynamo traces no `torch.sparse_coo_tensor`, and leaves the function around it to Python: nothing
that comes out of a call may be sparse. Traced for us the call is one that makes a `Matrix`, unless
something else cannot be compiled then: with the function in Python, what it calls still is.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from ..libraries.active import is_active
from .matrix import Matrix, tell_layouts
from .operations import OPERATIONS, Entries

_TRACED = True
_count = 0
"""How many matrices traces have made."""


@torch._dynamo.allow_in_graph
def created(row: Any, col: Any, value: Any, rows: Any, columns: Any, ordered: bool) -> Any:
    """A matrix in COO of entries in any order, perhaps several at one place, or `ordered`."""
    global _count
    _count += 1
    cls = Matrix if isinstance(row, Tensor) else Entries
    return cls(row, col, value, (rows, columns), torch.sparse_coo, ordered)


OPERATIONS[created] = created


@functools.cache
def install() -> None:
    """Has it traced so."""
    tell_layouts()
    torch._dynamo.substitute_in_graph(torch.sparse_coo_tensor, skip_signature_check=True)(_coo)


class Attempt:
    """Whether matrices that a callable makes are taken so: until a call with some fails."""

    def __init__(self) -> None:
        self.traced, self.met = True, 0

    def begin(self) -> bool:
        """From here on they are, which Dynamo guards on. Gives what `end` sets back."""
        global _TRACED
        before, _TRACED, self.met = _TRACED, self.traced, _count
        return before

    def end(self, before: bool) -> None:
        """As it was before."""
        global _TRACED
        _TRACED = before

    def failed(self) -> bool:
        """Whether the call, which could not be compiled, made some: the next attempt leaves them to
        torch."""
        again = self.traced and _count > self.met
        self.traced = self.traced and not again
        return again


def _coo(
    indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:
    """`torch.sparse_coo_tensor`, of which the trace ends at what has no entries of single numbers,
    or is none of ours."""
    tensors = isinstance(indices, Tensor) and isinstance(values, Tensor)
    if not is_active() or not _TRACED or not tensors or size is None or requires_grad or pin_memory:
        torch._dynamo.graph_break()
    if len(size) != 2 or values.dim() != 1 or torch.device(device or "cpu").type != "cpu":
        torch._dynamo.graph_break()
    numbers = values if dtype is None else values.to(dtype)
    return created(indices[0], indices[1], numbers, size[0], size[1], bool(is_coalesced))
