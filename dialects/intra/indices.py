"""Ops on indices inside a nest: look-ups in tables, and indices and sizes as numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from .bindings import INDEX32, INDEX64
from .syntax import IntraOp, RowOp, need, parse_indexed, print_indexed


class IndexedOp(IntraOp):
    """`mnemonic %buffer[%row]`"""

    traits = traits_def(Pure())

    @classmethod
    def parse_operands(cls, parser: Parser) -> Sequence[SSAValue | Sequence[SSAValue]]:
        return parse_indexed(parser)

    def print_operands(self, printer: Printer) -> None:
        print_indexed(printer, self.operands[0], self.operands[1])


@irdl_op_definition
class LookupOp(IndexedOp):
    """`intra.lookup %table[%row]`: an entry of an index table, as an index."""

    name = "intra.lookup"
    table = operand_def(INDEX32)
    row = operand_def(IndexType)
    result = result_def(IndexType)


class NumberOp(RowOp):
    """An index or a size as a number."""

    def verify_(self) -> None:
        t = self.result.type
        need(t == i64, f"{self.name} gives i64, not {t}: use intra.cast for another type")


@irdl_op_definition
class LengthOp(IndexedOp, NumberOp):
    """`intra.length %offsets[%row]`: the number of rows in a group."""

    name = "intra.length"
    offsets = operand_def(INDEX64)
    row = operand_def(IndexType)


@irdl_op_definition
class FirstOp(IntraOp):
    """Row 0: where values of the unit domain lie."""

    name = "intra.first"
    result = result_def(IndexType)
    traits = traits_def(Pure())


@irdl_op_definition
class PositionOp(NumberOp):
    """A row's own number, or a look-up's."""

    name = "intra.position"
    row = operand_def(IndexType)


@irdl_op_definition
class CountOp(NumberOp):
    """A size."""

    name = "intra.count"
    size = operand_def(IndexType)
