"""Single numbers of a segment's body: those of several members fit into one vector.

Attention has them: a score for each edge, on which softmax is computed, beside the rows that the
weights are multiplied with. One edge at a time its exponential fills one lane in sixteen.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, f32, f64, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from .arithmetic import ApplyOp, DropoutOp
from .indices import LookupOp
from .loops import SegmentOp
from .memory import LoadOp
from .syntax import element, element_bytes, length

LANE_SUMS = ("sum", "max", "min")
"""Reductions that may be done lane by lane first."""


@dataclass(frozen=True)
class Strip:
    """What of a segment's body is computed for `members` members at a time, in a vector of
    `element`s with a lane for each of them.

    `narrow` are the loads, pointwise ops and dropouts of single numbers, in order, which read none
    but each other's.
    """

    element: Attribute
    members: int
    narrow: tuple[Operation, ...]

    def holds(self, v: SSAValue, body: Block) -> bool:
        """Whether the vector has a value: one of the narrow numbers, or one that is the same for
        all members."""
        inside = v.owner in self.narrow
        return inside or (not is_of(v, body) and is_narrow(v, self.element))


def strip_of(op: SegmentOp, vector_bytes: int) -> Strip | None:
    """What may be computed for several members at a time in vectors of so many bytes; None where
    nothing may."""
    for elem in (f32, f64):
        found = tuple(narrow_ops(op, elem))
        if any(isinstance(o, ApplyOp | DropoutOp) for o in found):
            strip = Strip(elem, vector_bytes // element_bytes(elem), found)
            return strip if reduces_by_lane(op, strip) else None
    return None


def narrow_ops(op: SegmentOp, elem: Attribute) -> list[Operation]:
    """The loads, pointwise ops and dropouts of single numbers, which read none but each other's."""
    body, found = op.body.block, dict[Operation, None]()
    looked_up: set[SSAValue] = {op.position}

    def is_ready(x: SSAValue) -> bool:
        return (x.owner in found or not is_of(x, body)) and is_narrow(x, elem)

    for o in body.ops:
        if isinstance(o, LookupOp) and o.row in looked_up:
            looked_up.add(o.result)
        elif isinstance(o, LoadOp):
            plain = o.otherwise is None and o.row in looked_up
            if plain and is_narrow(o.result, elem):
                found[o] = None
        elif isinstance(o, ApplyOp):
            if all(is_ready(x) for x in o.xs) and is_narrow(o.result, elem):
                found[o] = None
        elif isinstance(o, DropoutOp):
            plain = o.column is None and o.row in looked_up and not is_of(o.key, body)
            if plain and is_ready(o.x) and element(o.x.type) == elem:
                found[o] = None
    return list(found)


def is_of(v: SSAValue, body: Block) -> bool:
    """Whether a member has a value of its own."""
    return v.owner is body or (isinstance(v.owner, Operation) and v.owner.parent is body)


def is_narrow(v: SSAValue, elem: Attribute) -> bool:
    """Whether a row is one number, or truth value, with a lane beside numbers of a type."""
    single = not isinstance(v.type, IndexType) and length(v) == 1
    return single and element(v.type) in (elem, i1)


def reduces_by_lane(op: SegmentOp, strip: Strip) -> bool:
    """Whether all narrow numbers that are reduced may be reduced lane by lane."""
    pairs = zip(op.yielded.values, op.kinds, strict=True)
    body = op.body.block
    return all(k.data in LANE_SUMS for v, k in pairs if strip.holds(v, body))
