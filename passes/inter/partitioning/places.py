"""New maps whose numbers are known to be those of a path of maps, or places in a union."""

from __future__ import annotations

from collections import Counter

from xdsl.ir import SSAValue

from ....dialects.inter.pointwise import POINTWISE_OPS, AddOp
from ....dialects.inter.structure import AttachOp, FilterOp, LoopsOp, UnionOp
from ....dialects.inter.types import SetType, set_name, set_type
from ....dialects.inter.values import IndexOp, IotaOp, SizeOp


def path_of(op: AttachOp, x: SSAValue) -> str | None:
    """The path of maps that a new map `x` of `op` is; None where it is something else."""
    s = x.owner
    if isinstance(s, IndexOp) and set_name(s.set) == set_name(op.set):
        return s.path.data
    if isinstance(s, IotaOp) and set_name(s.set) == set_name(op.set):
        return "dst" if has_each_loop(op.set) else None
    return None


def has_each_loop(s: SSAValue) -> bool:
    """Whether a set has one loop of each node, in the order of nodes: those that a filter keeps
    where the others have left before loops of all nodes came."""
    kept = s.owner
    if not isinstance(kept, FilterOp) or not keeps_loops(kept):
        return False
    union = kept.set.owner
    parts = [p.owner for p in union.sets] if isinstance(union, UnionOp) else []
    loops = [p for p in parts if isinstance(p, LoopsOp)]
    others = [p for p in parts if not isinstance(p, LoopsOp)]
    return len(loops) == 1 and all(isinstance(p, FilterOp) and p.no_loops for p in others)


def keeps_loops(op: FilterOp) -> bool:
    """Whether a filter keeps of edges those whose ends are one node."""
    mask = None if op.mask is None else op.mask.owner
    if mask is None or not isinstance(mask, POINTWISE_OPS["eq"]):
        return False
    ends = [x.owner for x in mask.operands]
    found = [(set_name(e.set), e.path.data) for e in ends if isinstance(e, IndexOp)]
    t = set_type(op.set)
    maps = t.map_dict()
    if sorted(found) != [(t.label, "dst"), (t.label, "src")]:
        return False
    return maps["src"].codomain == maps["dst"].codomain


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
