"""Numbers that tell where in a union a row of one of its parts lies."""

from __future__ import annotations

from collections import Counter

from xdsl.ir import SSAValue

from ....dialects.inter.pointwise import AddOp
from ....dialects.inter.structure import AttachOp
from ....dialects.inter.types import SetType, set_name, set_type
from ....dialects.inter.values import IndexOp, SizeOp


def place_in_union(op: AttachOp, x: SSAValue, union: SSAValue) -> tuple[str, int] | None:
    """The path of maps and the part of `union` where a new map `x` of `op` is
    `index %g[path] + size %part_0 + ..`, the sizes those of all parts before; None where it is
    something else. Parts that are not cut are no parts of such a union."""
    indices, sizes = _summands(x)
    if not isinstance(union.type, SetType) or len(indices) != 1:
        return None
    index, before = indices[0], Counter[str]()
    if set_name(index.set) != set_name(op.set):
        return None
    end = set_type(index.set).map_dict().get(index.path.data)
    for i, part in enumerate(union.type.part_names):
        if before == sizes and end is not None and end.codomain == part:
            return index.path.data, i
        before[part] += 1
    return None


def _summands(x: SSAValue) -> tuple[list[IndexOp], Counter[str]]:
    """The maps and the sizes that a number is the sum of; no map where it is anything else."""
    todo, indices, sizes = [x], list[IndexOp](), Counter[str]()
    while todo:
        match todo.pop().owner:
            case AddOp() as add:
                todo += add.operands
            case IndexOp() as index:
                indices.append(index)
            case SizeOp() as size:
                sizes[set_name(size.set)] += 1
            case _:
                return [], sizes
    return indices, sizes
