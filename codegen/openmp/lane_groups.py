"""Which row ops act number by number, so that one tile of features serves them together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects.intra import rows
from ...dialects.intra.syntax import length, row_dims
from ..common.c_types import F32, F64, I1, CType
from ..common.scalars import ctype_of
from .row_values import repeats


def featurewise(op: Operation) -> int | None:
    """The row length on which the op acts number by number, None where it mixes or has one
    number.
    """
    kinds = (
        rows.ApplyOp,
        rows.StoreOp,
        rows.TotalOp,
        rows.ConstOp,
        rows.ReshapeOp,
        rows.BroadcastOp,
        rows.SegmentOp,
        rows.MatmulOp,
    )
    if not isinstance(op, kinds) or any(isinstance(r.type, IndexType) for r in op.results):
        return None
    if isinstance(op, rows.SegmentOp):
        return featurewise_segment(op)
    if isinstance(op, rows.MatmulOp):  # for each number all of a row are read, which lies there
        lies = isinstance(op.x.owner, rows.LoadOp) and op.x.owner.otherwise is None
        return length(op.result) if lies and length(op.result) > 1 else None
    values = [
        x for x in (*op.operands, *op.results) if not isinstance(x.type, MemRefType | IndexType)
    ]
    if isinstance(op, rows.ApplyOp) and (few := repeated(op)):
        values = [v for v in values if v not in few]
    wide = {length(v) for v in values} - {1}
    if len(wide) != 1 or not vector_types(values):
        return None
    if isinstance(op, rows.ApplyOp) and not same_features(values):
        return None
    if isinstance(op, rows.BroadcastOp) and length(op.x) not in (1, *wide):
        return None
    if isinstance(op, rows.BroadcastOp) and length(op.x) != 1 and not same_features(values):
        return None
    return wide.pop()


def repeated(op: Operation) -> list[SSAValue]:
    """Operands of which each number is used for several neighbouring ones of the result: what
    each head has, for all its features.
    """
    if not isinstance(op, rows.ApplyOp):
        return []
    into, c = row_dims(op.result.type), ctype_of(op.result)
    several = [x for x in op.xs if 1 < length(x) < length(op.result) and ctype_of(x) is c]
    return [x for x in several if repeats(row_dims(x.type), into) is not None]


def vector_types(values: Sequence[SSAValue]) -> bool:
    """One floating type, masks of it, and scalars of any type that are not mixed into
    vectors.
    """
    types = {ctype_of(v) for v in values}
    floats = types & {F32, F64}
    return len(floats) == 1 and types <= floats | {I1}


def featurewise_segment(op: rows.SegmentOp) -> int | None:
    wide: set[int] = set()
    for o in op.body.block.ops:
        if isinstance(
            o, rows.LookupOp | rows.FirstOp | rows.LengthOp | rows.PositionOp | rows.CountOp
        ):
            continue
        if isinstance(o, rows.LoadOp):
            if is_multiplied(o):
                continue
            if o.otherwise is not None and length(o.result) > 1:
                return None
            if length(o.result) > 1 and ctype_of(o.result) not in (F32, F64):
                return None
            wide |= {length(o.result)}
            continue
        if isinstance(o, rows.YieldOp):
            wide |= {length(v) for v in o.values}
            continue
        if all(
            length(v) == 1 for v in (*o.operands, *o.results) if not isinstance(v.type, IndexType)
        ):
            if isinstance(
                o, rows.ApplyOp | rows.ConstOp | rows.ReshapeOp | rows.CastOp | rows.BroadcastOp
            ):
                continue
            return None
        w = featurewise(o)
        if w is None or isinstance(o, rows.SegmentOp | rows.StoreOp | rows.TotalOp):
            return None
        wide.add(w)
    wide -= {1}
    if len(wide) != 1 or not any(length(r) > 1 for r in op.results):
        return None
    if float_type(op) is None:  # sums of f32 and of f64 rows that share a loop
        return None
    return wide.pop()


def is_multiplied(op: rows.LoadOp) -> bool:
    """Whether a row is read number by number, by products."""
    users = [use.operation for use in op.result.uses]
    return bool(users) and all(isinstance(u, rows.MatmulOp) for u in users) and op.otherwise is None


def float_type(op: Operation) -> CType | None:
    """The floating type of an op's rows of several numbers, None where there is not just one."""
    values = [v for o in op.walk() for v in (*o.operands, *o.results)]
    rows_of_several = (
        v for v in values if not isinstance(v.type, MemRefType | IndexType) and length(v) > 1
    )
    found = {ctype_of(v) for v in rows_of_several} & {F32, F64}
    return found.pop() if len(found) == 1 else None


def same_features(values: Sequence[SSAValue]) -> bool:
    """All rows longer than one number have the same shape up to leading ones."""
    shapes: set[tuple[int, ...]] = set()
    for v in values:
        dims = row_dims(v.type)
        while dims and dims[0] == 1:
            dims = dims[1:]
        if dims:
            shapes.add(dims)
    return len(shapes) == 1
