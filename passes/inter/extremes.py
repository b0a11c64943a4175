"""Numbers that no maximum or minimum is changed by."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute

from ...dialects.inter.types import is_float


def beyond(elem: Attribute, kind: str) -> float:
    """What every number is at least (for "max"), or at most."""
    if is_float(elem):
        return -np.inf if kind == "max" else np.inf
    limits = np.iinfo(np.int32 if elem == i32 else np.int64)
    return int(limits.min if kind == "max" else limits.max)
