"""Positions that slices take: those that continue each other are one slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def joined(ranges: Sequence[range]) -> list[range]:
    """Rising ranges, read one after the other, as fewer ones: 0:1, 2:3 and 4:5 are 0:5:2."""
    out: list[range] = []
    for r in ranges:
        both = _one(out[-1], r) if out else None
        if both is None:
            out.append(r)
        else:
            out[-1] = both
    return out


def _one(a: range, b: range) -> range | None:
    """Two ranges as one, where there is one."""
    step = a.step if len(a) > 1 else b.step if len(b) > 1 else b[0] - a[0]
    even = all(len(r) == 1 or r.step == step for r in (a, b))
    if step < 1 or not even or b[0] != a[-1] + step:
        return None
    return range(a[0], b[-1] + 1, step)


def of_literal(data: Any, dim: int, r: range) -> Any:
    """The positions of dimension `dim` of nested tuples."""
    if dim == 0:
        return data[r.start : r.stop : r.step]
    return tuple(of_literal(d, dim - 1, r) for d in data)
