"""What printers share about products: the table that a group's matrix is found by, and strides."""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from ...dialects.intra import rows
from ...dialects.intra.syntax import buffer_dims

Text = Callable[[SSAValue], str]
"""The name of a value in the text."""


def table_of(index: SSAValue, row: SSAValue, text: Text) -> str:
    """The C name of the table that an index is looked up in, at the nest's row.

    Raises:
        PassFailedException: it is found in another way.
    """
    lookup = index.owner
    if not isinstance(lookup, rows.LookupOp) or lookup.row is not row:
        raise PassFailedException("the index of a product must be looked up at the nest's row")
    return text(lookup.table)


def letter_steps(letters: str, buffer: SSAValue) -> dict[str, int]:
    """How far apart the numbers of a row lie along each of its dimensions."""
    dims = buffer_dims(buffer)
    return {c: math.prod(dims[i + 1 :]) for i, c in enumerate(letters)}
