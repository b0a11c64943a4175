"""How the ops spell their properties: in short forms, and in braces."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from ..assembly import Braces
from .types import SetType, is_bool, rows, strs, unstrs

NumberAttr = FloatAttr | IntegerAttr
"""A constant: a double for float elements, an i64 for integer ones and i1."""


def ints(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    """Integers as an attribute."""
    return ArrayAttr(IntAttr(i) for i in values)


# ---------------------------------------------------------------- numbers


def number(value: float | int | bool) -> NumberAttr:
    """A Python number as an attribute: floats are doubles, integers and bools i64."""
    if isinstance(value, float):
        return FloatAttr(value, f64)
    return IntegerAttr(int(value), i64)


def number_value(attr: Attribute) -> float | int:
    """The number of such an attribute."""
    if isinstance(attr, FloatAttr | IntegerAttr):
        return attr.value.data
    raise TypeError(f"{attr} is not a number")


def float_text(x: float) -> str:
    """A double as the parser reads it back, exactly."""
    if math.isinf(x) or math.isnan(x):
        return str(x)
    text = repr(x)
    if "e" in text and "." not in text:
        mantissa, exponent = text.split("e")
        text = f"{mantissa}.0e{exponent}"
    return text


def parse_number(parser: Parser) -> NumberAttr:
    """`1.5`, `-3`, `true`, `inf`, `-inf` or `nan`"""
    sign = -1.0 if parser.parse_optional_punctuation("-") else 1.0
    word = parser.parse_optional_keyword_in(("inf", "nan"))
    if word is not None:
        return FloatAttr(sign * float(word), f64)
    value = parser.parse_number(allow_boolean=True)
    return number(sign * value if isinstance(value, float) else int(sign) * value)


def number_text(attr: Attribute) -> str:
    """What `parse_number` reads."""
    value = number_value(attr)
    return float_text(value) if isinstance(value, float) else str(value)


# ---------------------------------------------------------------- short forms

A = TypeVar("A", bound=Attribute)


@irdl_custom_directive
class Short(CustomDirective, ABC, Generic[A]):
    """A property in a form of its own."""

    attribute: AttributeVariable

    @abstractmethod
    def read(self, parser: Parser) -> A:
        """The property from its text."""

    @abstractmethod
    def text(self, value: A, op: IRDLOperation) -> str:
        """What `read` reads."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.attribute.set(state, self.read(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(self.text(cast(A, self.attribute.get(op)), op))


class Name(Short[StringAttr]):
    """`sum`, `src.parent`"""

    def read(self, parser: Parser) -> StringAttr:
        return StringAttr(parser.parse_identifier())

    def text(self, value: StringAttr, op: IRDLOperation) -> str:
        return value.data


class Keys(Short[ArrayAttr[StringAttr]]):
    """`[rel, src]`, or nothing"""

    def read(self, parser: Parser) -> ArrayAttr[StringAttr]:
        keys = parser.parse_optional_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_identifier
        )
        return strs(keys or ())

    def text(self, value: ArrayAttr[StringAttr], op: IRDLOperation) -> str:
        return f"[{', '.join(unstrs(value))}]" if value.data else ""


class Groups(Short[ArrayAttr[StringAttr]]):
    """`dst`, `(dst, rel)` or `()`"""

    def read(self, parser: Parser) -> ArrayAttr[StringAttr]:
        keys = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_identifier
        )
        return strs([parser.parse_identifier(" for a map")] if keys is None else keys)

    def text(self, value: ArrayAttr[StringAttr], op: IRDLOperation) -> str:
        names = unstrs(value)
        return names[0] if len(names) == 1 else f"({', '.join(names)})"


class Count(Short[IntAttr]):
    """`2`"""

    def read(self, parser: Parser) -> IntAttr:
        return IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False))

    def text(self, value: IntAttr, op: IRDLOperation) -> str:
        return str(value.data)


class Ints(Short[ArrayAttr[IntAttr]]):
    """`[1, 0]`"""

    def read(self, parser: Parser) -> ArrayAttr[IntAttr]:
        return ints(
            parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        )

    def text(self, value: ArrayAttr[IntAttr], op: IRDLOperation) -> str:
        return f"[{', '.join(str(i.data) for i in value)}]"


class Constant(Short[NumberAttr]):
    """`0.5`, `3`, or `true` where the result is truth values"""

    def read(self, parser: Parser) -> NumberAttr:
        return parse_number(parser)

    def text(self, value: NumberAttr, op: IRDLOperation) -> str:
        if is_bool(rows(op.results[0]).elem):
            return "true" if number_value(value) else "false"
        return number_text(value)


class Numbers(Short[ArrayAttr[NumberAttr]]):
    """`[0.5, 1.0]`"""

    def read(self, parser: Parser) -> ArrayAttr[NumberAttr]:
        return ArrayAttr(
            parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_number(parser))
        )

    def text(self, value: ArrayAttr[NumberAttr], op: IRDLOperation) -> str:
        return f"[{', '.join(map(number_text, value))}]"


@irdl_custom_directive
class Attached(CustomDirective):
    """`(src = %s, dst = %d)`"""

    labels: AttributeVariable
    xs: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        def one() -> tuple[str, UnresolvedOperand]:
            label = parser.parse_identifier(" for the new map")
            parser.parse_punctuation("=")
            return label, parser.parse_unresolved_operand()

        pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
        self.labels.set(state, strs(k for k, _ in pairs))
        self.xs.set(state, [x for _, x in pairs])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        labels = unstrs(cast(ArrayAttr[StringAttr], self.labels.get(op)))
        state.print_whitespace(printer)
        with printer.in_parens():
            for i, (label, x) in enumerate(zip(labels, self.xs.get(op), strict=True)):
                printer.print_string(f"{', ' if i else ''}{label} = ")
                printer.print_ssa_value(x)


@irdl_custom_directive
class Where(CustomDirective):
    """`over %N as %i at %c`, or a part of it"""

    xs: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        words = (k for k in ("over", "as", "at") if parser.parse_optional_keyword(k))
        self.xs.set(state, [parser.parse_unresolved_operand() for _ in words])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        words = iter((" as ", " at "))
        for x in self.xs.get(op):
            printer.print_string(" over " if isinstance(x.type, SetType) else next(words))
            printer.print_ssa_value(x)


SHORT_FORMS = (Name, Keys, Groups, Count, Ints, Constant, Numbers, Attached, Where)
"""The directives of the formats."""


# ---------------------------------------------------------------- braces


class InterBraces(Braces):
    """Numbers of the default types are bare. What is no property of the op is an attribute."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        pos = parser.pos
        for name, value in parser.parse_optional_attr_dict().items():
            if name in state.properties:
                parser.raise_error(f"{name} is given twice, before the braces and in them", pos)
            (state.properties if name in self.names else state.attributes)[name] = value

    def shown(self, op: IRDLOperation) -> dict[str, Attribute]:
        return super().shown(op) | op.attributes

    def print_value(self, printer: Printer, value: Attribute) -> None:
        plain = number(number_value(value)) if type(value) in (FloatAttr, IntegerAttr) else None
        if plain is not None and plain == value and math.isfinite(number_value(plain)):
            printer.print_string(number_text(plain))
        else:
            printer.print_attribute(value)
