"""dce-sets: removes ops whose results nobody needs, and keeps sets that only types still name.

xDSL's dce (and the clean-up inside canonicalize and cse) sees uses of values only. A set may be
needed without one: `inter.sized` makes the set that a map of another one goes to. An attach that is
`checked` stays for what it checks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.inter.base import StructureOp, ValueOp
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.structure import is_check
from ...dialects.inter.types import sets_of
from ..function_pass import FunctionPass
from .verify_sets import verify_sets


def dce_sets(func: FuncOp) -> int:
    """Erases the dead value and structure ops of `func`; returns how many. Linear in ops."""
    env = verify_sets(func)
    ops = list(func.body.block.ops)
    roots = [op for op in ops if not isinstance(op, StructureOp | ValueOp) or is_check(op)]
    live = _live(func, env, roots)
    dead = [op for op in ops if op not in live]
    for op in reversed(dead):
        Rewriter.erase_op(op)
    return len(dead)


def _live(func: FuncOp, env: SetEnv, roots: Iterable[Operation]) -> set[Operation]:
    """The ops that `roots` and the arguments need."""
    live: set[Operation] = set()
    todo: list[Operation | SSAValue] = [*roots, *func.body.block.args]
    while todo:
        item = todo.pop()
        if isinstance(item, Operation):
            if item not in live:
                live.add(item)
                todo += [*item.operands, *item.results]
            continue
        owners = [item.owner] + [env.value(n).owner for n in sets_of(item.type)]
        todo += [o for o in owners if isinstance(o, Operation) and o not in live]
    return live


@dataclass(frozen=True)
class DceSetsPass(FunctionPass):
    """Removes ops whose results are not needed; a set that a type names is needed."""

    name = "dce-sets"

    def on(self, func: FuncOp) -> None:
        dce_sets(func)
