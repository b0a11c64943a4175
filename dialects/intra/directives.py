"""The parts of intra's assembly formats: braces, and operands in a form of their own."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, IRDLOperation, VerificationContext
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    FormatDirective,
    OperandVariable,
    ParsingState,
    PrintingState,
    RegionVariable,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..assembly import Braces
from .schedule import Decisions


@irdl_custom_directive
class RowOf(CustomDirective):
    """`[%i of %n]`, or nothing"""

    at: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.at.set_empty(state)
        if parser.parse_optional_punctuation("["):
            index = parser.parse_unresolved_operand()
            parser.parse_keyword("of")
            self.at.set(state, (index, parser.parse_unresolved_operand()))
            parser.parse_punctuation("]")

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        at = self.at.get(op)
        if at:
            with printer.in_square_brackets():
                printer.print_list(at, printer.print_ssa_value, " of ")


@irdl_custom_directive
class Loop(CustomDirective):
    """`%i in OVER { .. }`: the body has the index `%i`."""

    over: FormatDirective
    body: RegionVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        index = parser.parse_argument(expect_type=False).resolve(IndexType())
        parser.parse_keyword("in")
        self.over.parse(parser, state)
        self.body.set(state, parser.parse_region([index]))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        body = self.body.get(op)
        state.print_whitespace(printer)
        printer.print_ssa_value(body.block.args[0])
        printer.print_string(" in")
        self.over.print(printer, state, op)
        state.print_whitespace(printer)
        printer.print_region(body, print_entry_block_args=False)


@irdl_custom_directive
class Group(CustomDirective):
    """`%offsets[%i] ["sum", "max"]`, with `in_pieces` and `in_strips` where they are said"""

    offsets: OperandVariable
    row: OperandVariable
    kinds: AttributeVariable
    in_pieces: AttributeVariable
    in_strips: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.offsets.parse(parser, state)
        with parser.in_square_brackets():
            self.row.parse(parser, state)
        self.kinds.parse(parser, state)
        for name, said in self.how().items():
            if parser.parse_optional_keyword(name):
                said.set(state, UnitAttr())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.offsets.print(printer, state, op)
        with printer.in_square_brackets():
            printer.print_ssa_value(self.row.get(op))
        self.kinds.print(printer, state, op)
        for name, said in self.how().items():
            if said.get(op) is not None:
                printer.print_string(f" {name}")

    def how(self) -> dict[str, AttributeVariable]:
        """How the group is reduced, by keyword."""
        return {"in_pieces": self.in_pieces, "in_strips": self.in_strips}


@irdl_custom_directive
class Schedule(CustomDirective):
    """`{schedule = #intra.schedule<..>}` (or `#intra.grid<..>`), `pipeline = ..`, or nothing"""

    schedule: AttributeVariable
    pipeline: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        pos = parser.pos
        given = parser.parse_optional_attr_dict()
        schedule, pipeline = given.pop("schedule", None), given.pop("pipeline", None)
        known = isinstance(schedule, Decisions | None) and isinstance(pipeline, Decisions | None)
        if given or not known:
            parser.raise_error(
                "a nest has two properties, `schedule = #intra.schedule<..>` and `pipeline = "
                "#intra.pipeline<..>`",
                pos,
            )
        if schedule is not None:
            self.schedule.set(state, schedule)
        if pipeline is not None:
            self.pipeline.set(state, pipeline)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        both = {"schedule": self.schedule.get(op), "pipeline": self.pipeline.get(op)}
        if shown := {k: v for k, v in both.items() if v is not None}:
            state.print_whitespace(printer)
            printer.print_attr_dict(shown)


# ---------------------------------------------------------------- braces


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


class IntraBraces(Braces):
    """Bare integers are plain ints where the property is declared so; other numbers have a type."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        pos = parser.pos
        declared = state.op_type.get_irdl_definition().properties
        for name, value in parser.parse_optional_attr_dict().items():
            if name not in self.names:
                parser.raise_error(f"{state.op_type.name} has no property {name!r}: drop it", pos)
            state.properties[name] = _as_declared(declared[name].constr, value)

    def print_value(self, printer: Printer, value: Attribute) -> None:
        array = items(value)
        match value:
            case IntAttr(data=number):
                printer.print_string(str(number))
            case _ if array:
                with printer.in_square_brackets():
                    printer.print_list(array, lambda a: self.print_value(printer, a))
            case _:
                printer.print_attribute(value)


def _as_declared(constraint: AttrConstraint, value: Attribute) -> Attribute:
    """The value as plain ints where the property is declared so."""
    try:
        constraint.verify(value, VerificationContext())
    except VerifyException:
        return plain_int(value)
    return value
