"""Ops on indices inside a nest: look-ups in tables, and indices and sizes as numbers."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, i64
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import Pure

from ..assembly import RESULT, TYPED, op_definition
from .bindings import INDEX32, INDEX64
from .syntax import IntraOp, RowOp, need


@op_definition
class LookupOp(IntraOp):
    """`intra.lookup %table[%row]`: an entry of an index table, as an index."""

    name = "intra.lookup"
    table = operand_def(INDEX32)
    row = operand_def(IndexType)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = f"$table `[` $row `]` {TYPED}"


class NumberOp(RowOp):
    """An index or a size as a number."""

    def verify_(self) -> None:
        t = self.result.type
        need(t == i64, f"{self.name} gives i64, not {t}: use intra.cast for another type")


@op_definition
class LengthOp(NumberOp):
    """`intra.length %offsets[%row]`: the number of rows in a group."""

    name = "intra.length"
    offsets = operand_def(INDEX64)
    row = operand_def(IndexType)
    assembly_format = f"$offsets `[` $row `]` {TYPED}"


@op_definition
class FirstOp(IntraOp):
    """Row 0: where values of the unit domain lie."""

    name = "intra.first"
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = RESULT


@op_definition
class PositionOp(NumberOp):
    """A row's own number, or a look-up's."""

    name = "intra.position"
    row = operand_def(IndexType)


@op_definition
class CountOp(NumberOp):
    """A size."""

    name = "intra.count"
    size = operand_def(IndexType)
