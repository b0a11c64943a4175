"""reorder-linear, masks: dropout of a few numbers per edge is its mask times these.

Attention that is dropped, and its gradient `dropout(G . z)`, have the same mask: 0 or 1 / (1 - p),
which the key, the site and the edge alone decide. As a factor beside others it lets these leave the
sums that they are in: the sum of a softmax, and the inner product with the gradient of the
destination (linear/inner.py).

Only of what is finite: what is dropped is 0, whatever it was. A wide mask would have to be stored.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.reduce import DropoutOp
from ....dialects.inter.types import rows
from .function import LinearFunction, is_unit, width

WIDEST = 16
"""Numbers of a mask: what heads an edge has."""


def set_mask_apart(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites one dropout; says whether it did."""
    if not isinstance(op, DropoutOp) or op.set is None or is_unit(op.x):
        return False
    if width(op.x) > WIDEST:
        return False
    if not fn.sizes.is_edges(op.type.dom) or not fn.facts.finite(op.x):
        return False
    mask = _made_before(op) or _mask(fn, op)
    fn.replace(op.results[0], fn.before(op).mul(mask, op.x))
    return True


def _mask(fn: LinearFunction, op: DropoutOp) -> SSAValue:
    b = fn.before(op)
    ones = b.const(1.0, op.type.dims, rows(op.x).elem)
    p, site = op.probability, op.site_number
    return b.dropout(ones, op.key, op.set, p, site, op.numbers, op.column)


def _made_before(op: DropoutOp) -> SSAValue | None:
    """The mask, where another dropout has it: that of the forward half."""
    for use in op.key.uses:
        other = use.operation
        if not isinstance(other, DropoutOp) or not is_unit(other.x) or other.type != op.type:
            continue
        alike = other.operands[1:] == op.operands[1:] and other.properties == op.properties
        if alike and other.is_before_in_block(op):
            return other.results[0]
    return None
