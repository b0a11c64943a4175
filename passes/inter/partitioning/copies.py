"""Rows of ghosts that follow from other rows of ghosts: what is cheap is computed for them again,
so that fewer rows cross."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ....dialects.inter.base import ValueOp
from ....dialects.inter.pointwise import PointwiseOp
from ....dialects.inter.sets import SetEnv
from ....dialects.inter.shapes import (
    BroadcastOp,
    ConcatOp,
    ContractOp,
    ReshapeOp,
    RowReduceOp,
    SliceOp,
    TransposeOp,
)
from ....dialects.inter.types import ONE, Dom, rows, set_name
from ....dialects.inter.values import AtOp, CastOp, StopOp
from ....dialects.signature import body_ops

ROW_BY_ROW = (
    PointwiseOp,
    BroadcastOp,
    CastOp,
    ConcatOp,
    ReshapeOp,
    RowReduceOp,
    SliceOp,
    StopOp,
    TransposeOp,
)


def read_by_edges(
    func: FuncOp, env: SetEnv, nodes: Collection[str], far: Collection[str]
) -> set[SSAValue]:
    """The values on nodes that edges read at another end than their own, by one of the maps `far`,
    or nodes by a map, so that rows of ghosts are moved."""
    found: set[SSAValue] = set()
    for op in body_ops(func):
        if isinstance(op, AtOp) and (
            op.path.data.split(".")[0] in far or set_name(op.set) in nodes
        ):
            if env.codomain(set_name(op.set), op.path.data) in nodes:
                found.add(op.x)
    return found


def follows(v: SSAValue, is_there: Callable[[SSAValue], bool]) -> bool:
    """Whether rows of a value take little work where some others are: an attention score of a
    node, where the node's features are moved."""
    op = v.owner
    if not isinstance(op, ValueOp) or not is_cheap(op):
        return False
    on_rows = [x for x in op.operands if rows(x).dom != ONE]
    return bool(on_rows) and all(is_there(x) or follows(x, is_there) for x in on_rows)


def is_cheap(op: ValueOp) -> bool:
    """Whether an op works row by row, and takes about an operation a number of its rows."""
    if not isinstance(op, (*ROW_BY_ROW, ContractOp)):
        return False
    if any(rows(x).dom not in (ONE, Dom(op.type.dom.set)) for x in op.operands):
        return False
    return not isinstance(op, ContractOp) or _multiplications(op) <= _widest(op)


def _multiplications(op: ContractOp) -> int:
    sizes: dict[str, int] = {}
    for term, x in zip(op.letters()[:2], op.operands, strict=True):
        sizes |= dict(zip(term, rows(x).dims, strict=True))
    return math.prod(sizes.values())


def _widest(op: ContractOp) -> int:
    return max(math.prod(rows(x).dims) for x in op.operands)
