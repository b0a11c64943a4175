"""What the classes of ops of both dialects have that xDSL's lack: in their assembly formats types
that are known from the operands, and braces in a dialect's own spelling; operands and results that
are found at once, and quick answers to what passes ask of ops by the million."""

from __future__ import annotations

import functools
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self, TypeVar

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    OpDef,
    ParsePropInAttrDict,
)
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
from xdsl.irdl.operations import (
    BeforeVariadicSingleAccessor,
    VarIRConstruct,
    get_accessors_from_op_def,
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


class OpClass(ABCMeta):
    """Classes without virtual subclasses: `isinstance` looks at the bases alone, which takes a
    third of the time."""

    __instancecheck__ = type.__instancecheck__


class FormattedOp(IRDLOperation, metaclass=OpClass):
    """An op whose class has an assembly format (`op_definition`)."""

    BRACES: ClassVar[type[Braces]]
    irdl_options = (ParsePropInAttrDict(),)
    custom_directives = (KnownTypes,)

    # of an op that is equal to itself alone, as xDSL's, but without a call of Python
    __hash__ = object.__hash__

    @classmethod
    def read_format(cls) -> FormatProgram:
        """The format of the class, which is read when it is first asked for. Raises TypeError for a
        class without one."""
        raise TypeError(f"{cls.__name__} has no assembly format: define it with @op_definition")

    def verify_further(self) -> None:
        """What the op's class asks beyond its declaration: `verify_` as the class spells it, which
        xDSL puts behind a check of the declaration."""

    @classmethod
    def of_parts(
        cls,
        operands: Iterable[SSAValue | Sequence[SSAValue] | None],
        types: Iterable[Attribute | Sequence[Attribute]],
        properties: Mapping[str, Attribute | None],
        attributes: Mapping[str, Attribute | None],
    ) -> Self:
        """An op without regions; what is None is left out. Whether it has what its class declares
        is left to the verifier: xDSL's constructor asks at each op."""
        given = [x for x in operands if x is not None]
        return cls.create(
            operands=[v for x in given for v in ([x] if isinstance(x, SSAValue) else x)],
            result_types=[t for x in types for t in ([x] if isinstance(x, Attribute) else x)],
            properties={k: v for k, v in properties.items() if v is not None},
            attributes={k: v for k, v in attributes.items() if v is not None},
        )


class _Operand(BeforeVariadicSingleAccessor):
    """The operand at an index in front of all variadic ones. xDSL's accessors make a view of all
    operands at each access."""

    def __get__(self, obj: Operation, objtype: type | None = None) -> SSAValue:
        return obj._operands[self.idx]  # pyright: ignore[reportPrivateUsage]


class _Result(BeforeVariadicSingleAccessor):
    """The same of results."""

    def __get__(self, obj: Operation, objtype: type | None = None) -> OpResult:
        return [*obj.results][self.idx]  # indexing is a call of Python


class _Region(BeforeVariadicSingleAccessor):
    """The same of regions."""

    def __get__(self, obj: Operation, objtype: type | None = None) -> Region:
        return obj.regions[self.idx]


_QUICK = {
    VarIRConstruct.OPERAND: _Operand,
    VarIRConstruct.RESULT: _Result,
    VarIRConstruct.REGION: _Region,
}


class _Format(FormatProgram):
    """A format that spells or knows all types. What else the op's declaration asks of them is left
    to the verifier, which shows the op."""

    def resolve_constraint_variables(self, state: ParsingState, op_def: OpDef) -> None:
        return


OpT = TypeVar("OpT", bound=FormattedOp)


def op_definition(cls: type[OpT]) -> type[OpT]:
    """xDSL's `irdl_op_definition` for an op with an assembly format in a dialect's spelling, which
    is read when an op is first parsed or printed: most ops are not."""
    setattr(cls, "verify_further", cls.verify_)
    definition = OpDef.from_pyrdl(cls)
    text, definition.assembly_format = definition.assembly_format, None
    assert text is not None
    for name, given in get_accessors_from_op_def(definition, cls.verify_).items():
        quick = type(given) is BeforeVariadicSingleAccessor
        new = _QUICK[given.construct](given.construct, given.idx) if quick else given
        setattr(cls, name, new)
    definition.assembly_format = text

    @functools.cache
    def format() -> _Format:
        steps = FormatProgram.from_str(text, definition).stmts
        return _Format(tuple(_spelled(step, cls.BRACES) for step in steps))

    def parse(cls: type[OpT], parser: Parser) -> OpT:
        return format().parse(parser, cls)

    def print(self: OpT, printer: Printer) -> None:
        format().print(printer, self)

    setattr(cls, "read_format", staticmethod(format))
    setattr(cls, "parse", classmethod(parse))
    setattr(cls, "print", print)
    return cls


def _spelled(step: FormatDirective, braces: type[Braces]) -> FormatDirective:
    if isinstance(step, AttrDictDirective):
        return braces(frozenset(step.expected_properties))
    return step
