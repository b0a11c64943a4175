"""Parsing and printing of what several ops spell alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from .types import strs, unstrs

Number = FloatAttr | IntegerAttr
"""A constant: a double for float elements, an i64 for integer ones and i1."""


def parse_value(parser: Parser) -> SSAValue:
    """An operand whose type is not spelled: it must be defined above."""
    pos = parser.pos
    operand = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(operand.operand_name)
    index = operand.index or 0
    if values is None or index >= len(values):
        parser.raise_error(f"%{operand.operand_name} is used before its definition", pos)
    return parser.resolve_operand(operand, values[index].type)


def parse_values(parser: Parser) -> list[SSAValue]:
    """`%a, %b, %c`, one or more."""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_value(parser))


def print_values(p: Printer, values: Sequence[SSAValue]) -> None:
    p.print_list(values, p.print_ssa_value)


def parse_keys(parser: Parser) -> ArrayAttr[StringAttr]:
    """`[rel, src]` or nothing."""
    keys = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, parser.parse_identifier
    )
    return strs(keys or ())


def print_keys(p: Printer, keys: ArrayAttr[StringAttr]) -> None:
    if keys.data:
        p.print_string(f"[{', '.join(unstrs(keys))}]")


def parse_along(parser: Parser) -> ArrayAttr[StringAttr]:
    """`along dst`, `along (dst, rel)` or `along ()`."""
    parser.parse_keyword("along")
    keys = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_identifier
    )
    return strs([parser.parse_identifier(" for a map")] if keys is None else keys)


def print_along(p: Printer, keys: ArrayAttr[StringAttr]) -> None:
    names = unstrs(keys)
    text = names[0] if len(names) == 1 else f"({', '.join(names)})"
    p.print_string(f" along {text}")


def parse_over(parser: Parser) -> tuple[SSAValue, ArrayAttr[StringAttr]]:
    """`over %g` or `over %g[rel, src]`."""
    parser.parse_keyword("over")
    return parse_value(parser), parse_keys(parser)


def parse_path(parser: Parser) -> StringAttr:
    """`[src.parent]`"""
    with parser.in_square_brackets():
        return StringAttr(parser.parse_identifier(" for a map"))


def parse_ints(parser: Parser) -> ArrayAttr[IntAttr]:
    """`[1, 0]`"""
    numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return ArrayAttr(IntAttr(i) for i in numbers)


def print_ints(p: Printer, ints: ArrayAttr[IntAttr]) -> None:
    p.print_string(f" [{', '.join(str(i.data) for i in ints)}]")


def ints(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    """Integers as an attribute."""
    return ArrayAttr(IntAttr(i) for i in values)


# ---------------------------------------------------------------- numbers


def number(value: float | int | bool) -> Number:
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


def parse_number(parser: Parser) -> Number:
    """`1.5`, `-3`, `true`, `inf`, `-inf` or `nan`"""
    sign = -1.0 if parser.parse_optional_punctuation("-") else 1.0
    word = parser.parse_optional_keyword_in(("inf", "nan"))
    if word is not None:
        return FloatAttr(sign * float(word), f64)
    value = parser.parse_number(allow_boolean=True)
    return number(sign * value if isinstance(value, float) else int(sign) * value)


def print_number(p: Printer, attr: Number) -> None:
    value = number_value(attr)
    p.print_string(float_text(value) if isinstance(value, float) else str(value))


def print_attributes(p: Printer, attributes: Mapping[str, Attribute]) -> None:
    """` {p = 0.5, site = 0}`; numbers of the default types are bare; nothing for no attribute."""
    if not attributes:
        return
    p.print_string(" {")
    p.print_list(list(attributes.items()), lambda kv: _print_attribute(p, *kv))
    p.print_string("}")


def _print_attribute(p: Printer, key: str, value: Attribute) -> None:
    p.print_string(key if key.replace(".", "_").isidentifier() else f'"{key}"')
    if isinstance(value, UnitAttr):
        return
    p.print_string(" = ")
    plain = number(number_value(value)) if type(value) in (FloatAttr, IntegerAttr) else None
    if plain is not None and plain == value and math.isfinite(number_value(plain)):
        print_number(p, plain)
    else:
        p.print_attribute(value)
