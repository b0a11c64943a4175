"""Where a number of a row lies, as text that a thread computes: the arithmetic of row dimensions.

A thread handles a tile of a few neighbouring numbers at once. An index says where the first of them
lies and how far apart they are; a tile that a dimension would cut is refused, and printed again
number by number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


class Untiled(Exception):
    """The numbers of a tile do not lie at equal distances: print it one by one."""


@dataclass(frozen=True)
class Index:
    """Number `j` of a tile lies at `text + step * j`. `multiple` divides the value of `text`, and
    all numbers of the tile lie below `below`."""

    text: str
    step: int
    multiple: int
    below: int

    @staticmethod
    def at(k: int) -> Index:
        """A constant."""
        return Index(str(k), 0, k, k + 1)

    @property
    def constant(self) -> int | None:
        """The value, where it is known."""
        return int(self.text) if self.text.isdigit() else None

    def plus(self, other: Index) -> Index:
        """The sum of two."""
        below = self.below + other.below - 1
        step, multiple = self.step + other.step, math.gcd(self.multiple, other.multiple)
        a, b = self.constant, other.constant
        if a is not None and b is not None:
            return Index(str(a + b), step, a + b, below)
        if a == 0:
            return Index(other.text, step, other.multiple, below)
        if b == 0:
            return Index(self.text, step, self.multiple, below)
        whole, _, n = other.text.removeprefix("(").removesuffix(")").partition(" % ")
        if n and self.text == f"(({whole} / {n}) * {n})":
            return Index(whole, step, multiple, below)
        return Index(f"({self.text} + {other.text})", step, multiple, below)

    def times(self, factor: int) -> Index:
        """A multiple."""
        if factor == 1:
            return self
        if factor == 0:
            return Index.at(0)
        below = (self.below - 1) * factor + 1
        k = self.constant
        text = f"({self.text} * {factor})" if k is None else str(k * factor)
        return Index(text, self.step * factor, self.multiple * factor, below)

    def split(self, n: int, tile: int) -> tuple[Index, Index]:
        """The index in front of a dimension of `n`, and the one in it.

        Raises:
            Untiled: the dimension cuts the tile.
        """
        if self.below <= n:
            return Index.at(0), self
        k = self.constant
        if k is not None and self.step == 0:
            return Index.at(k // n), Index.at(k % n)
        whole = self.step == 1 and n % tile == 0 and self.multiple % tile == 0
        if self.step and not whole:
            raise Untiled
        before = Index(f"({self.text} / {n})", 0, 1, -(-self.below // n))
        inside = Index(f"({self.text} % {n})", self.step, math.gcd(self.multiple, n), n)
        return before, inside


def coordinates(at: Index, dims: Sequence[int], tile: int) -> list[Index]:
    """An index of a row as one of each dimension. Raises Untiled."""
    out: list[Index] = []
    for n in reversed(dims):
        at, inside = at.split(n, tile)
        out.append(inside)
    return out[::-1]


def place(at: Sequence[Index], steps: Sequence[int]) -> Index:
    """The index of a row whose dimensions lie `steps` apart; where a step is 0 it repeats."""
    found = Index.at(0)
    for x, step in zip(at, steps, strict=True):
        found = found.plus(x.times(step))
    return found
