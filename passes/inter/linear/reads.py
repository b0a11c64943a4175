"""reorder-linear, reads: a row-wise op on values that are all read through one map is done before
the read.

`contract(at src x, W)` is `at src (contract(x, W))` for a `W` on unit, and `at f a * at f b` is
`at f (a * b)`: once per node, not once per edge, and one row is gathered in place of two. The read
ends up as late as it can, in front of the reduction.

Kept where it would cost: for ops that widen the row (an outer product, a broadcast), for maps whose
codomain is larger than their domain (the rows that a loss reads), and on maps that are not onto for
ops that may be infinite, or have an infinite derivative, on rows that nothing reads.
"""

from __future__ import annotations

from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.shapes import ConcatOp, ContractOp, ReshapeOp
from ....dialects.inter.types import rows, set_name
from ....dialects.inter.values import AtOp
from ....dialects.signature import is_returned
from .function import (
    ROW_WISE,
    LinearFunction,
    at_key,
    at_of,
    is_product,
    is_unit,
    moves_before_read,
    plain_at,
    width,
)


def sink_reads(fn: LinearFunction, op: ValueOp) -> bool:
    """Moves `op` before the read of its operands; says whether it did."""
    if not isinstance(op, ROW_WISE):
        return False
    reads = [a for x in op.operands if (a := plain_at(x)) is not None and not is_unit(a.x)]
    others = [x for x in op.operands if plain_at(x) is None]
    if not reads or len({at_key(fn.env, a) for a in reads}) > 1:
        return False
    if any(not is_unit(x) for x in others) or _widens(op, reads) or not _pays(fn, op, reads[0]):
        return False
    b = fn.before(op)
    operands = [a.x if (a := plain_at(x)) is not None else x for x in op.operands]
    groups = [operands] if isinstance(op, PointwiseOp | ConcatOp) else operands
    inner = b.emit(type(op), groups, op.properties, op.row())
    inner.name_hint = op.results[0].name_hint
    fn.replace(op.results[0], at_of(b, reads[0], inner))
    return True


def _widens(op: ValueOp, reads: list[AtOp]) -> bool:
    """Whether rows get wider before they are gathered without a product over their numbers."""
    if isinstance(op, ContractOp) and len(reads) == 1:
        return not is_product(op)
    return width(op.results[0]) > sum(width(a.x) for a in reads)


def _pays(fn: LinearFunction, op: ValueOp, read: AtOp) -> bool:
    safe = fn.facts.smooth(op) and fn.facts.finite_units(op)
    if not safe and "onto" not in fn.env.flags(set_name(read.set), read.path.data):
        return False
    if isinstance(op, ReshapeOp) and op.type.dims == rows(op.x).dims:
        return False  # it stores a value on another domain
    return moves_before_read(fn, read)


def drop_read_of_unit(fn: LinearFunction, op: ValueOp) -> bool:
    """A read of a single row is that row."""
    if not isinstance(op, AtOp) or op.otherwise is not None or not is_unit(op.x):
        return False
    if is_returned(op.results[0]):
        return False
    op.results[0].replace_all_uses_with(op.x)
    return True
