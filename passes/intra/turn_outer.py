"""Which operand of an outer product is read in vectors: `schedule` asks here before it decides.

A tile of outer products multiplies numbers of the left operand with vectors of the right one, and
the last vector of a row is computed whole. So a sum of 64 by 7 takes 64 vectors of 16 lanes this
way and 7 times 4 the other way round; the products and the order they are added in are the same.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ...dialects.intra.products import OuterOp
from ...dialects.intra.rows import LoadOp, TraverseOp
from ...dialects.intra.syntax import element, element_bytes

EXCHANGED = str.maketrans("kf", "fk")


def turn_outer_products(nest: TraverseOp, vector_bytes: int) -> None:
    """Exchange the operands of those outer products of `nest` that take fewer vectors of
    `vector_bytes` then."""
    for op in nest.body.block.ops:
        if not isinstance(op, OuterOp):
            continue
        if is_shorter_turned(op, vector_bytes // element_bytes(element(op.a.type))):
            op.operands[0], op.operands[1] = op.b, op.a
            data, out = op.spec.data.split("->")
            op.properties["spec"] = StringAttr(f"{data}->{out.translate(EXCHANGED)}")


def is_shorter_turned(op: OuterOp, lanes: int) -> bool:
    """Whether fewer vectors are multiplied with the operands exchanged. Loaded rows that end within
    a vector would have to be copied for that, which costs more."""
    n = op.sizes()
    k, f = n["k"], n["f"]
    copied = k % lanes != 0 and is_loaded(op.a)
    return f * -(-k // lanes) < k * -(-f // lanes) and not copied


def is_loaded(v: SSAValue) -> bool:
    """Whether rows lie in a buffer."""
    return isinstance(v.owner, LoadOp)
