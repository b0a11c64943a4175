"""Buffers of what other ranks publish, read where it lies."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, StringAttr
from xdsl.irdl import operand_def, prop_def, result_def

from ..assembly import TYPED, op_definition
from .bindings import DomainAttr, PeerOp, known_domain, need_reducible
from .syntax import need, need_buffer


@op_definition
class PeerRowsOp(PeerOp):
    """`intra.peer_rows {plan = "N_sent to N_ghost", domain = #intra.domain<N_ghost>}`: for each row
    of the domain the one of another rank that the plan would bring there, read where it lies.
    """

    name = "intra.peer_rows"
    plan = prop_def(StringAttr)
    domain = prop_def(DomainAttr)
    result = result_def(MemRefType)

    def verify_(self) -> None:
        need_buffer(self.result.type, "a buffer")

    def known_domain(self) -> tuple[DomainAttr | None] | None:
        return (self.domain,)


@op_definition
class PeerTotalsOp(PeerOp):
    """`intra.peer_totals %a {kind = "sum"}`: for each number of `%a`, of which all ranks have as
    many rows, the sum (max, min, mul) of what ranks publish in its place, in their order, read
    where it lies.
    """

    name = "intra.peer_totals"
    buffer = operand_def(MemRefType)
    kind = prop_def(StringAttr)
    result = result_def(MemRefType)
    assembly_format = f"$buffer {TYPED}"

    def verify_(self) -> None:
        have, want = self.result.type, self.buffer.type
        need(have == want, f"totals have the type of what is added up, {want}, not {have}")
        need_reducible(self.kind.data, self.buffer)

    def known_domain(self) -> tuple[DomainAttr | None] | None:
        return known_domain(self.buffer)
