"""C for the loop over the members of a group: its bounds, where a long group is reduced in pieces,
and rows that are asked for some members before they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ...dialects.intra import rows
from ...dialects.intra.bindings import pitch
from ...dialects.intra.gathers import gathered_at
from ...dialects.intra.syntax import length
from ..common.scalars import ctype_of, looked_up
from .lane_groups import is_multiplied
from .row_values import Place, Scalar

if TYPE_CHECKING:
    from .row_code import RowCode
    from .strips import StripCode


@contextmanager
def each_member(
    code: RowCode,
    op: rows.SegmentOp,
    strip: StripCode | None,
    base: str,
    width: Callable[[rows.LoadOp], int],
) -> Generator[None]:
    """A loop over the members of a group, of whose rows `width` numbers are read from `base` on."""
    p = code.out.name("p")
    offsets, row = code.text(op.offsets), code.text(op.row)
    begin, end = f"{offsets}[{row}]", f"{offsets}[{row} + 1]"
    guard = ""
    if code.hubs is not None and code.hubs.segment is op:
        if code.hubs.piece is not None:
            begin, end = code.hubs.piece
        else:
            guard = "if (hub < 0) "
    code.place[op.body.block.args[0]] = Scalar(p)
    if gathers_ahead(code, op):  # decided once a row: an edge has no time for it
        inside = f"{end} + {code.prefetch} <= {offsets}_total"
        code.out.line(f"const int64_t {p}_ahead = {inside} ? {code.prefetch} : 0;")
    each = code.out.block(f"{guard}for (int64_t {p} = {begin}; {p} < {end}; ++{p})")
    with each if strip is None else strip.loop(p, begin, end, guard):
        if strip is None or strip.rest:
            prefetch_rows(code, op, f"({p} + {p}_ahead)", base, width)
        yield


def gathers_ahead(code: RowCode, op: rows.SegmentOp) -> list[tuple[rows.LoadOp, SSAValue]]:
    """The gathers of the segment whose rows are asked for some edges before: where its edges
    are those of the nest's own row, and later ones those of later rows. The longest first: the
    other way round a backward pass of attention (rows of 64 numbers, and three of 4) took 29 ms
    instead of 18.
    """
    stage = op.parent_op()
    nest = stage.parent_op() if isinstance(stage, rows.StageOp) else None
    if not code.prefetch or not isinstance(nest, rows.TraverseOp) or op.row is not nest.row:
        return []
    found = gathered_at(op.body.block.args[0], op.body.block.ops)
    return sorted(found, key=lambda g: -length(g[0].result))


def prefetch_rows(
    code: RowCode, op: rows.SegmentOp, later: str, base: str, width: Callable[[rows.LoadOp], int]
) -> None:
    """Ask for the rows that a later edge, at position `later`, will gather, `width` numbers
    from `base` on.
    """
    for o, table in gathers_ahead(code, op):
        row = looked_up(table, code.text(table), later)
        at = ("0", length(o.result)) if is_multiplied(o) else (base, width(o))
        prefetch_row(code, o, row, *at)


def prefetch_row(code: RowCode, op: rows.LoadOp, row: str, base: str, width: int) -> None:
    """Ask for `width` numbers of a row from `base` on."""
    size = ctype_of(op.result).bytes
    for k in range(min(-(-width * size // 64), 8)):
        at = f"(int64_t){row} * {pitch(op.buffer)}"
        terms = [code.text(op.buffer), at, base, str(k * 64 // size)]
        code.out.line(f"__builtin_prefetch({' + '.join(t for t in terms if t != '0')});")


def gather_hub(code: RowCode, op: rows.SegmentOp, add: Callable[[int, str], None]) -> None:
    """Where the row is a hub, add the results of its pieces in order; `add` gets a result's number
    and address.
    """
    plan = code.hubs
    if plan is None or plan.segment is not op or plan.piece is not None:
        return
    pieces = "int64_t q = hubs[hub].first; q < hubs[hub].first + hubs[hub].count; ++q"
    with code.out.block(f"if (hub >= 0) for ({pieces})"):
        for k, (name, width) in enumerate(plan.partials):
            add(k, f"{name} + q * {width}")


def reset_extremes(code: RowCode, op: rows.SegmentOp, accs: Mapping[int, Place]) -> None:
    """Of no rows, the greatest and the least are 0."""
    offsets, row = code.text(op.offsets), code.text(op.row)
    for k, acc in accs.items():
        if op.kinds.data[k].data in ("max", "min"):
            with code.out.block(f"if ({offsets}[{row}] == {offsets}[{row} + 1])"):
                code.reset(op.results[k], acc)
