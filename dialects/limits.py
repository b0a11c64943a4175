"""Bounds that both dialects put on a program, so that printers need not check them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException

MOST_NUMBERS = 2**31
"""A row holds fewer: places in a row are counted in C's int."""


def need_short_row(dims: Sequence[int]) -> None:
    """Raises VerifyException where rows of these dimensions hold too many numbers."""
    if math.prod(dims) >= MOST_NUMBERS:
        text = "x".join(map(str, dims))
        raise VerifyException(f"a row of {text} is too long: a row holds fewer than 2^31 numbers")
