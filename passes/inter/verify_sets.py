"""verify-sets: the checks of set names and domains that need the whole function."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ...dialects.inter.base import InterOp
from ...dialects.inter.sets import SetEnv
from ...dialects.inter.types import RowsType
from ..function_pass import FunctionPass


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
        defined = set[SSAValue](func.body.block.args)
        for op in func.body.block.ops:
            for i, x in enumerate(op.operands):  # the parser sees to the order in text alone
                if x not in defined:
                    raise VerifyException(
                        f"operand {i} is computed further down, or in another function"
                    )
            defined.update(op.results)
            if isinstance(op, InterOp):
                op.check_sets(env)
    except VerifyException as error:
        raise PassFailedException(f"@{func.sym_name.data}: {op.name}: {error}") from error
    return env


@dataclass(frozen=True)
class VerifySetsPass(FunctionPass):
    """Check sets and domains, which types and ops alone cannot; changes nothing.

    Every set is born once, types are in normal form, every value lives where its op can make it.
    """

    name = "verify-sets"

    def on(self, func: FuncOp) -> None:
        verify_sets(func)
