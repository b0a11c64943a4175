"""Narrow rows of a segment's body: numbers that a few members have, of which those of several fit
into one vector.

Attention has them: a score for each edge and head, on which softmax is computed, beside wide rows
that the weights are multiplied with. One edge at a time its exponentials fill one lane in sixteen.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, f32, f64, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from .arithmetic import ApplyOp
from .indices import LookupOp
from .loops import SegmentOp
from .memory import LoadOp
from .syntax import element, element_bytes, length, row_dims

LANE_SUMS = ("sum", "max", "min")
"""Reductions that may be done lane by lane first."""


@dataclass(frozen=True)
class Strip:
    """What of a segment's body is computed for `members` members at a time.

    Each of them has `width` numbers of type `element` in a vector, or one number, in as many
    lanes. `narrow` are the loads and pointwise ops of such rows, in order; no other op of the body
    comes before them.
    """

    element: Attribute
    width: int
    members: int
    narrow: tuple[Operation, ...]

    @property
    def lanes(self) -> int:
        """Numbers of the vector."""
        return self.width * self.members

    def holds(self, v: SSAValue, body: Block) -> bool:
        """Whether the vector has room for a value: one of the narrow rows, or one that is the same
        for all members."""
        inside = v.owner in self.narrow
        return inside or (not is_of(v, body) and is_narrow(v, self.element, self.width))


def strip_of(op: SegmentOp, vector_bytes: int) -> Strip | None:
    """What may be computed for several members at a time in vectors of so many bytes; None where
    nothing may."""
    applied = [o for o in op.body.block.ops if isinstance(o, ApplyOp)]
    for elem in (f32, f64):
        lanes = vector_bytes // element_bytes(elem)
        widths = {length(o.result) for o in applied if element(o.result.type) == elem}
        width = max((w for w in widths if w <= lanes // 2 and lanes % w == 0), default=0)
        found = narrow_ops(op, elem, width) if width else []
        if any(isinstance(o, ApplyOp) for o in found):
            strip = Strip(elem, width, lanes // width, tuple(found))
            return strip if reduces_by_lane(op, strip) else None
    return None


def narrow_ops(op: SegmentOp, elem: Attribute, width: int) -> list[Operation]:
    """The loads and pointwise ops of rows of `width` numbers or one, which read none but each
    other's."""
    body, found = op.body.block, dict[Operation, None]()
    looked_up: set[SSAValue] = {op.position}
    for o in body.ops:
        if isinstance(o, LookupOp) and o.row in looked_up:
            looked_up.add(o.result)
        elif isinstance(o, LoadOp):
            plain = o.otherwise is None and o.row in looked_up
            plain = plain and (width == 1 or element(o.result.type) == elem)
            if plain and is_narrow(o.result, elem, width):
                found[o] = None
        elif isinstance(o, ApplyOp) and same_shapes([*o.xs, o.result]):
            values = [*o.xs, o.result]
            ready = all(x.owner in found or not is_of(x, body) for x in o.xs)
            if ready and all(is_narrow(v, elem, width) for v in values):
                found[o] = None
    return list(found)


def is_of(v: SSAValue, body: Block) -> bool:
    """Whether a member has a value of its own."""
    return v.owner is body or (isinstance(v.owner, Operation) and v.owner.parent is body)


def is_narrow(v: SSAValue, elem: Attribute, width: int) -> bool:
    """Whether a row fits into the lanes of a member, or is one number. Truth values of several
    lanes never lie in memory."""
    if isinstance(v.type, IndexType) or length(v) not in (1, width):
        return False
    made = isinstance(v.owner, ApplyOp)
    return element(v.type) == elem or (element(v.type) == i1 and (made or length(v) == 1))


def same_shapes(values: list[SSAValue]) -> bool:
    """Whether all rows of several numbers have one shape, up to dimensions of one."""
    shapes = (tuple(n for n in row_dims(v.type) if n != 1) for v in values)
    return len({s for s in shapes if s}) <= 1


def reduces_by_lane(op: SegmentOp, strip: Strip) -> bool:
    """Whether all narrow rows that are reduced may be reduced lane by lane."""
    pairs = zip(op.yielded.values, op.kinds, strict=True)
    body = op.body.block
    return all(k.data in LANE_SUMS for v, k in pairs if strip.holds(v, body))
