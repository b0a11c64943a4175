"""raise, relations: a loop over relations, one masked graph each, becomes one typed aggregation.

    out = root + sum over r of reduce over filter(g, type == r) of f(x[src], W[r])

is what RGCN's forward imports as, with R filters, R products and R sums. One expression over the
typed edges (raising/typed.py) is reduced along (dst, rel), goes through what followed the
reductions (which must keep 0 at 0: a pair without edges is not stored) and is summed along dst. The
relations must be 0 .. R - 1.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.reduce import CountOp, ReduceOp
from ....dialects.inter.types import rows
from ..linear.function import ROW_WISE, LinearFunction
from .typed import Merger, NoMatch, Relation, mask_of


def relation_loop(fn: LinearFunction, op: ValueOp) -> bool:
    """Rewrites the outermost addition of a loop over relations; says whether it did."""
    if not _is_add(op) or any(_is_add(use.operation) for use in op.results[0].uses):
        return False
    terms = _terms(op.results[0], op)
    relations = [r for t in terms if (r := _relation(t)) is not None]
    groups: dict[tuple[SSAValue, SSAValue], list[Relation]] = {}
    for r in relations:
        groups.setdefault((r.graph, r.types), []).append(r)
    for group in groups.values():
        group.sort(key=lambda r: r.number)
        if len(group) > 1 and [r.number for r in group] == list(range(len(group))):
            if (total := _merged(fn, op, group)) is not None:
                done = {r.term for r in group}
                b = fn.before(op)
                for t in reversed([t for t in terms if t not in done]):
                    total = b.add(t, total)
                fn.replace(op.results[0], total)
                return True
    return False


def _is_add(op: Operation) -> bool:
    return isinstance(op, PointwiseOp) and op.SPEC.name == "add"


def _terms(v: SSAValue, root: Operation) -> list[SSAValue]:
    """What is added up, through additions that nobody else reads."""
    out: list[SSAValue] = []
    todo = [v]
    while todo:
        x = todo.pop()
        owner = x.owner
        alone = owner is root or len({use.operation for use in x.uses}) == 1
        if isinstance(owner, PointwiseOp) and _is_add(owner) and alone:
            if all(rows(y).dims == rows(x).dims for y in owner.operands):
                todo += reversed(owner.operands)
                continue
        out.append(x)
    return out


def _relation(term: SSAValue) -> Relation | None:
    """The relation whose edges `term` sums over, where there is one only."""
    found: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    todo = [term]
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, ReduceOp | CountOp):
            found.add(owner.set)
        elif isinstance(owner, ValueOp) and isinstance(owner, ROW_WISE):
            new = [x for x in owner.operands if x not in seen]
            seen.update(new)
            todo += new
    masked = [(s, mask) for s in found if (mask := mask_of(s)) is not None]
    if len(masked) != 1:
        return None
    ((filtered, mask),) = masked
    return Relation(term, filtered, *mask)


def _merged(fn: LinearFunction, op: ValueOp, group: list[Relation]) -> SSAValue | None:
    """The sum of the terms as one expression in front of `op`; None where they differ."""
    before = Merger(fn, fn.before(op), group, dry=True)
    try:
        before.grouped([r.term for r in group])
    except NoMatch:
        return None
    return Merger(fn, fn.before(op), group).total()
