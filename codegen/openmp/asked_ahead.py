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
from ...dialects.intra.syntax import length, row_bytes
from ..common.products import Text
from ..common.scalars import looked_up
from ..common.writer import Writer
from .member_loops import gathered_at, prefetch_row

if TYPE_CHECKING:
    from .row_code import RowCode

FAR_BYTES = 128 * 1024
"""What is asked for beyond a block, at most: a part of the second-level cache."""


@dataclass(frozen=True)
class NextBlock:
    """The rows that the members of a block gather: `gathers` are loads with the tables that say
    which row, the widest first. The members are those of the groups that `offsets` begin, or the
    rows of the nest themselves.
    """

    gathers: Sequence[tuple[rows.LoadOp, SSAValue]]
    offsets: SSAValue | None
    block: int

    @classmethod
    def of(
        cls, nest: rows.TraverseOp, segments: Sequence[rows.SegmentOp], block: int
    ) -> NextBlock | None:
        """What a nest with products gathers for each of its rows; None where that is nothing.
        `segments` are those over the groups of its rows; the first one's groups count."""
        if not any(isinstance(op, rows.MatmulOp | rows.OuterOp) for op in nest.body.block.ops):
            return None
        offsets = segments[0].offsets if segments else None
        if offsets is None:
            found = gathered_at(nest.row, nest.walk())
        else:
            same = [op for op in segments if op.offsets is offsets]
            found = [g for op in same for g in gathered_at(op.body.block.args[0], op.walk())]
        once = {(op.buffer, table): (op, table) for op, table in found}
        widest = sorted(once.values(), key=lambda g: -row_bytes(g[0].result))
        return cls(widest, offsets, block) if widest else None

    def start(self, out: Writer, text: Text, known: bool) -> None:
        """At the start of a block of `rows` from `i0` on: behind it, up to `hi`, comes the next
        one, where that is `known`."""
        begin, end = "i0 + rows", f"min64(i0 + rows + {self.block}, hi)"
        if self.offsets is not None:
            name = text(self.offsets)
            begin, end = f"{name}[{begin}]", f"{name}[{end}]"
        most = max(FAR_BYTES // sum(row_bytes(op.result) for op, _ in self.gathers), 1)
        out.line("asked coming = {0, 0, 0};")
        if known:
            out.line(f"coming.member = {begin};")
            out.line(f"coming.end = min64({end}, coming.member + {most});")

    def meanwhile(self, text: Text) -> str:
        """The statement that asks for the next line of the widest rows, and behind each of those
        for the member's other rows."""
        (first, size), *others = (
            (self.address(text, op, table), row_bytes(op.result)) for op, table in self.gathers
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
