"""Widths of rows by name. A shape is the names of its dimensions, the numbers come with a call.

A width is written as a name ("in"), as a number (16), or as a product of these ("heads * out").
Values meet by these names, so that one number a head and a vector a head need no reshape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

Shape = tuple[str, ...]

_WIDTH = re.compile(r"[A-Za-z_]\w*|[1-9]\d*")


def width(text: str | int) -> str | None:
    """A width in the one way to write it; None where it is none."""
    factors = [f.strip() for f in str(text).split("*")]
    return "*".join(factors) if all(_WIDTH.fullmatch(f) for f in factors) else None


def product(shape: Shape) -> str:
    """The width of a row of this shape laid out as one vector."""
    return "*".join(shape) or "1"


def names(shape: Shape) -> set[str]:
    """The names in a shape."""
    return {f for w in shape for f in w.split("*") if not f.isdigit()}


def numbers(shape: Shape, known: Mapping[str, int]) -> tuple[int, ...]:
    """A shape in numbers."""
    return tuple(math.prod(_number(f, known) for f in w.split("*")) for w in shape)


def _number(factor: str, known: Mapping[str, int]) -> int:
    return int(factor) if factor.isdigit() else known[factor]


def shown(shape: Shape) -> str:
    """A shape for messages: `heads x out`, or `one number`."""
    return " x ".join(shape) or "one number"


def places(part: Shape, whole: Shape) -> tuple[int, ...] | None:
    """Where the widths of a shape stand in another one, aligned right; None where they do not."""
    found: list[int] = []
    end = len(whole)
    for w in reversed(part):
        while end > 0 and whole[end - 1] != w:
            end -= 1
        if end == 0:
            return None
        end -= 1
        found.append(end)
    return tuple(reversed(found))


def joined(a: Shape, b: Shape) -> Shape | None:
    """The shape of two values that meet: the one that has all widths of the other; None where
    neither has."""
    if places(a, b) is not None:
        return b
    return a if places(b, a) is not None else None


def contracted(x: Shape, w: Shape) -> tuple[int, Shape] | None:
    """`x @ w`: how many leading widths both share, and the shape of the result. None where the last
    width of x is not the next one of w."""
    if not x:
        return None
    shared = len(x) - 1
    if shared and w[: shared + 1] == x:
        return shared, w[:shared] + w[shared + 1 :]
    return (0, x[:-1] + w[1:]) if w[:1] == x[-1:] else None
