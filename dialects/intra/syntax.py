"""Assembly shared by the ops of `intra`: `mnemonic operands {properties} : result types`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Self, TypeGuard, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntAttr,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    VectorType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarOperandDef,
    VerificationContext,
    result_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..limits import need_short_row

FLOATS = (f32, f64)
INTEGERS = (i32, i64)
ELEMENTS = (*FLOATS, *INTEGERS, i1)


def row_type(dims: Sequence[int], elem: Attribute) -> Attribute:
    """The type of one row inside a nest: a scalar for `()`, else a vector."""
    return VectorType(elem, dims) if dims else elem


def row_dims(t: Attribute) -> tuple[int, ...]:
    """Row dimensions of a scalar or vector type."""
    return tuple(t.get_shape()) if isinstance(t, VectorType) else ()


def length(v: SSAValue) -> int:
    """How many numbers a row holds."""
    return math.prod(row_dims(v.type))


def element_bytes(elem: Attribute) -> int:
    """What one number takes in a buffer; a truth value takes a byte."""
    return 1 if elem == i1 else 4 if elem in (f32, i32) else 8


def element(t: Attribute) -> Attribute:
    """Element type of a scalar, vector or memref type."""
    if isinstance(t, VectorType | MemRefType):
        return t.element_type  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return t


def buffer_type(dims: Sequence[int], elem: Attribute) -> MemRefType[Attribute]:
    """`memref<?x8x64xf32>`: rows with static row dimensions."""
    return MemRefType(elem, (DYNAMIC_INDEX, *dims))


def buffer_dims(v: SSAValue) -> tuple[int, ...]:
    """Row dimensions of a buffer: its shape without the leading row axis."""
    t = v.type
    assert isinstance(t, MemRefType)
    return tuple(t.get_shape()[1:])


def is_buffer_type(t: Attribute) -> TypeGuard[MemRefType[Attribute]]:
    """Whether `t` is that of a buffer."""
    return isinstance(t, MemRefType)


def row_of(buffer: SSAValue) -> Attribute:
    """The type of one row of a buffer."""
    return row_type(buffer_dims(buffer), element(buffer.type))


# ---------------------------------------------------------------- checks


def need(condition: bool, message: str) -> None:
    """Raise a VerifyException with `message` unless `condition` holds."""
    if not condition:
        raise VerifyException(message)


def need_row(t: Attribute, what: str) -> None:
    """Raise a VerifyException unless `t` is the type of a row: a scalar or a static vector."""
    elem = element(t)
    need(
        elem in ELEMENTS and not is_buffer_type(t),
        f"{what} is a row of f32, f64, i32, i64 or i1, not {t}: load it, or cast it",
    )
    need_short_row(row_dims(t))


def need_buffer(t: Attribute, what: str) -> None:
    """Raise a VerifyException unless `t` is `memref<?x..>` with static row dimensions."""
    shape = t.get_shape() if is_buffer_type(t) else ()
    rows_last = bool(shape) and shape[0] == DYNAMIC_INDEX and all(n > 0 for n in shape[1:])
    need(
        rows_last and element(t) in ELEMENTS,
        f"{what} is memref<?x..> with constant row dimensions and rows of f32, f64, i32, i64 or "
        f"i1, not {t}",
    )
    need_short_row(shape[1:])


def one_element(types: Sequence[Attribute]) -> Attribute:
    """The element type that rows share. Raises a VerifyException where they have several."""
    found = list(dict.fromkeys(map(element, types)))
    need(len(found) == 1, f"rows of {' and '.join(map(str, found))} do not mix: add intra.cast")
    return found[0]


# ---------------------------------------------------------------- parsing


def parse_value(parser: Parser) -> SSAValue:
    """An operand whose type is not spelled: it must be defined above."""
    pos = parser.pos
    return resolve(parser, parser.parse_unresolved_operand(), pos)


def resolve(parser: Parser, operand: UnresolvedOperand, pos: int) -> SSAValue:
    """The value that an operand names."""
    values = parser.ssa_values.get(operand.operand_name)
    index = operand.index or 0
    if values is None or index >= len(values):
        parser.raise_error(f"%{operand.operand_name} is used before its definition", pos)
    return parser.resolve_operand(operand, values[index].type)


def parse_values(parser: Parser) -> list[SSAValue]:
    """Zero or more operands, separated by commas."""
    pos = parser.pos
    first = parser.parse_optional_unresolved_operand()
    if first is None:
        return []
    out = [resolve(parser, first, pos)]
    while parser.parse_optional_punctuation(","):
        out.append(parse_value(parser))
    return out


def parse_indexed(parser: Parser) -> list[SSAValue]:
    """`%buffer[%row]`"""
    buffer = parse_value(parser)
    with parser.in_square_brackets():
        return [buffer, parse_value(parser)]


def print_indexed(printer: Printer, buffer: SSAValue, row: SSAValue) -> None:
    """`%buffer[%row]`"""
    printer.print_ssa_value(buffer)
    printer.print_string("[")
    printer.print_ssa_value(row)
    printer.print_string("]")


def items(attribute: Attribute) -> tuple[Attribute, ...] | None:
    """The entries of an array."""
    if not isinstance(attribute, ArrayAttr):
        return None
    return cast("ArrayAttr[Attribute]", attribute).data


def plain_int(attribute: Attribute) -> Attribute:
    """`3` and `[1, 0]` in a dictionary, which the parser reads as i64 numbers, as plain ints."""
    if (array := items(attribute)) is not None:
        return ArrayAttr(plain_int(a) for a in array)
    match attribute:
        case IntegerAttr(value=IntAttr(data=number), type=t) if t == i64:
            return IntAttr(number)
        case _:
            return attribute


def print_property(printer: Printer, value: Attribute) -> None:
    """A property as `parse` reads it: plain ints bare."""
    array = items(value)
    match value:
        case IntAttr(data=number):
            printer.print_string(str(number))
        case _ if array:
            with printer.in_square_brackets():
                printer.print_list(array, lambda a: print_property(printer, a))
        case _:
            printer.print_attribute(value)


def print_properties(printer: Printer, properties: Mapping[str, Attribute]) -> None:
    """` {fn = "add"}`, nothing for no property."""
    if not properties:
        return
    printer.print_string(" {")

    def one(pair: tuple[str, Attribute]) -> None:
        printer.print_string(pair[0])
        if not isinstance(pair[1], UnitAttr):
            printer.print_string(" = ")
            print_property(printer, pair[1])

    printer.print_list(list(properties.items()), one)
    printer.print_string("}")


# ---------------------------------------------------------------- ops


class IntraOp(IRDLOperation):
    """Base of the ops of `intra`.

    Subclasses replace `print_operands` and `parse_operands` where `%a, %b` does not do.
    """

    @classmethod
    def make(
        cls,
        operands: Sequence[SSAValue | Sequence[SSAValue]],
        types: Sequence[Attribute | Sequence[Attribute]] = (),
        **properties: Attribute,
    ) -> Self:
        """Build the op from its operands, result types and properties."""
        defined = cls.get_irdl_definition().operands
        if len(defined) == 1 and isinstance(defined[0][1], VarOperandDef):
            operands = [[v for v in operands if isinstance(v, SSAValue)]]
        op = cls.__new__(cls)
        IRDLOperation.__init__(op, operands=operands, result_types=types, properties=properties)
        return op

    @classmethod
    def parse_operands(cls, parser: Parser) -> Sequence[SSAValue | Sequence[SSAValue]]:
        """The operands in order of their definition, optional ones as lists."""
        return parse_values(parser)

    def print_operands(self, printer: Printer) -> None:
        """Writes what `parse_operands` reads."""
        printer.print_list(self.operands, printer.print_ssa_value)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        pos = parser.pos
        operands = cls.parse_operands(parser)
        names = cls.get_irdl_definition().properties
        properties: dict[str, Attribute] = {}
        for k, v in parser.parse_optional_attr_dict().items():
            if k not in names:
                parser.raise_error(f"{cls.name} has no property {k!r}: drop it", pos)
            properties[k] = cls._as_declared(k, v)
        types: list[Attribute] = []
        if parser.parse_optional_punctuation(":"):
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        try:
            return cls.make(operands, types, **properties)
        except ValueError as error:  # xDSL's, for numbers of operands or results
            parser.raise_error(f"{cls.name}: {error}", pos)

    @classmethod
    def _as_declared(cls, name: str, value: Attribute) -> Attribute:
        """The value as plain ints where the property is declared so."""
        constraint = cls.get_irdl_definition().properties[name].constr
        try:
            constraint.verify(value, VerificationContext())
        except VerifyException:
            return plain_int(value)
        return value

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            self.print_operands(printer)
        hidden = ("operandSegmentSizes",)
        shown = {k: v for k, v in self.properties.items() if k not in hidden}
        print_properties(printer, shown)
        if self.results:
            printer.print_string(" : ")
            printer.print_list(self.results, lambda r: printer.print_attribute(r.type))


class RowOp(IntraOp):
    """A pure op on rows with one result."""

    result = result_def()
    traits = traits_def(Pure())


def inside(op: Operation, parent: type[Operation]) -> Operation | None:
    """The nearest enclosing op of class `parent`, or None."""
    up = op.parent_op()
    while up is not None and not isinstance(up, parent):
        up = up.parent_op()
    return up
