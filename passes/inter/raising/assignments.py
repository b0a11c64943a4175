"""raise, assignments: rows written for one relation after the other become rows computed at once.

    for r in range(R): out[type == r] = f(x[type == r], W[r])

is imported as R filters, R values, and R choices between what was written and what was there. As
the masks exclude each other, one expression over the typed rows (raising/typed.py) is all of it:
for edges, a softmax within each relation is a softmax along (dst, rel); for nodes, a layer for each
type is a product with the type's weight. Rows of another type keep what they had.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.reduce import ReduceOp
from ....dialects.inter.shapes import ReshapeOp
from ....dialects.inter.structure import AttachOp, FilterOp
from ....dialects.inter.types import rows
from ....dialects.signature import is_returned
from ..linear.function import LinearFunction
from .typed import Merger, NoMatch, Relation, comparison, mask_of


@dataclass
class Written:
    """`where(type == r, sum of x over filter(g, type == r) along parent, before)`; x is the
    relation's term."""

    relation: Relation
    before: SSAValue


def relation_assignments(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites the last choice of a loop over relations; says whether it did."""
    if _written(op) is None or any(_goes_on(use.operation, op) for use in op.results[0].uses):
        return False
    chain = _chain(op)
    group = sorted((w.relation for w in chain), key=lambda r: r.number)
    if len(group) < 2 or [r.number for r in group] != list(range(len(group))):
        return False
    values = [r.term for r in group]
    try:
        Merger(fn, fn.before(op), group, dry=True).on_edges(values)
    except NoMatch:
        return False
    merger = Merger(fn, fn.before(op), group)
    if merger.whole and is_returned(op.results[0]):
        return False  # the value may have fewer rows than a result has to have
    written = merger.on_edges(values)
    if not merger.whole:
        written = _among_others(merger, written, chain[-1].before)
    fn.replace(op.results[0], written)
    return True


def _written(op: Operation) -> Written | None:
    """What one relation writes, if `op` chooses between that and what was there."""
    if not isinstance(op, PointwiseOp) or op.SPEC.name != "where":
        return None
    condition, value, before = op.operands
    if isinstance(condition.owner, ReshapeOp):
        condition = condition.owner.x
    scatter = value.owner
    if not isinstance(scatter, ReduceOp) or scatter.kind.data != "sum" or scatter.over.keys:
        return None
    mask, compared = mask_of(scatter.set), comparison(condition)
    if mask is None or mask[1:] != compared or scatter.along_keys != ("parent",):
        return None
    if any(rows(x).dims != op.type.dims for x in (value, before, scatter.x)):
        return None
    return Written(Relation(scatter.x, scatter.set, *mask), before)


def _goes_on(op: Operation, before: ValueOp) -> bool:
    """Whether `op` is the next choice of the chain."""
    written = _written(op)
    return written is not None and written.before is before.results[0]


def _chain(last: ValueOp) -> list[Written]:
    """The choices from the last one back, through values that nobody else reads, as long as they
    are about the same types."""
    out: list[Written] = []
    op: Operation = last
    while (written := _written(op)) is not None:
        first = out[0].relation if out else written.relation
        r = written.relation
        if (r.graph, r.types) != (first.graph, first.types):
            break
        out.append(written)
        if not written.before.has_one_use() or not isinstance(written.before.owner, Operation):
            break
        op = written.before.owner
    return out


def _among_others(merger: Merger, written: SSAValue, before: SSAValue) -> SSAValue:
    """The rows of the known relations in their places, what was there in all others."""
    b, typed = merger.b, merger.edges.owner
    assert isinstance(typed, AttachOp)
    known = typed.set.owner
    assert isinstance(known, FilterOp) and known.mask is not None
    written = b.reduce("sum", written, merger.edges, ("parent.parent",))
    mask = b.reshape(known.mask, (1,) * len(rows(before).dims))
    return b.pointwise("where", mask, written, before)
