"""What a feature looks like: the shape of one row, and its dtype."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class Scheme(NamedTuple):
    """Two features of one scheme can be put one after the other."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def schemes(frame: Mapping[str, Tensor]) -> dict[str, Scheme]:
    """The scheme of each feature of a frame."""
    return {key: Scheme(tuple(v.shape[1:]), v.dtype) for key, v in frame.items()}
