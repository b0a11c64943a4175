"""What C text is written in: how operands of one type, in one vector or alone, are combined.

A record's `c` is written once and read twice, for single numbers and for vectors; what differs
between the two, and between types, is behind `Spelling`. The code generator implements it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Spelling(ABC):
    """How C is written for operands of one type (for `where`: that of its branches), the operands
    and the function's parameters. Operands are expressions without side effects, in parentheses
    where they need some."""

    xs: tuple[str, ...]
    parameters: Mapping[str, float]

    @property
    def a(self) -> str:
        """The first operand."""
        return self.xs[0]

    @property
    def b(self) -> str:
        """The second operand."""
        return self.xs[1]

    @property
    @abstractmethod
    def is_integer(self) -> bool:
        """Whether the operands are integers or truth values."""

    @property
    @abstractmethod
    def is_single(self) -> bool:
        """Whether the operands are of f32."""

    @property
    @abstractmethod
    def is_scalar(self) -> bool:
        """Whether the operands are single numbers, and no vectors."""

    @abstractmethod
    def number(self, x: float) -> str:
        """A constant of the type, in every lane of a vector."""

    @abstractmethod
    def wrapping(self, operator: str, a: str, b: str) -> str:
        """Arithmetic of integers modulo their range, where C's own has no defined overflow."""

    @abstractmethod
    def select(self, mask: str, yes: str, no: str) -> str:
        """`yes` where a truth value holds, else `no`."""

    @abstractmethod
    def above(self, a: str, b: str) -> str:
        """`a` where a > b, else `b`, also where the two cannot be compared. Floats; an instruction
        of its own on many machines."""

    @abstractmethod
    def below(self, a: str, b: str) -> str:
        """The same where a < b."""

    @abstractmethod
    def math(self, fn: str, *xs: str) -> str:
        """A function of vector_math.h, which has one for every vector and for single numbers."""

    @abstractmethod
    def each(self, fn: str, *xs: str) -> str:
        """A function of single numbers, of C's library or the prelude, for each lane; its name
        ends as the type says (sqrtf, sqrt, signi)."""

    @abstractmethod
    def both(self, a: str, b: str) -> str:
        """Whether two truth values hold."""

    @abstractmethod
    def either(self, a: str, b: str) -> str:
        """Whether one of two truth values holds."""

    @abstractmethod
    def negated(self, a: str) -> str:
        """Whether a truth value does not hold."""


Code = Callable[[Spelling], str]
"""The C expression of a function of the operands."""


def infix(operator: str) -> Code:
    """An operator of C, which vectors have as well."""
    return lambda s: f"({s.a} {operator} {s.b})"


def arithmetic(operator: str) -> Code:
    """`infix` for floats; integers wrap around."""

    def code(s: Spelling) -> str:
        plain = f"({s.a} {operator} {s.b})"
        return s.wrapping(operator, s.a, s.b) if s.is_integer else plain

    return code


def math(fn: str) -> Code:
    """A function of vector_math.h."""
    return lambda s: s.math(fn, *s.xs)


def each(fn: str) -> Code:
    """A function of single numbers, lane by lane; the compiler makes vector instructions of sqrt,
    floor and the like."""
    return lambda s: s.each(fn, *s.xs)
