"""C that asks for rows before they are read.

Products keep the arithmetic units busy and leave memory idle, gathers the other way round. So what
the next block of rows will gather is asked for a cache line at a time while the products of this
block run, and lies in the second-level cache when its turn comes. A loop that gathers asks for
later members by itself (member_loops.py); a product does so for rows that it reads where they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from ...dialects.intra import rows
from ...dialects.intra.bindings import pitch
from ...dialects.intra.gathers import BlockGathers, gathered_at, gathered_beside_products
from ...dialects.intra.syntax import length, row_bytes
from ..common.products import Text
from ..common.scalars import looked_up
from ..common.writer import Writer
from .member_loops import prefetch_row
from .stages import Schedule

if TYPE_CHECKING:
    from .row_code import RowCode


@dataclass(frozen=True)
class NextBlock:
    """What the next block of `block` rows gathers, of which the rows of `most` members are asked
    for.
    """

    gathers: BlockGathers
    block: int
    most: int

    @classmethod
    def of(cls, nest: rows.TraverseOp, schedule: Schedule) -> NextBlock | None:
        """None where the schedule asks for nothing meanwhile."""
        gathers = gathered_beside_products(nest)
        if gathers is None or not schedule.meanwhile:
            return None
        return cls(gathers, schedule.block, schedule.meanwhile)

    def start(self, out: Writer, text: Text, known: bool) -> None:
        """At the start of a block of `rows` from `i0` on: behind it, up to `hi`, comes the next
        one, where that is `known`."""
        begin, end = "i0 + rows", f"min64(i0 + rows + {self.block}, hi)"
        if self.gathers.offsets is not None:
            name = text(self.gathers.offsets)
            begin, end = f"{name}[{begin}]", f"{name}[{end}]"
        out.line("asked coming = {0, 0, 0};")
        if known:
            out.line(f"coming.member = {begin};")
            out.line(f"coming.end = min64({end}, coming.member + {self.most});")

    def meanwhile(self, text: Text) -> str:
        """The statement that asks for the next line of the widest rows, and behind each of those
        for the member's other rows."""
        (first, size), *others = (
            (self.address(text, op, table), row_bytes(op.result))
            for op, table in self.gathers.loads
        )
        rest = " ".join(f"PREFETCH_ROW({at}, {size}, 2);" for at, size in others)
        return f"ASK_FOR_LINE(coming, {first}, {size}, {rest or '(void)0'})"

    def address(self, text: Text, op: rows.LoadOp, table: SSAValue) -> str:
        row = looked_up(table, text(table), "coming.member")
        return f"{text(op.buffer)} + (int64_t){row} * {pitch(op.buffer)}"


def prefetch_gathers(code: RowCode, nest: rows.TraverseOp, ops: Sequence[Operation]) -> None:
    """Ask for what later rows of the nest will gather, in a loop over its rows."""
    gathers = gathered_at(nest.row, ops)
    if not gathers or not code.prefetch:
        return
    ahead = code.out.name("i")
    code.out.line(f"const int64_t {ahead} = min64(i + {code.prefetch}, size - 1);")
    for op, table in gathers:
        row = looked_up(table, code.text(table), ahead)
        prefetch_row(code, op, row, "0", length(op.result))
