"""verify-sets: the checks of set names and domains that need the whole function."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ..dialects.inter.base import InterOp
from ..dialects.inter.sets import SetEnv
from ..dialects.inter.types import RowsType


def verify_sets(func: FuncOp) -> SetEnv:
    """Checks a function and returns its sets. Raises PassFailedException, with the name of the
    function and the op."""
    op: Operation = func
    try:
        env = SetEnv.of(func)
        env.verify_names()
        for v in func.body.block.args:
            if isinstance(v.type, RowsType):
                env.check_type(v.type)
        for op in func.body.block.ops:
            if isinstance(op, InterOp):
                op.check_sets(env)
    except VerifyException as error:
        raise PassFailedException(f"@{func.sym_name.data}: {op.name}: {error}") from error
    return env


@dataclass(frozen=True)
class VerifySetsPass(ModulePass):
    """Check sets and domains, which types and ops alone cannot; changes nothing.

    Every set is born once, types are in normal form, every value lives where its op can make it.
    """

    name = "verify-sets"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.walk():
            if isinstance(func, FuncOp) and func.body.blocks:
                verify_sets(func)
