"""unify-sets: structure ops that make equal sets become one, and all types follow its name.

Every structure op gives its result a name of its own, which is part of the types of all rows on it,
so common subexpression elimination can never merge two: a three-layer GCN would build its
normalised graph three times. Equal values that a structure op reads (two masks, say) and equal
values of the merged sets are merged on the way.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.inter.base import StructureOp, ValueOp
from ...dialects.inter.types import RowsType, SetType
from ..function_pass import FunctionPass
from .verify_sets import verify_sets


def unify_sets(func: FuncOp) -> int:
    """Merges equal sets of `func`, to the first of them; returns how many went. Linear in ops."""
    verify_sets(func)
    merged = 0
    while names := _merge(func):  # once more: a merge may make arguments' types equal
        merged += len(names)
    return merged


def _merge(func: FuncOp) -> dict[str, str]:
    """One walk over the function; gives the names that went and those that took their place."""
    names: dict[str, str] = {}
    known: dict[Hashable, Operation] = {}
    for op in list(func.body.block.ops):
        for v in op.results:
            _rename(v, names)
        if not isinstance(op, StructureOp | ValueOp):
            continue
        kept = known.setdefault(_key(op), op)
        if kept is op:
            continue
        if isinstance(op, StructureOp) and isinstance(kept, StructureOp):
            names[op.set_type.label] = kept.set_type.label
        Rewriter.replace_op(op, [], [kept.results[0]])
    for v in [*func.body.block.args, *(v for op in func.body.block.ops for v in op.results)]:
        _rename(v, names)  # a signature may name a set that is born in the body
    func.update_function_type()
    return names


def _key(op: StructureOp | ValueOp) -> Hashable:
    """What two ops share when their results are equal, whatever name a set has."""
    result: Attribute = op.results[0].type
    if isinstance(result, SetType):
        result = result.renamed({result.label: "_"})
    properties = frozenset(op.properties.items())
    return op.name, tuple(op.operands), properties, frozenset(op.attributes.items()), result


def _rename(v: SSAValue, names: dict[str, str]) -> None:
    if not names or not isinstance(v.type, RowsType | SetType):
        return
    if (t := v.type.renamed(names)) != v.type:
        Rewriter.replace_value_with_new_type(v, t)


@dataclass(frozen=True)
class UnifySetsPass(FunctionPass):
    """Merges structure ops that make equal sets, and the equal values on them."""

    name = "unify-sets"

    def on(self, func: FuncOp) -> None:
        unify_sets(func)
