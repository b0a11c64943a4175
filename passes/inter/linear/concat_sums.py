"""reorder-linear, concat_sums: a sum of concatenations whose parts do not meet is one.

The gradient of a slice is a concatenation with zeros. Where a row is cut into several slices
(queries, keys and values of one product), the gradients are added: each number meets zeros only.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.shapes import ConcatOp
from ....dialects.inter.types import rows
from ....dialects.inter.values import ConstOp
from .function import LinearFunction

Piece = tuple[int, int, SSAValue]
"""Where a part of a row begins and ends, and its value."""


def join_pieces(fn: LinearFunction, op: ValueOp) -> bool:
    """Joins the parts of two added concatenations; says whether it did."""
    if not isinstance(op, PointwiseOp) or op.SPEC.name != "add":
        return False
    left, right = (x.owner for x in op.operands)
    if not isinstance(left, ConcatOp) or not isinstance(right, ConcatOp):
        return False
    if left.axis != right.axis or left.type.dims != right.type.dims:
        return False
    b, axis = fn.before(op), left.axis
    pieces = _joined(b, [*_pieces(left), *_pieces(right)])
    if pieces is None:
        return False
    fn.replace(op.results[0], _filled(b, pieces, op, axis))
    return True


def _pieces(op: ConcatOp) -> list[Piece]:
    """The parts that are not zeros."""
    out: list[Piece] = []
    end = 0
    for x in op.xs:
        begin, end = end, end + rows(x).dims[op.axis]
        if not (isinstance(x.owner, ConstOp) and x.owner.number == 0):
            out.append((begin, end, x))
    return out


def _joined(b: Builder, pieces: list[Piece]) -> list[Piece] | None:
    """Parts in order, those at one place added; None where parts overlap otherwise."""
    pieces.sort(key=lambda p: p[:2])
    for (begin, end, _), (other, stop, _) in zip(pieces, pieces[1:], strict=False):
        if other < end and (begin, end) != (other, stop):
            return None
    out: list[Piece] = []
    for begin, end, x in pieces:
        if out and out[-1][:2] == (begin, end):
            out[-1] = begin, end, b.add(out[-1][2], x)
        else:
            out.append((begin, end, x))
    return out


def _filled(b: Builder, pieces: list[Piece], op: ValueOp, axis: int) -> SSAValue:
    """The concatenation of parts with zeros between them."""
    dims, parts, at = op.type.dims, list[SSAValue](), 0
    for begin, end, x in [*pieces, (dims[axis], dims[axis], None)]:
        if begin > at:
            gap = (*dims[:axis], begin - at, *dims[axis + 1 :])
            parts.append(b.const(0.0, gap, op.type.elem))
        if x is not None:
            parts.append(x)
        at = end
    return parts[0] if len(parts) == 1 else b.concat(parts, axis)
