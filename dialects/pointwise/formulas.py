"""What derivatives are written in: numbers with arithmetic, and the place where a rule applies.

A rule is a formula in the vocabulary itself and knows nothing of IR: autodiff gives it numbers that
emit ops, the tests give it NumPy arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass


class Num(ABC):
    """A number of a formula. Comparisons give truth values, which `where` and `unless` take."""

    @abstractmethod
    def apply(self, name: str, *others: Num | float, **parameters: float) -> Num:
        """A function of the vocabulary of this number and others of its type."""

    @abstractmethod
    def number(self, x: float) -> Num:
        """A constant of this number's type."""

    def __add__(self, o: Num | float) -> Num:
        return self.apply("add", o)

    def __sub__(self, o: Num | float) -> Num:
        return self.apply("sub", o)

    def __rsub__(self, o: float) -> Num:
        return self.number(o).apply("sub", self)

    def __mul__(self, o: Num | float) -> Num:
        return self.apply("mul", o)

    def __truediv__(self, o: Num | float) -> Num:
        return self.apply("div", o)

    def __rtruediv__(self, o: float) -> Num:
        return self.number(o).apply("div", self)

    def __neg__(self) -> Num:
        return self.apply("neg")

    def __pow__(self, o: Num | float) -> Num:
        return self.apply("pow", o)

    def __gt__(self, o: Num | float) -> Num:
        return self.apply("gt", o)

    def __ge__(self, o: Num | float) -> Num:
        return self.apply("ge", o)

    def __le__(self, o: Num | float) -> Num:
        return self.apply("le", o)

    def __lt__(self, o: Num | float) -> Num:
        return self.apply("lt", o)

    def equals(self, o: Num | float) -> Num:
        """Where both are the same number; `==` stays Python's."""
        return self.apply("eq", o)

    def both(self, o: Num) -> Num:
        """Where this truth value and another hold."""
        return self.apply("logical_and", o)

    def where(self, condition: Num, otherwise: Num | float = 0.0) -> Num:
        """This number where `condition` holds, else `otherwise`."""
        other = otherwise if isinstance(otherwise, Num) else self.number(otherwise)
        return condition.apply("where", self, other)

    def unless(self, condition: Num, otherwise: Num | float = 0.0) -> Num:
        """This number where `condition` does not hold, else `otherwise`."""
        other = otherwise if isinstance(otherwise, Num) else self.number(otherwise)
        return condition.apply("where", other, self)


@dataclass(frozen=True)
class Site:
    """Where a rule is applied: the cotangent `d` of the result, the result `y`, the operands, the
    function's parameters, and what each operand is where it is a constant."""

    d: Num
    y: Num
    xs: tuple[Num, ...]
    parameters: Mapping[str, float]
    constants: tuple[float | None, ...]

    @property
    def a(self) -> Num:
        """The first operand."""
        return self.xs[0]

    @property
    def b(self) -> Num:
        """The second operand."""
        return self.xs[1]

    def factor(self, condition: Num, otherwise: float) -> Num:
        """1 where `condition` holds, else `otherwise`."""
        return self.d.number(1.0).where(condition, otherwise)

    def decay(self, t: Num) -> Num:
        """exp(t) for t <= 0."""
        return t.apply("exp")


Rule = Callable[[Site], Num | None]
"""The cotangent of one operand, in the shape of the result; None for 0."""


def _flat(_: Site) -> None:
    return None


FLAT: Rule = _flat
"""The derivative is 0 wherever there is one (a step): its result needs a gradient, as in torch."""
