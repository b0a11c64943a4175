"""Batches of one row, while a call of one rank of several is traced.

A BatchNorm needs two rows to have a variance. Torch looks for them in the tensor that it is given,
and so does its reckoning of shapes, which divides by one less. Here these are the rows of one rank,
and the statistics are those of all.
"""

from __future__ import annotations

from typing import Any

from torch import _decomp
from torch._guards import TracingContext
from torch.nn import functional as F

from ....runtime.ranks.world import world


def know_ranks() -> None:
    """Lets torch know of ranks there; does nothing the second time."""
    if F._verify_batch_size is _verified:
        return
    F._verify_batch_size, _plain["verified"] = _verified, F._verify_batch_size
    helper = _decomp.decompositions.native_batch_norm_helper
    _decomp.decompositions.native_batch_norm_helper, _plain["shapes"] = _shapes, helper


_plain: dict[str, Any] = {}
"""Torch's own functions."""


def _verified(size: Any) -> None:
    if not _traced_on_a_rank():
        _plain["verified"](size)


def _shapes(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, *others: Any
) -> Any:
    if training and _traced_on_a_rank():  # running statistics have no part in a shape
        mean = var = None
    return _plain["shapes"](input, weight, bias, mean, var, training, *others)


def _traced_on_a_rank() -> bool:
    return TracingContext.try_get() is not None and world().size > 1
