"""Integers that are known when a program is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .....dialects.pointwise import POINTWISE
from .elements import INTEGERS
from .nodes import Node


def known_numbers(v: Node) -> list[int] | None:
    """The numbers of one integer or of one row of them, when they are known now."""
    known = _known(v) if len(v.shape) <= 1 else None
    return None if known is None else [int(n) for n in np.ravel(known)]


def _known(v: Node) -> NDArray[Any] | None:
    if v.set is not None or v.elem not in INTEGERS:
        return None
    if v.op in ("const", "table"):
        return np.broadcast_to(v.attrs["value" if v.op == "const" else "data"], v.shape)
    args = [x for a in v.args if (x := _known(a)) is not None]
    if len(args) < len(v.args):
        return None
    match v.op:
        case "reshape":
            return args[0].reshape(v.shape)
        case "broadcast":
            return np.broadcast_to(args[0], v.shape)
        case "cast":
            return args[0]
        case "pointwise":
            return POINTWISE[v.attrs["name"]].function(*args, **v.attrs["params"])
        case _:
            return None
