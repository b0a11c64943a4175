"""Rules of canonicalization for slices: one of what rows were put together from, or repeated, reads
the parts. A model that computes head by head, or tower by tower, so asks for no more than each of
them needs, and products find the sums and concatenations that they can be done in parts of.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from .base import Row
from .rewrite import Rewrite, Rule, producer
from .shapes import BroadcastOp, ConcatOp, SliceOp
from .types import rows


def _slice(rw: Rewrite, x: SSAValue, dim: int, places: range) -> SSAValue:
    """`x` at places of a dimension; `x` itself where these are all."""
    t = rows(x)
    if places == range(t.dims[dim]):
        return x
    numbers = {"dim": dim, "lo": places.start, "hi": places[-1] + 1}
    if places.step != 1:
        numbers["step"] = places.step
    props = {name: IntegerAttr(n, i64) for name, n in numbers.items()}
    dims = (*t.dims[:dim], len(places), *t.dims[dim + 1 :])
    return rw.make(SliceOp, [x], props, Row(dims, t.elem), t.dom)


def _of_slice(op: SliceOp, rw: Rewrite) -> SSAValue | None:
    """Two along one dimension."""
    inner = producer(op.x, SliceOp)
    dim, *bounds = op.bounds
    if inner is None or inner.bounds[0] != dim:
        return None
    return _slice(rw, inner.x, dim, range(*inner.bounds[1:])[slice(*bounds)])


def _of_part(op: SliceOp, rw: Rewrite) -> SSAValue | None:
    """Within one operand of a concatenation, or of whole ones."""
    joined = producer(op.x, ConcatOp)
    dim, lo, hi, step = op.bounds
    if joined is None or joined.axis != dim:
        return None
    last = range(lo, hi, step)[-1] + 1
    edges = [0, *accumulate(rows(x).dims[dim] for x in joined.xs)]
    for x, (begin, end) in zip(joined.xs, pairwise(edges), strict=True):
        if begin <= lo and last <= end:
            return _slice(rw, x, dim, range(lo - begin, last - begin, step))
    if step != 1 or lo not in edges or hi not in edges:
        return None
    whole = list(joined.xs)[edges.index(lo) : edges.index(hi)]
    return rw.alike(joined, whole, op.type.dims)


def _across(op: SliceOp, rw: Rewrite) -> SSAValue | None:
    """Along another dimension than that of a concatenation which nothing reads as a whole."""
    joined = producer(op.x, ConcatOp)
    dim, *bounds = op.bounds
    if joined is None or joined.axis == dim:
        return None
    if any(not isinstance(use.operation, SliceOp) for use in op.x.uses):
        return None
    parts = [_slice(rw, x, dim, range(*bounds)) for x in joined.xs]
    return rw.alike(joined, parts, op.type.dims)


def _of_broadcast(op: SliceOp, rw: Rewrite) -> SSAValue | None:
    """Of what is repeated, fewer times, or of the row that is."""
    wide = producer(op.x, BroadcastOp)
    if wide is None:
        return None
    dim, *bounds = op.bounds
    have = rows(wide.x).dims
    place = dim - (len(rows(op.x).dims) - len(have))
    x = wide.x
    if place >= 0 and have[place] != 1:
        x = _slice(rw, x, place, range(*bounds))
    return rw.alike(wide, [x], op.type.dims)


SLICE_RULES: tuple[Rule, ...] = (_of_slice, _of_part, _across, _of_broadcast)
