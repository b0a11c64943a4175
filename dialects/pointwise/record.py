"""The record of a pointwise function: all that the compiler knows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from .formulas import Rule
from .spelling import Code

Array = NDArray[Any]

OperandKind = Literal["float", "integer", "number", "bool", "any", "where"]
"""Element types an op takes: floats, integers, both (`number`), i1, everything (`any`); `where`
takes (i1, any, the same)."""

ResultKind = Literal["same", "bool"]
"""The element type of the result: that of the (last) operand, or i1."""

ZeroRule = Literal["never", "any", "first", "all"]
"""Which operands, being 0, make the result 0: none of them, any one (others finite), the first, or
all together."""

SignRule = Literal["any", "kept", "kept by one", "never negative"]
"""When the result is known not to be negative: never, where no operand is, where one operand is
not, or always."""


@dataclass(frozen=True)
class Parameter:
    """A constant of an op, a double. `required` ones have no default; others may be absent."""

    name: str
    required: bool = True


@dataclass(frozen=True)
class PointwiseSpec:
    """One function of the vocabulary.

    Meaning: `function` takes the operands in order (arrays of float64, int64 or bool) and the
    parameters by name. `slopes` has the cotangent of each operand, None where nothing flows back,
    `c` the C text. `of_booleans` is the function that torch computes of truth values under this
    name.

    Facts: `total`: finite operands give a finite result with a finite derivative, so the op may be
    computed on stored rows that nothing reads (the trait `Total`). One that is not total is so
    where operand `smooth_above_zero` is bounded away from 0 from above; with `finite_at_zero` it
    is finite, if not smooth, at 0 as well. `heavy`: it takes some ten times what an addition does.

    Algebra: `commutative`: the two operands may change places. `neutral` has for each of two
    operands the number with which the result is the other one. `signs` says of a function that adds
    its operands which are subtracted (-1). `idempotent`: f(f(x)) is f(x). `involution`: f(f(x)) is
    x. `selective`: f(x, x) is x, and has no slopes (twice those of a maximum, at NaN, are not 1).
    """

    name: str
    arity: int
    function: Callable[..., Array]
    slopes: tuple[Rule | None, ...]
    c: Code
    operands: OperandKind = "float"
    result: ResultKind = "same"
    of_booleans: str | None = None
    parameters: tuple[Parameter, ...] = ()
    total: bool = True
    smooth_above_zero: int | None = None
    finite_at_zero: bool = False
    heavy: bool = False
    zero: ZeroRule = "never"
    sign: SignRule = "any"
    commutative: bool = False
    neutral: tuple[float | None, float | None] = (None, None)
    signs: tuple[int, ...] | None = None
    idempotent: bool = False
    involution: bool = False
    selective: bool = False

    @property
    def class_name(self) -> str:
        """The name of the op's Python class: `leaky_relu` is LeakyReluOp."""
        return "".join(word.capitalize() for word in self.name.split("_")) + "Op"

    def zero_with(self, zeros: tuple[bool, ...]) -> bool:
        """Whether the result is 0 where exactly these operands are known to be 0."""
        match self.zero:
            case "never":
                return False
            case "any":
                return any(zeros)
            case "first":
                return zeros[0] and not any(zeros[1:])
            case "all":
                return all(zeros)
