"""In which order a program would have the edges of a graph.

What a layer computes of both ends of an edge is done edge by edge: scores of attention that are
products, messages of perceptrons. Where edges lie by the node that they are summed for, the rows of
one end are read in order, and what is stored for edges is summed where it lies. A program whose
arguments and results say nothing of single edges gives the same numbers in any order, but for the
rounding of sums along other maps.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ...dialects.inter.base import StructureOp
from ...dialects.inter.reduce import ReduceOp, SoftmaxOp
from ...dialects.inter.shapes import ContractOp, RowReduceOp
from ...dialects.inter.types import RowsType, SetType
from ...dialects.inter.values import AtOp
from ...dialects.signature import arguments, body_ops, results

DERIVED = frozenset({"inter.filter", "inter.loops", "inter.union", "inter.attach"})
"""Ops that make of sets others whose rows go with theirs."""
NUMBERED = frozenset({"inter.dropout", "inter.iota"})
"""Ops whose rows follow from their numbers."""


def edge_orders(func: FuncOp) -> dict[str, str]:
    """By the names of set arguments the map by which their rows should lie: where any order will
    do, all sums are along that map, and products are made of what it and another lead to."""
    ops = body_ops(func)
    found: dict[str, str] = {}
    for name, arg, _ in arguments(func):
        if not isinstance(arg.type, SetType) or len(arg.type.maps) < 2:
            continue
        family = _family(ops, arg)
        if family is None or not _any_order(func, ops, arg, family):
            continue
        label = _summed_along(ops, family)
        if label in arg.type.map_dict() and _multiplies_ends(ops, family, label):
            found[name] = label
    return found


def _family(ops: Sequence[Operation], arg: SSAValue) -> set[str] | None:
    """The names of a set and those that are made of it; None where one has other rows."""
    made: set[SSAValue] = {arg}
    for op in ops:
        if isinstance(op, StructureOp) and not made.isdisjoint(op.operands):
            if op.name not in DERIVED:
                return None
            made.update(op.results)
    return {x.type.label for x in made if isinstance(x.type, SetType)}


def _any_order(func: FuncOp, ops: Sequence[Operation], arg: SSAValue, family: set[str]) -> bool:
    """Whether nothing that goes in or comes out tells one row of the family from another."""
    given = [a for _, a, _ in arguments(func) if a is not arg]
    if any(_over(x, family) for x in (*given, *(v for _, v, _ in results(func)))):
        return False
    sets = [a.type for a in given if isinstance(a.type, SetType)]
    if not family.isdisjoint(m.codomain for t in sets for m in t.map_dict().values()):
        return False
    return not any(op.name in NUMBERED and _over(op.results[0], family) for op in ops)


def _over(x: SSAValue, family: set[str]) -> bool:
    return isinstance(x.type, RowsType) and x.type.dom.set in family


def _summed_along(ops: Sequence[Operation], family: set[str]) -> str:
    """The one map along which rows of the family are reduced; none where there are several."""
    paths = {
        op.along_keys for op in ops if isinstance(op, ReduceOp | SoftmaxOp) and _over(op.x, family)
    }
    paths.discard(())
    (path, *others) = paths or {()}
    return path[0] if len(path) == 1 and not others else ""


def _multiplies_ends(ops: Sequence[Operation], family: set[str], label: str) -> bool:
    """Whether rows that are made of what this map and another lead to are multiplied by a matrix,
    or their numbers added up."""
    reads: dict[SSAValue, frozenset[str]] = {}
    for op in ops:
        if not op.results or not _over(op.results[0], family):
            continue
        found = frozenset[str]().union(*(reads.get(x, frozenset()) for x in op.operands))
        if isinstance(op, AtOp):
            found |= {op.path.data}
        reads[op.results[0]] = found
        if isinstance(op, ContractOp | RowReduceOp) and label in found and len(found) > 1:
            return True
    return False
