"""Rows of other ranks in a nest.

One is loaded as any other, or it is *issued*, on its way while other work is done, and *awaited*:
what remote reads take is hidden behind local ones (MGG, Wang et al., OSDI 2023).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition, operand_def, result_def, traits_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..assembly import KNOWN, RESULT, TYPED, op_definition
from .bindings import root
from .peers import PeerRowsOp, PeerTotalsOp
from .syntax import IntraOp, need, row_of


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!intra.token<vector<8xf32>>`: a row on its way."""

    name = "intra.token"
    row: Attribute

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [parser.parse_attribute()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.row)


@op_definition
class IssueOp(IntraOp):
    """`%t = intra.issue %peers[%row] : !intra.token<vector<8xf32>>`: begin to read a row of another
    rank, at a member of a group. It is awaited once, in the same body, and its slot is free then.
    """

    name = "intra.issue"
    buffer = operand_def(MemRefType)
    row = operand_def(IndexType)
    result = result_def(TokenType)
    traits = traits_def(Pure())
    assembly_format = f"$buffer `[` $row `]` {TYPED}"

    def verify_(self) -> None:
        need(of_one_rank(self.buffer), "rows of other ranks are issued, those here are loaded")
        want = TokenType(row_of(self.buffer))
        need(self.result.type == want, f"a row of the buffer on its way is {want}")
        uses = [u.operation for u in self.result.uses]
        need(len(uses) == 1, f"a row that is issued is awaited once, not {len(uses)} times")
        need(uses[0].parent is self.parent, "a row is awaited in the body that issues it")


@op_definition
class AwaitOp(IntraOp):
    """`%v = intra.await %t : vector<8xf32>`: the row that was issued."""

    name = "intra.await"
    token = operand_def(TokenType)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = f"$token {KNOWN} {RESULT}"

    @property
    def issue(self) -> IssueOp:
        """Where the row was issued."""
        op = self.token.owner
        assert isinstance(op, IssueOp)
        return op

    def verify_(self) -> None:
        t = self.token.type
        need(
            isinstance(t, TokenType) and t.row == self.result.type,
            f"what {t} brings is not {self.result.type}",
        )


def is_remote(buffer: SSAValue) -> bool:
    """Whether the rows of a buffer lie with other ranks."""
    return of_one_rank(buffer) or totals_of(buffer) is not None


def of_one_rank(buffer: SSAValue) -> bool:
    """Whether each row of a buffer is one that another rank has."""
    return isinstance(root(buffer).owner, PeerRowsOp)


def totals_of(buffer: SSAValue) -> PeerTotalsOp | None:
    """What shows totals over all ranks in the rows of a buffer; None where others do."""
    op = root(buffer).owner
    return op if isinstance(op, PeerTotalsOp) else None
