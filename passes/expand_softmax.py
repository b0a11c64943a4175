"""Softmax written out, so that the value per group is what a function keeps."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from ..dialects.inter.builder import Builder
from ..dialects.inter.pointwise import POINTWISE_OPS
from ..dialects.inter.reduce import SoftmaxOp
from ..dialects.inter.sets import SetEnv
from .signature import body_ops


def expand_softmax(func: FuncOp, env: SetEnv) -> None:
    """Replaces every softmax that is stored on the rows it runs over by exp(x - max) / sum."""
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
    e = b.emit(POINTWISE_OPS["exp"], [[b.sub(op.x, read(top))]], dom=over)
    total = named(b.reduce("sum", e, over, along), "sum")
    p = b.emit(POINTWISE_OPS["div"], [[e, read(total)]], dom=over)
    p.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(p)
    op.detach()
    op.erase()
