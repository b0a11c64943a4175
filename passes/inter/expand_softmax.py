"""expand-softmax: softmax becomes exp(x - max) / sum, with maximum and sum once a group.

After autodiff, which knows a shorter gradient of softmax than of its parts. Written out, the
division leaves sums over the group (reorder-linear), so that one pass over the edges adds up both
exp and exp times the messages, and plan-saves may keep the two numbers a group in place of one an
edge.

The sum of a group that has rows is 1 or more, as its largest row gives exp(0). Raised to 1 it stays
what it is, and becomes a divisor that is not 0 for empty groups either.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.inter.builder import Builder
from ...dialects.inter.pointwise import POINTWISE_OPS
from ...dialects.inter.reduce import SoftmaxOp
from ...dialects.inter.sets import SetEnv
from ...dialects.signature import body_ops
from ..function_pass import FunctionPass


def expand_softmax(func: FuncOp, env: SetEnv) -> None:
    """Writes out every softmax that is stored on the rows it runs over."""
    for op in body_ops(func):
        if isinstance(op, SoftmaxOp) and op.type.dom == op.over:
            _expand(op, env)


def _expand(op: SoftmaxOp, env: SetEnv) -> None:
    b = Builder(env, InsertPoint.before(op))
    over, along = op.over, op.along_keys

    def read(v: SSAValue) -> SSAValue:
        return b.at(over.set, along[0], v) if len(along) == 1 else v

    def named(v: SSAValue, suffix: str) -> SSAValue:
        v.name_hint = f"{op.results[0].name_hint or 'softmax'}_{suffix}"
        return v

    # exp and div are not Total: they stay on the rows that softmax runs over
    top = named(b.reduce("max", op.x, over, along), "max")
    e = named(b.emit(POINTWISE_OPS["exp"], [[b.sub(op.x, read(top))]], dom=over), "exp")
    total = b.reduce("sum", e, over, along)
    total = named(b.pointwise("maximum", total, b.const(1.0, (), op.type.elem)), "sum")
    p = b.emit(POINTWISE_OPS["div"], [[e, read(total)]], dom=over)
    p.name_hint = op.results[0].name_hint
    Rewriter.replace_op(op, [], [p])


@dataclass(frozen=True)
class ExpandSoftmaxPass(FunctionPass):
    """Writes softmax as exp(x - max) / sum, with maximum and sum once a group."""

    name = "expand-softmax"

    def on(self, func: FuncOp) -> None:
        expand_softmax(func, SetEnv.of(func))
