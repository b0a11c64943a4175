"""reorder-linear, levels: a sum over pairs of sums or means over edges is one sum over the edges.

RGCN averages the messages of each relation at a destination and adds up the relations. Written in
two levels, a row per (destination, relation) pair is stored and read again; in one, each message is
multiplied by one number, `1 / count` of its pair, which depends on the graph only.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.builder import Builder
from ....dialects.inter.reduce import ReduceOp
from ....dialects.inter.types import rows
from .function import LinearFunction, linear_reduce


def join_levels(fn: LinearFunction, op: ValueOp) -> bool:
    """Joins a sum with the reduction that it alone reads; says whether it did."""
    outer = linear_reduce(op.results[0])
    if outer is None or outer.kind.data != "sum" or not outer.along_keys:
        return False
    inner = linear_reduce(outer.x)
    if inner is None or not _is_level(outer, inner):
        return False
    b = fn.before(op)
    x = inner.x if inner.kind.data == "sum" else _weighted(b, inner)
    fn.replace(op.results[0], b.reduce("sum", x, inner.over, outer.along_keys))
    return True


def _is_level(outer: ReduceOp, inner: ReduceOp) -> bool:
    """Whether `outer` alone reads the groups of `inner`, pairs of one set, and adds them up."""
    groups = inner.type.dom
    pairs = len(groups.keys) > 1 and groups == outer.over and groups.set == inner.over.set
    return pairs and inner.over != groups and inner.results[0].has_one_use()


def _weighted(b: Builder, mean: ReduceOp) -> SSAValue:
    """What a mean adds up, each divided by the number of rows in its group."""
    t = rows(mean.x)
    count = b.count(mean.over, mean.along_keys, t.elem)
    one = b.const(1.0, (), t.elem)
    share = b.div(one, b.pointwise("maximum", count, one))
    return b.mul(b.reshape(share, (1,) * len(t.dims)), mean.x)
