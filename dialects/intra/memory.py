"""Ops that read and write rows of buffers."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr, i1
from xdsl.ir import BlockArgument, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from ..assembly import KNOWN, TYPED, op_definition
from .bindings import (
    InputOp,
    PeerOp,
    TableOp,
    domain_text,
    known_domain,
    root,
)
from .syntax import IntraOp, element, need, row_of

TOTALS = ("sum", "max", "min", "mul")
"""What a reduction over all rows may be."""


@op_definition
class LoadOp(IntraOp):
    """`intra.load %buffer[%row] (else %y)`: one row; `else` where the row is -1.

    Pure, because every buffer is written whole by one nest before it is read.
    """

    name = "intra.load"
    buffer = operand_def(MemRefType)
    row = operand_def(IndexType)
    otherwise = opt_operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$buffer `[` $row `]` (`else` $otherwise^)? {TYPED}"

    def verify_(self) -> None:
        want = row_of(self.buffer)
        need_row_of(self.buffer, self.result, "the result")
        if self.otherwise is not None:
            have = self.otherwise.type
            need(have == want, lambda: f"`else` must be a row of the buffer, {want}, not {have}")
        if (rows := in_order(self.buffer)) is not None:
            need(
                isinstance(self.row, BlockArgument),
                f"the rows of {rows.buffer} lie in the order of groups: read them at a position",
            )


def in_order(buffer: SSAValue) -> InputOp | None:
    """The input that a buffer is, or is a view of, where its rows lie in the order of groups."""
    owner = root(buffer).owner
    return owner if isinstance(owner, InputOp) and owner.along is not None else None


@op_definition
class StoreOp(IntraOp):
    """`intra.store %value, %buffer[%row]`: write the nest's own row of a buffer.

    A nest that visits rows in the order of groups stores the member that it is at: every row once.
    """

    name = "intra.store"
    value = operand_def()
    buffer = operand_def(MemRefType)
    row = operand_def(IndexType)
    assembly_format = f"$value `,` $buffer `[` $row `]` {KNOWN} attr-dict"

    def verify_(self) -> None:
        need_row_of(self.buffer, self.value, "the value")
        need_writable(self.buffer)


@op_definition
class TotalOp(IntraOp):
    """`intra.total %value, %buffer {kind = "sum"}`: reduce over all rows of the nest into row 0.

    No row gives 0 (`mul`: 1). Partial results of row chunks are combined in the order of the rows,
    so two runs agree bit for bit.
    """

    name = "intra.total"
    value = operand_def()
    buffer = operand_def(MemRefType)
    kind = prop_def(StringAttr)
    assembly_format = f"operands {KNOWN} attr-dict"

    def verify_(self) -> None:
        kind = self.kind.data
        need(kind in TOTALS, f"kind {kind!r} is none of {', '.join(TOTALS)}")
        need_row_of(self.buffer, self.value, "the value")
        need_number(self.value)
        need_writable(self.buffer)
        need_single_row(self.buffer, "a total")


# ---------------------------------------------------------------- checks


def need_row_of(buffer: SSAValue, value: SSAValue, what: str) -> None:
    """Raises VerifyException unless `value` is a row of the buffer."""
    want = row_of(buffer)
    need(
        value.type == want,
        lambda: f"{what} is a row of {buffer.type}: {want}, not {value.type}",
    )


def need_number(value: SSAValue) -> None:
    """Raises VerifyException for truth values, which are not reduced."""
    need(element(value.type) != i1, "truth values are not reduced: cast them to numbers first")


def need_writable(buffer: SSAValue) -> None:
    """Raises VerifyException for a buffer that the caller owns or that is a constant."""
    op = root(buffer).owner
    fixed = isinstance(op, TableOp | PeerOp) or (isinstance(op, InputOp) and op.gives is None)
    need(not fixed, "inputs and tables are only read: write to an intra.output or intra.alloc")


def need_single_row(buffer: SSAValue, what: str) -> None:
    """Raises VerifyException where a buffer is known to have a row for each row of a domain."""
    at = known_domain(buffer)
    have = domain_text(at[0]) if at is not None else ""
    need(at is None or at[0] is None, f"{what} needs a buffer of a single row, this is over {have}")
