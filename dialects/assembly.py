"""What the assembly formats of both dialects have that xDSL's lack: types that are known from the
operands, and braces in a dialect's own spelling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, OpDef, ParsePropInAttrDict, irdl_op_definition
from xdsl.irdl.declarative_assembly_format import (
    AttrDictDirective,
    CustomDirective,
    FormatDirective,
    FormatProgram,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

KNOWN = "custom<KnownTypes>(type(operands))"
"""Said of the operands: their types are not spelled."""
RESULT = "attr-dict `:` type($result)"
"""How an op with one result ends."""
TYPED = f"{KNOWN} {RESULT}"
"""How an op with operands and one result ends."""


@irdl_custom_directive
class KnownTypes(CustomDirective):
    """Operands have the types of their definitions, which stand above."""

    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        state.operand_types = [[known_type(parser, x) for x in xs or ()] for xs in state.operands]

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        return


def known_type(parser: Parser, operand: UnresolvedOperand) -> Attribute:
    """The type of an operand that is defined above."""
    values = parser.ssa_values.get(operand.operand_name, ())
    if operand.index >= len(values):
        parser.raise_error(f"%{operand.operand_name} is used before its definition", operand.span)
    return values[operand.index].type


@dataclass(frozen=True)
class Braces(FormatDirective, ABC):
    """What `attr-dict` means in the formats of a dialect: `{p = 0.5, site = 0}`, or nothing."""

    names: frozenset[str]
    """The properties that the rest of the format leaves to the braces."""

    def shown(self, op: IRDLOperation) -> dict[str, Attribute]:
        """What an op has in its braces."""
        return {k: v for k, v in op.properties.items() if k in self.names}

    @abstractmethod
    def print_value(self, printer: Printer, value: Attribute) -> None:
        """Writes one value as `parse` reads it."""

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if shown := self.shown(op):
            state.print_whitespace(printer)
            with printer.in_braces():
                printer.print_list(shown.items(), lambda entry: self._print_entry(printer, *entry))

    def _print_entry(self, printer: Printer, name: str, value: Attribute) -> None:
        printer.print_identifier_or_string_literal(name)
        if not isinstance(value, UnitAttr):
            printer.print_string(" = ")
            self.print_value(printer, value)


class FormattedOp(IRDLOperation):
    """An op whose class has an assembly format (`op_definition`)."""

    BRACES: ClassVar[type[Braces]]
    irdl_options = (ParsePropInAttrDict(),)
    custom_directives = (KnownTypes,)


class _Format(FormatProgram):
    """A format that spells or knows all types. What else the op's declaration asks of them is left
    to the verifier, which shows the op."""

    def resolve_constraint_variables(self, state: ParsingState, op_def: OpDef) -> None:
        return


OpT = TypeVar("OpT", bound=FormattedOp)


def op_definition(cls: type[OpT]) -> type[OpT]:
    """xDSL's `irdl_op_definition` for an op with an assembly format in a dialect's spelling."""
    definition = irdl_op_definition(cls).get_irdl_definition()
    assert definition.assembly_format is not None
    steps = FormatProgram.from_str(definition.assembly_format, definition).stmts
    format = _Format(tuple(_spelled(step, cls.BRACES) for step in steps))

    def parse(cls: type[OpT], parser: Parser) -> OpT:
        return format.parse(parser, cls)

    def print(self: OpT, printer: Printer) -> None:
        format.print(printer, self)

    setattr(cls, "parse", classmethod(parse))
    setattr(cls, "print", print)
    return cls


def _spelled(step: FormatDirective, braces: type[Braces]) -> FormatDirective:
    if isinstance(step, AttrDictDirective):
        return braces(frozenset(step.expected_properties))
    return step
